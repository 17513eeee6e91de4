// Destroying objects: EBUSY for what is still used, ENOENT for what is not alive.
#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transports/soft/device/call_error.h"
#include "transports/soft/device/soft_device.h"

namespace verbscope::soft {
namespace {

Error Busy(std::string_view call, std::string_view object, std::string cause) {
  Error error = CallError(ErrorClass::kInternal, call, object, EBUSY);
  error.cause = std::move(cause);
  errno = EBUSY;
  return error;
}

}  // namespace

Status SoftDevice::Destroy(ibv_pd* base) {
  if (Status status = Hooked("dealloc_pd", ""); !status) return status;
  const std::lock_guard lock(mutex_);
  if (!pds_.Has(Of(base)) || Of(base).abandoned) return Fail(Unknown("ibv_dealloc_pd"));
  if (Of(base).users > 0 && Has(Defect::kBusyDestroy)) {
    Of(base).abandoned = true;
    abandoned_pds_.push_back(&Of(base));
    return {};
  }
  if (Of(base).users > 0) {
    return Fail(Busy("ibv_dealloc_pd", fmt::format("handle={}", base->handle),
                     fmt::format("{} MRs, QPs or SRQs use it", Of(base).users)));
  }
  pds_.Take(Of(base));
  return {};
}

Status SoftDevice::Destroy(ibv_mr* base) {
  if (Status status = Hooked("dereg_mr", ""); !status) return status;
  const std::lock_guard lock(mutex_);
  if (!mrs_.Has(Of(base))) return Fail(Unknown("ibv_dereg_mr"));
  {
    const SpinLockHolder hold(core_->lock());
    core_->engine().memory().Remove(Of(base).key);
  }
  --Of(base).owner->users;
  registered_bytes_ -= Of(base).bytes;
  mrs_.Take(Of(base));
  RemoveAbandoned();
  return {};
}

Status SoftDevice::Destroy(ibv_comp_channel* base) {
  if (Status status = Hooked("destroy_comp_channel", ""); !status) return status;
  std::unique_ptr<SoftChannel> gone;
  {
    const std::lock_guard lock(mutex_);
    if (!channels_.Has(Of(base)) || Of(base).abandoned)
      return Fail(Unknown("ibv_destroy_comp_channel"));
    if (base->refcnt > 0 && Has(Defect::kBusyDestroy)) {
      Of(base).abandoned = true;
      abandoned_channels_.push_back(&Of(base));
      return {};
    }
    if (base->refcnt > 0) {
      return Fail(Busy("ibv_destroy_comp_channel", fmt::format("fd={}", base->fd),
                       fmt::format("{} CQs use it", base->refcnt)));
    }
    gone = channels_.Take(Of(base));
  }
  core_->link().RemoveChannel(gone->link_id);
  return {};
}

Status SoftDevice::Destroy(ibv_cq* base) {
  if (Status status = Hooked("destroy_cq", ""); !status) return status;
  const std::lock_guard lock(mutex_);
  if (!cqs_.Has(Of(base)) || Of(base).abandoned) return Fail(Unknown("ibv_destroy_cq"));
  SoftCq& cq = Of(base);
  {
    const SpinLockHolder hold(core_->lock());
    const size_t users = cq.receive_qps.size() + cq.send_qps.size();
    // ibv_destroy_cq(3) waits for these for ever; saying so is kinder.
    const uint32_t owed =
        Has(Defect::kUnackedDestroy) ? 0 : cq.events_taken - cq.comp_events_completed;
    if (users > 0 && Has(Defect::kBusyDestroy)) {
      cq.abandoned = true;
      abandoned_cqs_.push_back(&cq);
      return {};
    }
    if (users > 0 || owed > 0) {
      return Fail(Busy(
          "ibv_destroy_cq", fmt::format("handle={}", cq.handle),
          fmt::format("{} queues of QPs use it and {} events are not acknowledged", users, owed)));
    }
  }
  Remove(cq);
  RemoveAbandoned();
  return {};
}

void SoftDevice::Remove(SoftCq& cq) {
  {
    const SpinLockHolder hold(core_->lock());
    core_->Forget(cq);
  }
  ::pthread_mutex_destroy(&cq.mutex);
  ::pthread_cond_destroy(&cq.cond);
  cqs_.Take(cq);
}

void SoftDevice::RemoveAbandoned() {
  std::erase_if(abandoned_cqs_, [this](SoftCq* cq) {
    if (!cq->receive_qps.empty() || !cq->send_qps.empty()) return false;
    Remove(*cq);
    return true;
  });
  // What CQs have used.
  std::erase_if(abandoned_channels_, [this](SoftChannel* channel) {
    if (channel->refcnt > 0) return false;
    core_->link().RemoveChannel(channels_.Take(*channel)->link_id);
    return true;
  });
  std::erase_if(abandoned_pds_, [this](SoftPd* pd) {
    if (pd->users > 0) return false;
    pds_.Take(*pd);
    return true;
  });
}

Status SoftDevice::Destroy(ibv_qp* base) {
  if (Status status = Hooked("destroy_qp", ""); !status) return status;
  std::unique_ptr<SoftQp> gone;
  {
    const std::lock_guard lock(mutex_);
    if (!qps_.Has(Of(base))) return Fail(Unknown("ibv_destroy_qp"));
    SoftQp& qp = Of(base);
    {
      const SpinLockHolder hold(core_->lock());
      std::erase(OwnerOf(*qp.pair->send_cq()).send_qps, qp.pair);
      std::erase(OwnerOf(*qp.pair->recv_cq()).receive_qps, qp.pair);
      core_->DisarmPeersOf(*qp.pair);
      core_->engine().DestroyQp(*qp.pair);
      core_->ForgetAsyncEvents(base);
    }
    --qp.owner->users;
    if (qp.shared_receives != nullptr) --qp.shared_receives->users;
    gone = qps_.Take(Of(base));
    RemoveAbandoned();
  }
  if (gone->link_use) core_->link().Disconnect(*gone->link_use);
  ::pthread_mutex_destroy(&gone->qp_base.mutex);
  ::pthread_cond_destroy(&gone->qp_base.cond);
  return {};
}

Status SoftDevice::Destroy(ibv_srq* base) {
  if (Status status = Hooked("destroy_srq", ""); !status) return status;
  const std::lock_guard lock(mutex_);
  if (!srqs_.Has(Of(base))) return Fail(Unknown("ibv_destroy_srq"));
  if (Of(base).users > 0) {
    return Fail(Busy("ibv_destroy_srq", fmt::format("handle={}", base->handle),
                     fmt::format("{} QPs use it", Of(base).users)));
  }
  {
    const SpinLockHolder hold(core_->lock());
    core_->ForgetAsyncEvents(base);
  }
  --Of(base).owner->users;
  ::pthread_mutex_destroy(&base->mutex);
  ::pthread_cond_destroy(&base->cond);
  srqs_.Take(Of(base));
  RemoveAbandoned();
  return {};
}

}  // namespace verbscope::soft
