// How a measuring loop is told to stop, and how a sleeping one is woken to see it.
//
// The control thread owns the decision: peer lost, work done, time up, interrupted, device event.
// It calls Stop() once with the reason; the first reason wins. The measuring thread reads one
// relaxed atomic on an empty poll and nothing else. A thread that sleeps in a blocking read of a
// completion channel cannot see a flag: the control thread sends it a directed signal from Tick(),
// again and again until it has left the read, so a signal that arrives just before the read is no
// race.
//
// One StopSignal serves one measuring thread. Attach and Detach are called by that thread, Stop and
// Tick by any other.
#ifndef VERBSCOPE_CORE_WAIT_STOP_H_
#define VERBSCOPE_CORE_WAIT_STOP_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace verbscope {

enum class StopReason : uint8_t {
  kNone,
  kDone,         // the other side has finished this phase
  kPeerLost,     // control connection closed, reset, silent, or the peer aborted
  kInterrupted,  // SIGINT or SIGTERM here
  kDeadline,     // the command's own deadline
  kDevice,       // an asynchronous event says that the device or QP is broken
};

class StopSignal {
 public:
  // How long a thread may sleep in one read before it is woken to look for a lost wake-up.
  static constexpr uint64_t kSleepCheckNs = 100'000'000;

  StopSignal() = default;
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The only read in a loop: relaxed, because nothing is published through it.
  bool stopped() const { return reason_.load(std::memory_order_relaxed) != StopReason::kNone; }
  StopReason reason() const { return reason_.load(std::memory_order_acquire); }

  void Stop(StopReason reason);
  // Sleeps until Stop. For a side that takes no part in a phase; needs no Tick.
  void Await() const { reason_.wait(StopReason::kNone, std::memory_order_acquire); }
  // Clears the reason between two phases. Only while no thread is attached.
  void Reset();

  // The calling thread is the one to wake until Detach. Installs the wake-up signal's empty
  // handler, without SA_RESTART, so that read(2) returns EINTR.
  void Attach();
  void Detach();

  // Events of this thread's queue may come so much later than their completions, because the device
  // holds them back on purpose. Before a loop, by the thread that starts it.
  void set_late_events_ms(int ms) { late_events_ms_.store(ms, std::memory_order_relaxed); }
  int late_events_ms() const { return late_events_ms_.load(std::memory_order_relaxed); }

  // Called by the attached thread around each blocking read. The sequence is odd while it sleeps.
  void BeginSleep() { sleep_sequence_.fetch_add(1, std::memory_order_acq_rel); }
  void EndSleep() { sleep_sequence_.fetch_add(1, std::memory_order_acq_rel); }

  // Called by the control thread every few tens of milliseconds: wakes the attached thread when it
  // sleeps although stop was asked for, or has slept in one read for kSleepCheckNs.
  void Tick();

 private:
  std::atomic<StopReason> reason_ = StopReason::kNone;
  std::atomic<uint64_t> sleep_sequence_ = 0;
  std::atomic<int> late_events_ms_ = 0;

  std::mutex mutex_;  // guards what follows, and that the thread lives while it is signalled
  bool attached_ = false;
  pthread_t thread_ = {};
  uint64_t seen_sequence_ = 0;  // sleep seen by an earlier Tick, and since when
  uint64_t seen_since_ns_ = 0;
};

// Attaches for a scope.
class StopAttachment {
 public:
  explicit StopAttachment(StopSignal& stop) : stop_(stop) { stop_.Attach(); }
  ~StopAttachment() { stop_.Detach(); }
  StopAttachment(const StopAttachment&) = delete;
  StopAttachment& operator=(const StopAttachment&) = delete;

 private:
  StopSignal& stop_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_WAIT_STOP_H_
