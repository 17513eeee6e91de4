// Making CQs, completion channels, SRQs and QPs.
#include <fmt/core.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transports/soft/device/call_error.h"
#include "transports/soft/device/soft_device.h"
#include "transports/soft/device/verbs_ops.h"

namespace verbscope::soft {

Expected<CompChannel> SoftDevice::CreateCompChannel() {
  if (Status status = Hooked("create_comp_channel", ""); !status) {
    return Fail(std::move(status.error()));
  }
  auto channel = std::make_unique<SoftChannel>();
  channel->event_fd.Reset(::eventfd(0, EFD_CLOEXEC));
  if (!channel->event_fd) {
    return Fail(CallError(ErrorClass::kSetup, "eventfd", "completion channel", errno));
  }
  channel->context = &core_->verbs().context;
  channel->fd = channel->event_fd.get();
  channel->link_id = core_->link().AddChannel(channel->fd);
  const std::lock_guard lock(mutex_);
  channel->handle = NewHandle();
  return CompChannel(this, &channels_.Add(std::move(channel)));
}

Expected<Cq> SoftDevice::CreateCq(const CqOptions& options) {
  const std::string parameter =
      fmt::format("cqe={}, comp_vector={}", options.cqe, options.comp_vector);
  if (Status status = Hooked("create_cq", parameter); !status) {
    return Fail(std::move(status.error()));
  }
  const DeviceLimits& limits = options_.limits.device;
  const std::lock_guard lock(mutex_);
  if (options.channel != nullptr && !channels_.Has(Of(options.channel))) {
    return Fail(Unknown("ibv_create_cq"));
  }
  if (options.cqe == 0 || options.cqe > limits.max_cqe || options.comp_vector < 0 ||
      static_cast<uint32_t>(options.comp_vector) >= limits.comp_vectors) {
    return Fail(Refused("ibv_create_cq", parameter, EINVAL,
                        fmt::format("{} has max_cqe={} and completion vectors 0 … {}", info_.name,
                                    limits.max_cqe, limits.comp_vectors - 1),
                        "choose a smaller queue depth, or another completion vector"));
  }
  if (cqs_.size() >= limits.max_cq) {
    return Fail(Refused("ibv_create_cq", parameter, ENOMEM,
                        fmt::format("{} has max_cq={}", info_.name, limits.max_cq)));
  }
  auto cq = std::make_unique<SoftCq>(options.cqe, options_.defects);
  cq->core = core_.get();
  cq->context = &core_->verbs().context;
  cq->channel = options.channel;
  cq->cq_context = options.context;
  cq->cqe = static_cast<int>(options.cqe);
  ::pthread_mutex_init(&cq->mutex, nullptr);
  ::pthread_cond_init(&cq->cond, nullptr);
  FillExtendedCq(*cq);
  cq->handle = NewHandle();
  SoftCq& made = cqs_.Add(std::move(cq));
  if (made.channel != nullptr) {
    const SpinLockHolder hold(core_->lock());
    ++made.channel->refcnt;
    Of(made.channel).cqs.push_back(&made);
  }
  return Cq(this, Public(made));
}

Status SoftDevice::ModerateCq(ibv_cq* base, uint16_t count, uint16_t period_us) {
  const std::lock_guard lock(mutex_);
  if (!cqs_.Has(Of(base))) return Fail(Unknown("ibv_modify_cq"));
  SoftCq& cq = Of(base);
  const SpinLockHolder hold(core_->lock());
  cq.queue.Moderate(count, period_us);
  core_->WatchTime(cq);
  core_->Tick(NowNs());  // what the old rule held back starts its time now
  return {};
}

Status SoftDevice::ResizeCq(ibv_cq* base, uint32_t cqe) {
  const std::string parameter = fmt::format("cqe={}", cqe);
  if (Status status = Hooked("resize_cq", parameter); !status) return status;
  const std::lock_guard lock(mutex_);
  if (!cqs_.Has(Of(base))) return Fail(Unknown("ibv_resize_cq"));
  const SpinLockHolder hold(core_->lock());
  if (cqe > options_.limits.device.max_cqe || !Of(base).queue.Resize(cqe)) {
    return Fail(Refused("ibv_resize_cq", parameter, EINVAL,
                        fmt::format("{} has max_cqe={}, and the completions in the CQ must fit",
                                    info_.name, options_.limits.device.max_cqe)));
  }
  base->cqe = static_cast<int>(cqe);
  return {};
}

Expected<Srq> SoftDevice::CreateSrq(const SrqOptions& options) {
  const std::string parameter =
      fmt::format("max_wr={}, max_sge={}", options.max_wr, options.max_sge);
  if (Status status = Hooked("create_srq", parameter); !status) {
    return Fail(std::move(status.error()));
  }
  const std::lock_guard lock(mutex_);
  if (options.pd == nullptr || !pds_.Has(Of(options.pd))) {
    return Fail(Unknown("ibv_create_srq"));
  }
  if (options.max_wr == 0 || options.max_wr > options_.limits.max_srq_wr ||
      options.max_sge > options_.limits.device.max_sge) {
    return Fail(Refused("ibv_create_srq", parameter, EINVAL,
                        fmt::format("{} has max_srq_wr={}, max_srq_sge={}", info_.name,
                                    options_.limits.max_srq_wr, options_.limits.device.max_sge)));
  }
  if (srqs_.size() >= info_.limits.max_srq) {
    return Fail(Refused("ibv_create_srq", parameter, ENOMEM,
                        fmt::format("{} has max_srq={}", info_.name, info_.limits.max_srq)));
  }
  auto srq = std::make_unique<SoftSrq>(options.max_wr, options.max_sge);
  srq->core = core_.get();
  srq->context = &core_->verbs().context;
  srq->pd = options.pd;
  srq->owner = &Of(options.pd);
  srq->queue.SetPd(PdNumber(*options.pd));
  ::pthread_mutex_init(&srq->mutex, nullptr);
  ::pthread_cond_init(&srq->cond, nullptr);
  srq->handle = NewHandle();
  ++srq->owner->users;
  return Srq(this, &srqs_.Add(std::move(srq)));
}

Status SoftDevice::SetSrqLimit(ibv_srq* base, uint32_t limit) {
  const std::string parameter = fmt::format("srq_limit={}", limit);
  if (Status status = Hooked("modify_srq", parameter); !status) return status;
  const std::lock_guard lock(mutex_);
  if (!srqs_.Has(Of(base))) return Fail(Unknown("ibv_modify_srq"));
  if (limit > Of(base).queue.max_requests()) {
    return Fail(Refused("ibv_modify_srq", parameter, EINVAL,
                        fmt::format("the SRQ has max_wr={}", Of(base).queue.max_requests())));
  }
  const SpinLockHolder hold(core_->lock());
  Of(base).queue.SetLimit(limit);
  return {};
}

Expected<CreatedQp> SoftDevice::CreateQp(const verbscope::QpOptions& options) {
  const std::string parameter =
      fmt::format("max_send_wr={}, max_recv_wr={}, max_send_sge={}, max_recv_sge={}, max_inline={}",
                  options.max_send_wr, options.max_recv_wr, options.max_send_sge,
                  options.max_recv_sge, options.max_inline_bytes);
  if (Status status = Hooked("create_qp", parameter); !status) {
    return Fail(std::move(status.error()));
  }
  const DeviceLimits& limits = options_.limits.device;
  const std::lock_guard lock(mutex_);
  if (options.pd == nullptr || !pds_.Has(Of(options.pd)) || options.send_cq == nullptr ||
      !cqs_.Has(Of(options.send_cq)) || options.recv_cq == nullptr ||
      !cqs_.Has(Of(options.recv_cq)) || (options.srq != nullptr && !srqs_.Has(Of(options.srq)))) {
    return Fail(Unknown("ibv_create_qp"));
  }
  const std::optional<uint32_t> reported = options_.limits.reported_inline_bytes;
  const uint32_t max_inline = reported ? kMaxInlineBytes : options_.limits.max_inline_bytes;
  if (std::max(options.max_send_wr, options.max_recv_wr) > limits.max_qp_wr ||
      std::max(options.max_send_sge, options.max_recv_sge) > limits.max_sge ||
      options.max_inline_bytes > max_inline) {
    return Fail(Refused("ibv_create_qp", parameter, EINVAL,
                        fmt::format("{} has max_qp_wr={}, max_sge={}, max_inline={}", info_.name,
                                    limits.max_qp_wr, limits.max_sge, max_inline),
                        "choose smaller queue depths, fewer SGEs or less inline data"));
  }
  auto qp = std::make_unique<SoftQp>();
  qp->core = core_.get();
  qp->owner = &Of(options.pd);
  if (options.srq != nullptr) qp->shared_receives = &Of(options.srq);
  ibv_qp& base = qp->qp_base;
  base.context = &core_->verbs().context;
  base.pd = options.pd;
  base.send_cq = options.send_cq;
  base.recv_cq = options.recv_cq;
  base.srq = options.srq;
  base.qp_type = IBV_QPT_RC;
  base.state = IBV_QPS_RESET;
  ::pthread_mutex_init(&base.mutex, nullptr);
  ::pthread_cond_init(&base.cond, nullptr);
  FillExtendedQp(*qp);
  soft::QpOptions pair;
  pair.pd = PdNumber(*options.pd);
  pair.send_cq = &Of(options.send_cq).queue;
  pair.recv_cq = &Of(options.recv_cq).queue;
  pair.srq = options.srq != nullptr ? &Of(options.srq).queue : nullptr;
  pair.cap = {.max_send_wr = options.max_send_wr,
              .max_recv_wr = options.max_recv_wr,
              .max_send_sge = options.max_send_sge,
              .max_recv_sge = options.max_recv_sge,
              .max_inline_data = options.max_inline_bytes};
  pair.signal_all = options.signal_all;
  pair.owner = qp.get();
  {
    const SpinLockHolder hold(core_->lock());
    const std::optional<uint32_t> qpn =
        qps_.size() < limits.max_qp ? core_->engine().FreeQpn() : std::nullopt;
    if (!qpn) {
      return Fail(Refused("ibv_create_qp", parameter, ENOMEM,
                          fmt::format("{} has max_qp={}", info_.name, limits.max_qp)));
    }
    pair.qpn = base.qp_num = *qpn;
    qp->pair = &core_->engine().CreateQp(pair);
    Of(options.send_cq).send_qps.push_back(qp->pair);
    Of(options.recv_cq).receive_qps.push_back(qp->pair);
  }
  ++qp->owner->users;
  if (qp->shared_receives != nullptr) ++qp->shared_receives->users;
  base.handle = NewHandle();
  SoftQp& made = qps_.Add(std::move(qp));
  return CreatedQp{.qp = Qp(this, Public(made)),
                   .max_inline_bytes = reported ? *reported : options.max_inline_bytes};
}

}  // namespace verbscope::soft
