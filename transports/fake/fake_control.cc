// Making, changing and destroying CQs and QPs, and destroying everything else.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transports/fake/fake_device.h"
#include "transports/fake/fake_objects.h"

namespace verbscope {
namespace {

using fake::FakeQp;
using fake::State;

Error Refused(std::string_view call, std::string_view parameter, std::string cause) {
  Error error = CallError(ErrorClass::kSetup, call, parameter, EINVAL);
  error.cause = std::move(cause);
  error.next_step = "correct the parameter";
  return error;
}

Error DestroyError(std::string_view call, std::string_view object, int errno_value,
                   std::string cause) {
  Error error = CallError(ErrorClass::kInternal, call, object, errno_value);
  error.cause = std::move(cause);
  return error;
}

// The attributes a transition must carry beside the state (IBA table 11.2.5.1, RC); nullopt when
// there is no such transition.
std::optional<int> RequiredMask(ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return 0;
  if (from == to && (to == IBV_QPS_INIT || to == IBV_QPS_RTS)) return 0;
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) {
    return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  }
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) {
    return IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
           IBV_QP_MAX_QP_RD_ATOMIC;
  }
  return std::nullopt;
}

const PortInfo* FindPort(const std::vector<PortInfo>& ports, int number) {
  const auto found = std::ranges::find(ports, number, &PortInfo::number);
  return found == ports.end() ? nullptr : &*found;
}

// Why the path of INIT to RTR cannot be taken from this port; empty when it can.
std::string PathProblem(const PortInfo& port, const ibv_qp_attr& attributes) {
  const ibv_ah_attr& path = attributes.ah_attr;
  if (!port.active) return "the port is " + port.state;
  if ((128U << attributes.path_mtu) > port.active_mtu_bytes) {
    return fmt::format("path MTU {} is above the port's {}", 128U << attributes.path_mtu,
                       port.active_mtu_bytes);
  }
  if (path.is_global == 0) {
    return port.link_layer == LinkLayer::kEthernet ? "Ethernet needs a GID (is_global)" : "";
  }
  for (const GidEntry& gid : port.gids) {
    if (gid.index == path.grh.sgid_index) return "";
  }
  return fmt::format("GID index {} is empty", path.grh.sgid_index);
}

// Takes over the attributes that the data path needs.
void Apply(FakeQp& qp, const ibv_qp_attr& from, int mask) {
  ibv_qp_attr& to = qp.attributes;
  if ((mask & IBV_QP_PORT) != 0) to.port_num = from.port_num;
  if ((mask & IBV_QP_AV) != 0) to.ah_attr = from.ah_attr;
  if ((mask & IBV_QP_DEST_QPN) != 0) to.dest_qp_num = from.dest_qp_num;
  if ((mask & IBV_QP_RQ_PSN) != 0) to.rq_psn = from.rq_psn;
  if ((mask & IBV_QP_SQ_PSN) != 0) to.sq_psn = from.sq_psn;
  if ((mask & IBV_QP_RNR_RETRY) != 0) to.rnr_retry = from.rnr_retry;
}

void TakeAddresses(FakeQp& qp, const PortInfo& port) {
  qp.lid = port.lid;
  qp.gids.clear();
  for (const GidEntry& gid : port.gids) qp.gids.push_back(gid.raw);
}

}  // namespace

Expected<Cq> FakeDevice::CreateCq(const CqOptions& options) {
  const std::string parameter =
      fmt::format("cqe={}, comp_vector={}", options.cqe, options.comp_vector);
  if (auto error = Injected("ibv_create_cq", parameter)) return Fail(*std::move(error));
  const DeviceLimits& limits = options_.info.limits;
  if (options.cqe == 0 || options.cqe > limits.max_cqe || options.comp_vector < 0 ||
      static_cast<uint32_t>(options.comp_vector) >= limits.comp_vectors) {
    return Fail(Refused("ibv_create_cq", parameter,
                        fmt::format("the device has max_cqe={} and {} completion vectors",
                                    limits.max_cqe, limits.comp_vectors)));
  }
  State& state = *fabric_->state_;
  auto cq = std::make_unique<fake::FakeCq>();
  cq->state = &state;
  cq->owner = context_.get();
  cq->capacity = options.cqe;
  cq->context = &context_->verbs.context;
  cq->channel = options.channel;
  cq->cq_context = options.context;
  cq->cqe = static_cast<int>(options.cqe);
  const std::lock_guard lock(state.mutex);
  cq->handle = state.next_handle++;
  if (cq->channel != nullptr) ++cq->channel->refcnt;
  ibv_cq* handle = cq.get();
  state.cqs.emplace(handle, std::move(cq));
  return Cq(this, handle);
}

Expected<CreatedQp> FakeDevice::CreateQp(const QpOptions& options) {
  const std::string parameter =
      fmt::format("max_send_wr={}, max_recv_wr={}, max_send_sge={}, max_recv_sge={}, max_inline={}",
                  options.max_send_wr, options.max_recv_wr, options.max_send_sge,
                  options.max_recv_sge, options.max_inline_bytes);
  if (auto error = Injected("ibv_create_qp", parameter)) return Fail(*std::move(error));
  const DeviceLimits& limits = options_.info.limits;
  if (options.pd == nullptr || options.send_cq == nullptr || options.recv_cq == nullptr) {
    return Fail(Refused("ibv_create_qp", parameter, "PD, send CQ and receive CQ must be given"));
  }
  if (std::max(options.max_send_wr, options.max_recv_wr) > limits.max_qp_wr ||
      std::max(options.max_send_sge, options.max_recv_sge) > limits.max_sge ||
      options.max_inline_bytes > options_.max_inline_bytes) {
    return Fail(Refused("ibv_create_qp", parameter,
                        fmt::format("the device has max_qp_wr={}, max_sge={}, max_inline={}",
                                    limits.max_qp_wr, limits.max_sge, options_.max_inline_bytes)));
  }
  State& state = *fabric_->state_;
  auto qp = std::make_unique<FakeQp>();
  qp->fabric = &state;
  qp->owner = context_.get();
  qp->context = &context_->verbs.context;
  qp->pd = options.pd;
  qp->send_cq = options.send_cq;
  qp->recv_cq = options.recv_cq;
  qp->qp_type = IBV_QPT_RC;
  qp->state = IBV_QPS_RESET;
  qp->cap = {.max_send_wr = options.max_send_wr,
             .max_recv_wr = options.max_recv_wr,
             .max_send_sge = options.max_send_sge,
             .max_recv_sge = options.max_recv_sge,
             .max_inline_data = options.max_inline_bytes};
  const std::lock_guard lock(state.mutex);
  qp->handle = state.next_handle++;
  qp->qp_num = state.next_qpn++;
  ++static_cast<fake::FakePd*>(qp->pd)->users;
  ++fake::Of(qp->send_cq).users;
  ++fake::Of(qp->recv_cq).users;
  ibv_qp* handle = qp.get();
  state.qps.emplace(qp->qp_num, std::move(qp));
  return CreatedQp{.qp = Qp(this, handle), .max_inline_bytes = options.max_inline_bytes};
}

Status FakeDevice::ModifyQp(ibv_qp* base, ibv_qp_attr& attributes, int mask,
                            std::string_view what) {
  if (auto error = Injected("ibv_modify_qp", what)) return Fail(*std::move(error));
  std::vector<PortInfo> ports;
  {
    const std::lock_guard lock(settings_mutex_);
    ports = ports_;
  }
  State& state = *fabric_->state_;
  const std::lock_guard lock(state.mutex);
  FakeQp& qp = fake::Of(base);
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attributes.qp_state : qp.current;
  const std::optional<int> required = RequiredMask(qp.current, to);
  if (!required) return Fail(Refused("ibv_modify_qp", what, "there is no such transition"));
  if ((mask & *required) != *required) {
    return Fail(Refused("ibv_modify_qp", what,
                        fmt::format("attributes {:#x} are missing", *required & ~mask)));
  }
  if (qp.current == IBV_QPS_RESET && to == IBV_QPS_INIT) {
    const PortInfo* port = FindPort(ports, attributes.port_num);
    if (port == nullptr) return Fail(Refused("ibv_modify_qp", what, "there is no such port"));
    TakeAddresses(qp, *port);
  }
  if (qp.current == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    const PortInfo* port = FindPort(ports, qp.attributes.port_num);
    std::string problem = port == nullptr ? "the port is gone" : PathProblem(*port, attributes);
    if (!problem.empty()) return Fail(Refused("ibv_modify_qp", what, std::move(problem)));
  }
  Apply(qp, attributes, mask);
  qp.state = to;
  if (to == IBV_QPS_RESET) {
    state.Reset(qp);
  } else if (to == IBV_QPS_ERR) {
    state.EnterError(qp, nullptr);
  } else {
    qp.current = to;
  }
  return {};
}

Expected<ibv_qp_state> FakeDevice::QueryQpState(ibv_qp* qp) {
  if (auto error = Injected("ibv_query_qp", fmt::format("qp_num={:#x}", qp->qp_num))) {
    return Fail(*std::move(error));
  }
  const std::lock_guard lock(fabric_->state_->mutex);
  qp->state = fake::Of(qp).current;  // as libibverbs does
  return qp->state;
}

Status FakeDevice::Destroy(ibv_pd* pd) {
  if (auto error = InjectedDestroy("ibv_dealloc_pd")) return Fail(*std::move(error));
  State& state = *fabric_->state_;
  const std::lock_guard lock(state.mutex);
  const auto found = state.pds.find(pd);
  if (found == state.pds.end()) {
    return Fail(DestroyError("ibv_dealloc_pd", "", ENOENT, "it does not exist"));
  }
  if (found->second->users > 0) {
    return Fail(DestroyError("ibv_dealloc_pd", fmt::format("handle={}", pd->handle), EBUSY,
                             fmt::format("{} MRs or QPs use it", found->second->users)));
  }
  state.pds.erase(found);
  return {};
}

Status FakeDevice::Destroy(ibv_mr* mr) {
  if (auto error = InjectedDestroy("ibv_dereg_mr")) return Fail(*std::move(error));
  State& state = *fabric_->state_;
  const std::lock_guard lock(state.mutex);
  --static_cast<fake::FakePd*>(mr->pd)->users;
  state.mrs.erase(mr->lkey);
  return {};
}

Status FakeDevice::Destroy(ibv_comp_channel* channel) {
  if (auto error = InjectedDestroy("ibv_destroy_comp_channel")) return Fail(*std::move(error));
  State& state = *fabric_->state_;
  const std::lock_guard lock(state.mutex);
  if (channel->refcnt > 0) {
    return Fail(DestroyError("ibv_destroy_comp_channel", fmt::format("fd={}", channel->fd), EBUSY,
                             fmt::format("{} CQs use it", channel->refcnt)));
  }
  state.channels.erase(channel);
  return {};
}

Status FakeDevice::Destroy(ibv_cq* base) {
  if (auto error = InjectedDestroy("ibv_destroy_cq")) return Fail(*std::move(error));
  State& state = *fabric_->state_;
  const std::lock_guard lock(state.mutex);
  fake::FakeCq& cq = fake::Of(base);
  const uint64_t owed = cq.seen.events_taken - cq.comp_events_completed;
  if (cq.users > 0 || owed > 0) {
    return Fail(DestroyError("ibv_destroy_cq", fmt::format("handle={}", cq.handle), EBUSY,
                             fmt::format("{} queues of QPs use it and {} events are not "
                                         "acknowledged (a real device would wait for ever)",
                                         cq.users, owed)));
  }
  if (cq.channel != nullptr) --cq.channel->refcnt;
  auto node = state.cqs.extract(base);
  if (cq.seen.events_sent != cq.seen.events_taken) {
    state.retired_cqs.push_back(std::move(node.mapped()));
  }
  return {};
}

Status FakeDevice::Destroy(ibv_qp* base) {
  if (auto error = InjectedDestroy("ibv_destroy_qp")) return Fail(*std::move(error));
  State& state = *fabric_->state_;
  const std::lock_guard lock(state.mutex);
  FakeQp& qp = fake::Of(base);
  state.Reset(qp);
  --static_cast<fake::FakePd*>(qp.pd)->users;
  --fake::Of(qp.send_cq).users;
  --fake::Of(qp.recv_cq).users;
  state.qps.erase(qp.qp_num);
  return {};
}

}  // namespace verbscope
