// The set-up half of IbverbsDevice: everything that creates or changes an object.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "transports/common/qp_text.h"
#include "transports/common/rtr_checks.h"
#include "transports/ibverbs/completion_vector.h"
#include "transports/ibverbs/device.h"
#include "transports/ibverbs/inline_probe.h"
#include "transports/ibverbs/port_counters.h"

namespace verbscope {
namespace {

// Estimates for the text of an ENOMEM only: a queue entry of most devices is one cache line.
constexpr uint64_t kQueueEntryBytes = 64;

int ErrnoOr(int fallback) { return errno != 0 ? errno : fallback; }

std::string DescribeOptions(const QpOptions& options) {
  return fmt::format(
      "RC, max_send_wr={}, max_recv_wr={}, max_send_sge={}, max_recv_sge={}, max_inline_data={}",
      options.max_send_wr, options.max_recv_wr, options.max_send_sge, options.max_recv_sge,
      options.max_inline_bytes);
}

// The verb does not say which field it dislikes; the limits often do. Empty when they do not.
std::string FieldAboveLimit(const QpOptions& options, const DeviceLimits& limits) {
  struct Field {
    std::string_view name;
    uint32_t asked;
    uint32_t limit;
  };
  const std::array<Field, 4> fields = {{
      {"max_send_wr", options.max_send_wr, limits.max_qp_wr},
      {"max_recv_wr", options.max_recv_wr, limits.max_qp_wr},
      {"max_send_sge", options.max_send_sge, limits.max_sge},
      {"max_recv_sge", options.max_recv_sge, limits.max_sge},
  }};
  for (const Field& field : fields) {
    if (field.asked > field.limit) {
      return fmt::format("{} {} is above the device's limit {}", field.name, field.asked,
                         field.limit);
    }
  }
  return {};
}

ibv_qp_init_attr InitAttributes(const QpOptions& options) {
  ibv_qp_init_attr attributes = {};
  attributes.qp_type = IBV_QPT_RC;
  attributes.send_cq = options.send_cq;
  attributes.recv_cq = options.recv_cq;
  attributes.srq = options.srq;
  attributes.sq_sig_all = options.signal_all ? 1 : 0;
  attributes.cap.max_send_wr = options.max_send_wr;
  attributes.cap.max_recv_wr = options.max_recv_wr;
  attributes.cap.max_send_sge = options.max_send_sge;
  attributes.cap.max_recv_sge = options.max_recv_sge;
  attributes.cap.max_inline_data = options.max_inline_bytes;
  return attributes;
}

}  // namespace

Expected<Pd> IbverbsDevice::AllocatePd() {
  errno = 0;
  ibv_pd* pd = verbs_.AllocPd(context_);
  if (pd == nullptr) return Fail(Failed(VerbCall::kAllocPd, "", ErrnoOr(ENOMEM)));
  return Pd(this, pd);
}

Expected<Mr> IbverbsDevice::RegisterMemory(ibv_pd* pd, std::span<std::byte> memory, int access) {
  if (memory.empty()) {
    Error error;
    error.message = "a registration of 0 bytes was asked for";
    error.cause = "a bug of verbscope: empty buffers need no memory region";
    return Fail(std::move(error));
  }
  errno = 0;
  ibv_mr* mr = verbs_.RegMr(pd, memory.data(), memory.size(), access);
  if (mr == nullptr) {
    return Fail(FailedToPin(VerbCall::kRegMr,
                            fmt::format("length={}, access={:#x}", memory.size(), access),
                            ErrnoOr(ENOMEM), memory.size(), "the buffer"));
  }
  live_.Add(mr);
  return Mr(this, mr);
}

Expected<CompChannel> IbverbsDevice::CreateCompChannel() {
  errno = 0;
  ibv_comp_channel* channel = verbs_.CreateCompChannel(context_);
  if (channel == nullptr) {
    return Fail(Failed(VerbCall::kCreateCompChannel, "", ErrnoOr(ENOMEM)));
  }
  return CompChannel(this, channel);
}

Expected<Cq> IbverbsDevice::CreateCq(const CqOptions& options) {
  const std::string parameters =
      fmt::format("cqe={}, comp_vector={}", options.cqe, options.comp_vector);
  // The verb takes a signed number of entries.
  const auto cqe = static_cast<int>(std::min<uint32_t>(options.cqe, INT32_MAX));
  errno = 0;
  ibv_cq* cq = options.extended ? MakeExtendedCq(options) : nullptr;
  if (cq == nullptr) {
    errno = 0;
    cq = verbs_.CreateCq(context_, cqe, options.context, options.channel, options.comp_vector);
  }
  if (cq == nullptr) {
    Error error = FailedToPin(VerbCall::kCreateCq, parameters, ErrnoOr(ENOMEM),
                              options.cqe * kQueueEntryBytes, "the completion queue (estimate)");
    if (options.cqe > info_.limits.max_cqe) {
      error.cause =
          fmt::format("cqe {} is above the device's limit {}", options.cqe, info_.limits.max_cqe);
      error.next_step = "lower --tx-depth, --rx-depth or --qps";
    } else if (options.comp_vector < 0 ||
               static_cast<uint32_t>(options.comp_vector) >= info_.limits.comp_vectors) {
      error.cause = fmt::format("the device has {} completion vectors, counted from 0",
                                info_.limits.comp_vectors);
      error.next_step = "choose one of them with --comp-vector";
    }
    return Fail(std::move(error));
  }
  live_.Add(cq);
  return Cq(this, cq);
}

Expected<Srq> IbverbsDevice::CreateSrq(const SrqOptions& options) {
  ibv_srq_init_attr attributes = {};
  attributes.attr.max_wr = options.max_wr;
  attributes.attr.max_sge = options.max_sge;
  errno = 0;
  ibv_srq* const srq = verbs_.CreateSrq(options.pd, &attributes);
  if (srq != nullptr) return Srq(this, srq);
  return Fail(FailedToPin(
      VerbCall::kCreateSrq, fmt::format("max_wr={}, max_sge={}", options.max_wr, options.max_sge),
      ErrnoOr(ENOMEM), options.max_wr * kQueueEntryBytes, "the shared receive queue (estimate)"));
}

Status IbverbsDevice::SetSrqLimit(ibv_srq* srq, uint32_t limit) {
  ibv_srq_attr attributes = {};
  attributes.srq_limit = limit;
  const int result = verbs_.ModifySrq(srq, &attributes, IBV_SRQ_LIMIT);
  if (result == 0) return {};
  return Fail(Failed(VerbCall::kModifySrq, fmt::format("srq_limit={}", limit), result));
}

Status IbverbsDevice::ModerateCq(ibv_cq* cq, uint16_t count, uint16_t period_us) {
  ibv_modify_cq_attr attributes = {};
  attributes.attr_mask = IBV_CQ_ATTR_MODERATE;
  attributes.moderate = {.cq_count = count, .cq_period = period_us};
  const int result = verbs_.ModifyCq(cq, &attributes);
  if (result == 0) return {};
  return Fail(Failed(VerbCall::kModifyCq,
                     fmt::format("cq_count={}, cq_period={}", count, period_us), result));
}

ibv_cq* IbverbsDevice::MakeExtendedCq(const CqOptions& options) {
  ibv_cq_init_attr_ex attributes = {};
  attributes.cqe = options.cqe;
  attributes.cq_context = options.context;
  attributes.channel = options.channel;
  attributes.comp_vector = static_cast<uint32_t>(options.comp_vector);
  attributes.wc_flags = IBV_WC_STANDARD_FLAGS;
  ibv_cq_ex* const extended = verbs_.CreateCqEx(context_, &attributes);
  if (extended == nullptr) return nullptr;
  ibv_cq* const cq = ibv_cq_ex_to_cq(extended);
  const std::lock_guard lock(extended_mutex_);
  extended_cqs_.insert(cq);
  return cq;
}

ibv_qp* IbverbsDevice::MakeExtendedQp(const QpOptions& options, ibv_qp_init_attr& attributes) {
  ibv_qp_init_attr_ex extended = {};
  extended.qp_type = attributes.qp_type;
  extended.send_cq = attributes.send_cq;
  extended.recv_cq = attributes.recv_cq;
  extended.srq = attributes.srq;
  extended.sq_sig_all = attributes.sq_sig_all;
  extended.cap = attributes.cap;
  extended.pd = options.pd;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  extended.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                            IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                            IBV_QP_EX_WITH_RDMA_READ;
  ibv_qp* const qp = verbs_.CreateQpEx(context_, &extended);
  if (qp == nullptr) return nullptr;
  attributes.cap = extended.cap;
  const std::lock_guard lock(extended_mutex_);
  extended_qps_.insert(qp);
  return qp;
}

ibv_qp_ex* IbverbsDevice::Extended(ibv_qp* qp) {
  const std::lock_guard lock(extended_mutex_);
  // ibv_qp_to_qp_ex looks behind the ibv_qp, where some providers keep something else.
  return extended_qps_.contains(qp) ? verbs_.ToQpEx(qp) : nullptr;
}

ibv_cq_ex* IbverbsDevice::Extended(ibv_cq* cq) {
  const std::lock_guard lock(extended_mutex_);
  // The reverse of ibv_cq_ex_to_cq, which has no name of its own.
  return extended_cqs_.contains(cq) ? reinterpret_cast<ibv_cq_ex*>(cq) : nullptr;
}

std::optional<int> IbverbsDevice::CoreOfVector(int comp_vector) {
  return CompletionVectorCore(paths_, info_.name, comp_vector);
}

std::vector<DeviceCounter> IbverbsDevice::ReadCounters(int port) {
  // Until then the kernel may answer with what it read before; there is nothing to wait for but the
  // time itself.
  std::this_thread::sleep_for(CounterLifespan(paths_, info_.name, port));
  return ReadPortCounters(paths_, info_.name, port);
}

Expected<ibv_qp*> IbverbsDevice::MakeQp(const QpOptions& options, ibv_qp_init_attr& attributes) {
  attributes = InitAttributes(options);
  ibv_qp* qp = options.extended ? MakeExtendedQp(options, attributes) : nullptr;
  if (qp == nullptr) {
    errno = 0;
    qp = verbs_.CreateQp(options.pd, &attributes);
  }
  if (qp != nullptr) return qp;
  const uint64_t entries = uint64_t{options.max_send_wr} + options.max_recv_wr;
  return Fail(FailedToPin(VerbCall::kCreateQp, DescribeOptions(options), ErrnoOr(ENOMEM),
                          entries * (kQueueEntryBytes + options.max_inline_bytes),
                          "the QP (estimate)"));
}

Expected<CreatedQp> IbverbsDevice::CreateQp(const QpOptions& options) {
  ibv_qp_init_attr attributes = {};
  Expected<ibv_qp*> qp = MakeQp(options, attributes);
  if (!qp) {
    Error error = std::move(qp.error());
    if (std::string field = FieldAboveLimit(options, info_.limits); !field.empty()) {
      error.cause = std::move(field);
      error.next_step = "lower --tx-depth or --rx-depth";
    } else if (options.max_inline_bytes > 0) {
      const Expected<uint32_t> limit = MaxInlineBytes();
      if (limit && options.max_inline_bytes > *limit) {
        error.cause = fmt::format("max_inline_data {} is above the device's limit {}",
                                  options.max_inline_bytes, *limit);
        error.next_step = fmt::format("use --inline {} or less, or --inline auto", *limit);
      }
    }
    return Fail(std::move(error));
  }
  live_.Add(*qp);
  CreatedQp created = {Qp(this, *qp), attributes.cap.max_inline_data};
  if (created.max_inline_bytes < options.max_inline_bytes) {
    Error error = Failed(VerbCall::kCreateQp, DescribeOptions(options), EINVAL);
    error.message = fmt::format("{} gave a QP with {} bytes inline where {} were asked for",
                                info_.name, created.max_inline_bytes, options.max_inline_bytes);
    error.cause = "the driver lowers the inline size without an error";
    error.next_step =
        fmt::format("use --inline {} or less, or --inline auto", created.max_inline_bytes);
    return Fail(std::move(error));
  }
  return created;
}

Status IbverbsDevice::CheckRtr(ibv_qp* qp, const ibv_qp_attr& attributes) {
  RtrFacts facts;
  facts.device = info_.name;
  facts.qp_num = qp->qp_num;
  facts.port_count = static_cast<int>(info_.ports.size());
  const ibv_ah_attr& address = attributes.ah_attr;
  ibv_port_attr port = {};
  if (address.port_num >= 1 && address.port_num <= facts.port_count &&
      verbs_.QueryPort(context_, address.port_num, &port) == 0) {
    facts.port = port;
    ibv_gid gid = {};
    if (address.is_global != 0 && address.grh.sgid_index < port.gid_tbl_len &&
        verbs_.QueryGid(context_, address.port_num, address.grh.sgid_index, &gid) == 0) {
      facts.source_gid = gid;
    }
  }
  return CheckRtrInputs(attributes, facts);
}

Status IbverbsDevice::ModifyQp(ibv_qp* qp, ibv_qp_attr& attributes, int mask,
                               std::string_view what) {
  const bool to_rtr = IsTransitionToRtr(attributes, mask);
  if (to_rtr) {
    if (Status status = CheckRtr(qp, attributes); !status) return status;
  }
  const int code = verbs_.ModifyQp(qp, &attributes, mask);
  if (code == 0) return {};
  return Fail(Failed(
      to_rtr ? VerbCall::kModifyQpToRtr : VerbCall::kModifyQp,
      fmt::format("{}, {}: {}", Describe(qp), what, DescribeQpAttributes(attributes, mask)), code));
}

Expected<ibv_qp_state> IbverbsDevice::QueryQpState(ibv_qp* qp) {
  ibv_qp_attr attributes = {};
  ibv_qp_init_attr init_attributes = {};
  const int code = verbs_.QueryQp(qp, &attributes, IBV_QP_STATE, &init_attributes);
  if (code != 0) return Fail(Failed(VerbCall::kQueryQp, Describe(qp), code));
  return attributes.qp_state;
}

Expected<uint32_t> IbverbsDevice::MaxInlineBytes() {
  // Held over the search: two threads that ask at once make one search.
  const std::lock_guard lock(inline_mutex_);
  if (!max_inline_bytes_) {
    Expected<uint32_t> found = ProbeInline();
    if (!found) return found;
    max_inline_bytes_ = *found;
  }
  return *max_inline_bytes_;
}

Expected<uint32_t> IbverbsDevice::ProbeInline() {
  Expected<Pd> pd = AllocatePd();
  if (!pd) return Fail(std::move(pd.error()));
  Expected<Cq> cq = CreateCq({.cqe = 1});
  if (!cq) return Fail(std::move(cq.error()));
  return FindMaxInline([&](uint32_t bytes) { return TryInline(pd->get(), cq->get(), bytes); });
}

Expected<uint32_t> IbverbsDevice::TryInline(ibv_pd* pd, ibv_cq* cq, uint32_t bytes) {
  ibv_qp_init_attr attributes = {};
  const QpOptions options = {.pd = pd, .send_cq = cq, .recv_cq = cq, .max_inline_bytes = bytes};
  Expected<ibv_qp*> qp = MakeQp(options, attributes);
  if (!qp) return Fail(std::move(qp.error()));
  live_.Add(*qp);
  Qp owned(this, *qp);
  // A QP that cannot be destroyed would be left behind once per attempt.
  if (Status closed = owned.Close(); !closed) return Fail(std::move(closed.error()));
  return attributes.cap.max_inline_data;
}

}  // namespace verbscope
