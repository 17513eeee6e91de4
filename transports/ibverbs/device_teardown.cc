// The tear-down half of IbverbsDevice. An object leaves the record of live objects before it is
// destroyed, as its address may be given out again at once, and returns to it when that fails.
#include <fmt/core.h>

#include <cerrno>
#include <utility>

#include "transports/ibverbs/device.h"

namespace verbscope {

template <class T>
Status IbverbsDevice::Destroyed(T* object, VerbCall call, const std::string& state,
                                int (VerbsApi::*verb)(T*)) {
  const std::string name = Describe(object);
  const int code = watchdog_.Run(
      fmt::format("destroying {} of {}{}{}", name, info_.name, state.empty() ? "" : "; ", state),
      [&] { return (verbs_.*verb)(object); });
  if (code == 0) return {};
  return Fail(Failed(call, name, code));
}

IbverbsDevice::~IbverbsDevice() {
  if (context_ == nullptr) return;
  const int code =
      watchdog_.Run("closing " + info_.name, [this] { return verbs_.CloseDevice(context_); });
  if (code != 0) Report(Failed(VerbCall::kCloseDevice, "", code));
}

Status IbverbsDevice::Destroy(ibv_pd* pd) {
  Status status = Destroyed(pd, VerbCall::kDeallocPd, "", &VerbsApi::DeallocPd);
  if (!status && status.error().errno_value == EBUSY) {
    if (const std::string holders = live_.HoldersOf(pd); !holders.empty()) {
      status.error().cause = "still used by " + holders;
    }
  }
  return status;
}

Status IbverbsDevice::Destroy(ibv_mr* mr) {
  live_.Remove(mr);
  Status status = Destroyed(mr, VerbCall::kDeregMr, "", &VerbsApi::DeregMr);
  if (!status) live_.Add(mr);
  return status;
}

Status IbverbsDevice::Destroy(ibv_comp_channel* channel) {
  Status status =
      Destroyed(channel, VerbCall::kDestroyCompChannel, "", &VerbsApi::DestroyCompChannel);
  if (!status && status.error().errno_value == EBUSY) {
    if (const std::string holders = live_.HoldersOf(channel); !holders.empty()) {
      status.error().cause = "still used by " + holders;
    }
  }
  return status;
}

Status IbverbsDevice::Destroy(ibv_cq* cq) {
  EventCount events = live_.Remove(cq);
  PayOwedEvents(cq, events);
  Status status =
      Destroyed(cq, VerbCall::kDestroyCq,
                fmt::format("events taken {}, acknowledged {}", events.taken, events.acknowledged),
                &VerbsApi::DestroyCq);
  if (status) {
    const std::lock_guard lock(extended_mutex_);
    extended_cqs_.erase(cq);
  }
  if (!status) {
    live_.Add(cq, events);
    if (status.error().errno_value == EBUSY) {
      if (const std::string holders = live_.HoldersOf(cq); !holders.empty()) {
        status.error().cause = "still used by " + holders;
      }
    }
  }
  return status;
}

Status IbverbsDevice::Destroy(ibv_qp* qp) {
  live_.Remove(qp);
  Status status = Destroyed(qp, VerbCall::kDestroyQp, "", &VerbsApi::DestroyQp);
  if (status) {
    const std::lock_guard lock(extended_mutex_);
    extended_qps_.erase(qp);
  }
  if (!status) live_.Add(qp);
  return status;
}

Status IbverbsDevice::Destroy(ibv_srq* srq) {
  return Destroyed(srq, VerbCall::kDestroySrq, "", &VerbsApi::DestroySrq);
}

void IbverbsDevice::PayOwedEvents(ibv_cq* cq, EventCount& events) {
  const auto owed = static_cast<unsigned>(events.owed());
  if (owed == 0) return;
  verbs_.AckCqEvents(cq, owed);
  Error error;  // kInternal
  error.message = fmt::format(
      "{} of {} was destroyed with {} event(s) not acknowledged (taken {}, acknowledged {})",
      Describe(cq), info_.name, owed, events.taken, events.acknowledged);
  error.cause = "a bug of verbscope; the destruction would have waited for ever";
  events.acknowledged += owed;
  Report(std::move(error));
}

void IbverbsDevice::Report(Error error) {
  if (teardown_report_ != nullptr) teardown_report_->Add(std::move(error));
}

}  // namespace verbscope
