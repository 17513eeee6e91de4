// Completion events, asynchronous events, and what peers are told of both.
#include <unistd.h>

#include <algorithm>

#include "transports/soft/device/core.h"
#include "transports/soft/device/event_fd.h"

namespace verbscope::soft {

namespace {

// Events that nobody takes, of a program that armed once and polls.
constexpr size_t kMaxStayingEvents = 65536;

// The CQ of the channel that was made after `cq`, or the first; `cq` if there is no other.
SoftCq* NextCqOf(const SoftChannel& channel, SoftCq& cq) {
  const auto at = std::ranges::find(channel.cqs, &cq);
  return at + 1 == channel.cqs.end() ? channel.cqs.front() : *(at + 1);
}

}  // namespace

void SoftCore::OnCompletionEvent(CompletionQueue& queue) {
  SoftCq& cq = OwnerOf(queue);
  // The arm is spent: what comes for other QPs of the CQ, or for their sends, must not wake
  // anybody.
  ArmPeers(cq);
  cq.shown = queue.size();
  const EventTiming& timing = options_.hooks.events;
  if (timing.late.count() > 0) [[unlikely]] {
    if (!cq.late_event_ns) {
      cq.late_event_ns = NowNs() + static_cast<uint64_t>(timing.late.count());
    }
    WatchTime(cq);
    return;
  }
  RaiseCqEvent(cq);
}

void SoftCore::WatchTime(SoftCq& cq) {
  if (std::ranges::find(timed_cqs_, &cq) == timed_cqs_.end()) timed_cqs_.push_back(&cq);
}

void SoftCore::RaiseCqEvent(SoftCq& cq) {
  if (cq.channel == nullptr) return;
  SoftChannel& channel = Of(cq.channel);
  if (options_.hooks.events.coalesce &&
      std::ranges::find(channel.events, &cq) != channel.events.end()) {
    return;
  }
  if (channel.events.size() >= kMaxStayingEvents && Has(Defect::kStaysArmed)) [[unlikely]]
    return;
  channel.events.push_back(Has(Defect::kForeignEvent) ? NextCqOf(channel, cq) : &cq);
  ++events_raised;
  if (!channel.reading) AddOne(channel.event_fd);
}

SoftCq* SoftCore::TakeCqEvent(SoftChannel& channel, uint64_t now_ns) {
  channel.reading = true;
  bool woken = false;
  for (int round = 0; round < kMaxRounds; ++round) {
    // Emptied before looking: what is written from now on is seen by the next sleep.
    const uint64_t written = link_->wakes().channels;
    woken |= TakeOne(channel.event_fd);
    Drive(now_ns);
    // A device that talks to itself may have written to this very channel.
    if (link_->wakes().channels == written && !link_->Backlog()) break;
  }
  if (channel.events.empty() && woken && ArmPeersAgain(channel)) Drive(now_ns);
  channel.reading = false;
  SoftCq* first = nullptr;
  if (!channel.events.empty()) {
    first = channel.events.front();
    channel.events.pop_front();
  }
  if (!channel.events.empty() || link_->Backlog()) AddOne(channel.event_fd);
  return first;
}

bool SoftCore::ArmPeersAgain(SoftChannel& channel) {
  bool armed = false;
  for (SoftCq* cq : channel.cqs) {
    if (cq->queue.armed() == CompletionQueue::Armed::kNo) continue;
    ArmPeers(*cq);
    armed = true;
  }
  return armed;
}

void SoftCore::Forget(SoftCq& cq) {
  ForgetAsyncEvents(Public(cq));
  std::erase(timed_cqs_, &cq);
  std::erase(overrun_, &cq.queue);
  if (cq.channel == nullptr) return;
  SoftChannel& channel = Of(cq.channel);
  --channel.refcnt;
  std::erase(channel.cqs, &cq);
  // Its events go with it; what else was written to the descriptor is found by delivering.
  if (std::erase(channel.events, &cq) == 0) return;
  TakeOne(channel.event_fd);
  Drive(NowNs());
  if (!channel.events.empty() || link_->Backlog()) AddOne(channel.event_fd);
}

void SoftCore::ArmPeers(SoftCq& cq) {
  if (cq.channel == nullptr) return;
  const uint32_t channel = Of(cq.channel).link_id;
  const CompletionQueue::Armed armed = cq.queue.armed();
  const bool solicited = armed == CompletionQueue::Armed::kSolicited;
  const auto apply = [&](QueuePair* qp, ArmSide side) {
    if (qp->path() == kNoPath) return;
    if (armed == CompletionQueue::Armed::kNo) {
      link_->Disarm(qp->path(), qp->qpn(), side);
    } else {
      link_->Arm(qp->path(), qp->qpn(), side, channel, solicited);
    }
  };
  for (QueuePair* qp : cq.receive_qps) apply(qp, ArmSide::kReceive);
  for (QueuePair* qp : cq.send_qps) apply(qp, ArmSide::kSend);
}

void SoftCore::ArmPeersOf(QueuePair& qp) {
  ArmPeers(OwnerOf(*qp.recv_cq()));
  if (qp.send_cq() != qp.recv_cq()) ArmPeers(OwnerOf(*qp.send_cq()));
}

void SoftCore::DisarmPeersOf(const QueuePair& qp) {
  if (qp.path() == kNoPath) return;
  link_->Disarm(qp.path(), qp.qpn(), ArmSide::kReceive);
  link_->Disarm(qp.path(), qp.qpn(), ArmSide::kSend);
}

void SoftCore::RaiseAsync(const ibv_async_event& event) {
  if (Has(Defect::kNoAsync)) return;
  async_events_.push_back(event);
  AddOne(async_fd_);
}

void SoftCore::OnQpEvent(ibv_event_type type, QueuePair& qp) {
  ibv_async_event event = {};
  event.element.qp = Public(*static_cast<SoftQp*>(qp.owner()));
  event.event_type = type;
  RaiseAsync(event);
}

void SoftCore::OnCqError(CompletionQueue& queue) {
  overrun_.push_back(&queue);
  ibv_async_event event = {};
  event.element.cq = Public(OwnerOf(queue));
  event.event_type = IBV_EVENT_CQ_ERR;
  RaiseAsync(event);
}

void SoftCore::OnSrqEvent(ibv_event_type type, ReceiveQueue& srq) {
  if (Has(Defect::kNoSrqLimit) && type == IBV_EVENT_SRQ_LIMIT_REACHED) return;
  ibv_async_event event = {};
  event.element.srq = &static_cast<OwnedReceiveQueue&>(srq).owner;
  event.event_type = type;
  RaiseAsync(event);
}

std::optional<ibv_async_event> SoftCore::TakeAsyncEvent() {
  if (async_events_.empty()) return std::nullopt;
  TakeOne(async_fd_);
  const ibv_async_event event = async_events_.front();
  async_events_.pop_front();
  return event;
}

void SoftCore::ForgetAsyncEvents(const void* element) {
  // Every kind of element is a pointer to an object, except a port number, which no event here has.
  const size_t dropped = std::erase_if(async_events_, [element](const ibv_async_event& event) {
    return static_cast<const void*>(event.element.qp) == element;
  });
  for (size_t i = 0; i < dropped; ++i) TakeOne(async_fd_);
}

}  // namespace verbscope::soft
