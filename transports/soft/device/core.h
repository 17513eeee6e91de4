// What one opened soft device is made of, and how it makes progress.
//
// Progress. Whoever polls drives the engine: an empty poll costs a few loads; when a packet waits,
// the poller takes the lock, delivers packets and answers them. A post sends at once. Answers that
// nobody waits for (an ACK) leave with the next post or poll, after the message that the program
// sends in reply. When nobody polls, the helper thread does the same work (helper.h).
//
// Locking. One spin lock for everything the engine and the link touch, and for the tables of
// objects. The link's waiting side and the helper's sleep hold nothing.
//
// Ownership: SoftDevice owns the core; objects point to it.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_CORE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_CORE_H_

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/device.h"
#include "transports/soft/device/device_link.h"
#include "transports/soft/device/event_fd.h"
#include "transports/soft/device/objects.h"
#include "transports/soft/device/packet_path.h"
#include "transports/soft/device/spin_lock.h"
#include "transports/soft/engine/engine.h"
#include "transports/soft/options/hooks.h"
#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

// CLOCK_MONOTONIC in ns: the time of all timers.
uint64_t NowNs();

class SoftCore final : public EventSink, public CompletionFilter, public DataFilter {
 public:
  static Expected<std::unique_ptr<SoftCore>> Create(const SoftOptions& options,
                                                    const DeviceInfo& info, LinkChoice links);
  ~SoftCore() override;
  SoftCore(const SoftCore&) = delete;
  SoftCore& operator=(const SoftCore&) = delete;

  SpinLock& lock() { return lock_; }
  Engine& engine() { return *engine_; }
  DeviceLink& link() { return *link_; }
  const SoftOptions& options() const { return options_; }
  bool Has(Defect defect) const { return options_.defects.Has(defect); }
  verbs_context& verbs() { return verbs_; }
  ControlFaults& control_faults() { return control_faults_; }

  // The data path; see data_path.cc.
  // Whether a poller should take the lock. No lock.
  bool NeedsService() const {
    return attention_.load(std::memory_order_relaxed) || link_->Pending();
  }
  bool attention() const { return attention_.load(std::memory_order_relaxed); }
  void SetAttention() { attention_.store(true, std::memory_order_relaxed); }

  // Lock held. Delivers waiting packets, at most a batch. Returns how many.
  size_t Deliver() { return link_->Poll(packets_->receiver(), kBatch); }
  // Lock held. The same for a poller, who gets `wanted` completions as soon as they are there: what
  // came behind them (an ACK, mostly) can wait until the program has nothing better to do.
  size_t DeliverUntil(const CompletionQueue& cq, uint32_t wanted) {
    size_t delivered = 0;
    while (delivered < kBatch && cq.size() < wanted) {
      const size_t count =
          link_->Poll(packets_->receiver(), std::min<size_t>(kBatch, wanted - cq.size()));
      if (count == 0) break;
      delivered += count;
    }
    return delivered;
  }
  // Lock held. Sends everything that is owed and may be sent, and wakes peers.
  void Service();
  // Lock held. What a post to a QP in ERR may have filled.
  void ServiceOverruns() {
    if (!overrun_.empty()) [[unlikely]]
      FailOverrunCqs();
  }
  // Lock held. Timers, held-back packets and events whose time has come.
  void Tick(uint64_t now_ns);
  // No lock. For every few hundred empty polls: timers, and a sign of life for the helper.
  void IdlePoll();
  // No lock. Timers, unless the lock is taken: then its holder sees to them.
  void LookAtClock();
  // Lock held. Deliver and Service until nothing waits, at most a few rounds; Tick once. Returns
  // how many packets there were.
  size_t Drive(uint64_t now_ns);
  // Lock held. When time matters next; 0: at once.
  std::optional<uint64_t> NextTimer() const;

  // Signs of life of a program that drives the device itself.
  uint64_t activity() const { return activity_.load(std::memory_order_relaxed); }
  // Lock held. The same for a poll that found something to do; now and then also a look at the
  // clock.
  void CountPoll() {
    const uint64_t count = activity_.load(std::memory_order_relaxed) + 1;
    activity_.store(count, std::memory_order_relaxed);
    if (count % kPollsPerTick == 0) [[unlikely]]
      Tick(NowNs());
  }
  void CountActivity() { activity_.fetch_add(1, std::memory_order_relaxed); }

  // Over UDP no peer wakes who waits for an event: the helper has to watch the sockets, from the
  // first arm on until the program polls again and again.
  bool helper_watches() const { return helper_watches_.load(std::memory_order_relaxed); }
  void AskHelperToWatch() {
    if (!link_->udp() || helper_watches()) return;
    helper_watches_.store(true, std::memory_order_relaxed);
    CallHelper();
  }
  // Ends the helper's sleep; any thread. An eventfd.
  void CallHelper() { AddOne(call_fd_); }
  const FileDescriptor& call_fd() const { return call_fd_; }

  // Lock held. After the link's Connect, which may have turned it to UDP or back.
  void UseLink();
  // Lock held. See PacketPath::Lose.
  void Lose(FaultClass packets, uint32_t count) {
    packets_->Lose(packets, count);
    engine_->env().sink = &packets_->sink();
  }

  // Lock held. Tells peers (or withdraws) that a CQ waits for an event.
  void ArmPeers(SoftCq& cq);
  void ArmPeersOf(QueuePair& qp);
  // Lock held. Nothing that comes for the QP raises an event any more.
  void DisarmPeersOf(const QueuePair& qp);
  // Lock held. Delivers what has arrived, and takes the oldest event of a channel: the CQ, or null.
  // Afterwards the channel's descriptor is readable if another event waits, or something new came.
  SoftCq* TakeCqEvent(SoftChannel& channel, uint64_t now_ns);
  // Lock held. The CQ's events may depend on time.
  void WatchTime(SoftCq& cq);
  // Lock held. The CQ, which nothing uses, is about to go.
  void Forget(SoftCq& cq);

  // EventSink and the filters: from the engine, lock held.
  void OnCompletionEvent(CompletionQueue& cq) override;
  void OnQpEvent(ibv_event_type type, QueuePair& qp) override;
  void OnCqError(CompletionQueue& cq) override;
  void OnSrqEvent(ibv_event_type type, ReceiveQueue& srq) override;
  CompletionFate Apply(CompletionKind kind, ibv_wc& wc) override {
    return completion_faults_.Apply(kind, wc);
  }
  DataVerdict NextMessage() override { return data_faults_.NextMessage(); }

  // Lock held. The oldest asynchronous event.
  std::optional<ibv_async_event> TakeAsyncEvent();
  // Lock held. Drops the events of an object that is being destroyed.
  void ForgetAsyncEvents(const void* element);
  int async_fd() const { return async_fd_.get(); }

  // Lock held. Of engine and link together.
  Counters counters() const;
  // Lock held. Faults injected so far, and wake-ups made.
  FaultCounts faults() const { return packets_->faults(); }
  uint64_t helper_wakeups = 0;
  uint64_t events_raised = 0;

 private:
  static constexpr size_t kBatch = 32;
  static constexpr uint64_t kPollsPerTick = 256;
  // A full round of Drive is a batch; more rounds than this wait for the next call.
  static constexpr int kMaxRounds = 16;

  SoftCore(const SoftOptions& options, const DeviceInfo& info);
  // Raises the event of a CQ on its channel.
  void RaiseCqEvent(SoftCq& cq);
  // Peers that were woken in vain are asked again. True: some CQ of the channel is armed.
  bool ArmPeersAgain(SoftChannel& channel);
  void RaiseAsync(const ibv_async_event& event);
  void FailOverrunCqs();

  const SoftOptions options_;
  ControlFaults control_faults_;
  CompletionFaults completion_faults_;
  DataFaults data_faults_;
  SpinLock lock_;
  // Read by every poll and written seldom: on a line of its own, away from the lock.
  alignas(64) std::atomic<bool> attention_{false};
  alignas(64) std::atomic<uint64_t> activity_{0};

  ibv_device device_{};
  verbs_context verbs_{};
  Counters link_counters_;
  std::unique_ptr<DeviceLink> link_;
  std::unique_ptr<PacketPath> packets_;
  std::unique_ptr<Engine> engine_;
  FileDescriptor call_fd_;
  std::atomic<bool> helper_watches_{false};
  bool used_udp_ = false;    // at the last UseLink
  FileDescriptor async_fd_;  // eventfd in semaphore mode: one count per event
  std::deque<ibv_async_event> async_events_;
  std::vector<CompletionQueue*> overrun_;
  std::vector<SoftCq*> timed_cqs_;  // with an event that is held back, or moderation
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_CORE_H_
