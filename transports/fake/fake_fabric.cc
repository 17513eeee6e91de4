// Completions, events and the test's hooks. Messages are in fake_data_path.cc.
#include "transports/fake/fake_fabric.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "transports/fake/fake_objects.h"

namespace verbscope {
namespace fake {
namespace {

// Writes the CQ's address to its channel, as the kernel does. A pipe takes thousands of events;
// more than that unread is counted as swallowed.
void WriteEvent(FakeCq& cq) {
  const auto& channel = *static_cast<FakeChannel*>(cq.channel);
  ibv_cq* const value = &cq;
  if (::write(channel.write_end.get(), &value, kEventBytes) == kEventBytes) {
    ++cq.seen.events_sent;
  } else {
    ++cq.seen.events_swallowed;
  }
}

}  // namespace

void State::RunHook(FakePoint point, const void* object) {
  if (hooks_waiting.load(std::memory_order_acquire) == 0) return;
  std::function<void()> action;
  {
    const std::lock_guard lock(mutex);
    const auto queue = hooks.find({point, object});
    if (queue == hooks.end() || queue->second.empty()) return;
    action = std::move(queue->second.front());
    queue->second.pop_front();
    hooks_waiting.fetch_sub(1, std::memory_order_release);
  }
  action();
}

void State::Push(FakeCq& cq, const Completion& completion) {
  ++cq.seen.pushed;
  if (cq.entries.size() >= cq.capacity) {
    if (!cq.seen.overflowed)
      RaiseAsync(*cq.owner, {.text = fmt::format("CQ_ERR on CQ {}", cq.handle), .fatal = true});
    cq.seen.overflowed = true;
    return;
  }
  // A completion in error wakes a CQ armed for solicited ones too (IBA 11.4.2.2).
  const bool solicited = completion.solicited || completion.wc.status != IBV_WC_SUCCESS;
  cq.entries.push_back(completion);
  cq.size.store(cq.entries.size(), std::memory_order_release);
  if (cq.seen.arming == FakeArming::kAny ||
      (cq.seen.arming == FakeArming::kSolicited && solicited)) {
    cq.seen.arming = FakeArming::kNone;
    SendEvent(cq);
  }
}

void State::SendEvent(FakeCq& cq) {
  if (cq.swallow > 0) {
    --cq.swallow;
    ++cq.seen.events_swallowed;
  } else if (cq.hold) {
    ++cq.seen.events_held;
  } else {
    WriteEvent(cq);
  }
}

void State::RaiseAsync(Context& context, AsyncEvent event) {
  context.async_events.push_back(std::move(event));
  const uint64_t one = 1;
  // Cannot fail: the counter of an eventfd holds 2^64 - 2.
  [[maybe_unused]] const ssize_t written = ::write(context.async_fd.get(), &one, sizeof(one));
}

void State::PurgeCompletions(FakeQp& qp) {
  for (ibv_cq* each : {qp.send_cq, qp.recv_cq}) {
    FakeCq& cq = Of(each);
    std::erase_if(cq.entries, [&](const Completion& c) { return c.wc.qp_num == qp.qp_num; });
    cq.size.store(cq.entries.size(), std::memory_order_release);
  }
}

}  // namespace fake

FakeFabric::FakeFabric() : state_(std::make_unique<fake::State>()) {}
FakeFabric::~FakeFabric() = default;

FakeLive FakeFabric::live() const {
  const std::lock_guard lock(state_->mutex);
  const auto count = [](const auto& map) { return static_cast<int>(map.size()); };
  return {.devices = state_->devices,
          .pds = count(state_->pds),
          .buffers = state_->buffers,
          .mrs = count(state_->mrs),
          .channels = count(state_->channels),
          .cqs = count(state_->cqs),
          .qps = count(state_->qps)};
}

FakeCqView FakeFabric::Look(ibv_cq* cq) const {
  const std::lock_guard lock(state_->mutex);
  const fake::FakeCq& object = fake::Of(cq);
  FakeCqView view = object.seen;
  view.entries = object.entries.size();
  view.capacity = object.capacity;
  view.events_acked = object.comp_events_completed;
  return view;
}

FakeQpView FakeFabric::Look(ibv_qp* qp) const {
  const std::lock_guard lock(state_->mutex);
  const fake::FakeQp& object = fake::Of(qp);
  return {.state = object.current,
          .send_slots_used = static_cast<uint32_t>(object.sends_posted - object.sends_freed),
          .recv_slots_used = object.recv_slots_used,
          .sends_waiting = object.send_queue.size(),
          .blob_accepted = object.blob_accepted};
}

void FakeFabric::set_rnr_exhausts(bool on) {
  const std::lock_guard lock(state_->mutex);
  state_->rnr_exhausts = on;
}

void FakeFabric::set_signals_queued(bool on) {
  const std::lock_guard lock(state_->mutex);
  state_->signals_queued = on;
}

void FakeFabric::SwallowNextEvent(ibv_cq* cq) {
  const std::lock_guard lock(state_->mutex);
  ++fake::Of(cq).swallow;
}

void FakeFabric::SendSpuriousEvent(ibv_cq* cq) {
  const std::lock_guard lock(state_->mutex);
  fake::WriteEvent(fake::Of(cq));
}

void FakeFabric::HoldEvents(ibv_cq* cq) {
  const std::lock_guard lock(state_->mutex);
  fake::Of(cq).hold = true;
}

void FakeFabric::ReleaseEvents(ibv_cq* cq) {
  const std::lock_guard lock(state_->mutex);
  fake::FakeCq& object = fake::Of(cq);
  object.hold = false;
  for (; object.seen.events_held > 0; --object.seen.events_held) fake::WriteEvent(object);
}

void FakeFabric::InjectCompletion(ibv_cq* cq, const ibv_wc& completion, bool solicited) {
  const std::lock_guard lock(state_->mutex);
  state_->Push(fake::Of(cq), {.wc = completion, .solicited = solicited, .covers = {}});
}

void FakeFabric::FailNextSend(ibv_qp* qp, ibv_wc_status status) {
  const std::lock_guard lock(state_->mutex);
  fake::Of(qp).fail_next = status;
}

void FakeFabric::RaiseAsyncEvent(ibv_qp* qp, const AsyncEvent& event) {
  const std::lock_guard lock(state_->mutex);
  state_->RaiseAsync(*fake::Of(qp).owner, event);
}

void FakeFabric::RunAt(FakePoint point, const void* object, std::function<void()> action) {
  const std::lock_guard lock(state_->mutex);
  state_->hooks[{point, object}].push_back(std::move(action));
  state_->hooks_waiting.fetch_add(1, std::memory_order_release);
}

}  // namespace verbscope
