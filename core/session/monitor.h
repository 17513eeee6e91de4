// What the control thread does for a running loop: it stops it when the peer is lost or has
// aborted, when the peer says "done", at the deadline, on Ctrl-C and on a fatal asynchronous event;
// it wakes a sleeper, and it folds finished intervals.
//
// One Monitor per session, made by the session's thread, which also destroys it after the last
// loop. Its callbacks run on PeerLink's control thread.
#ifndef VERBSCOPE_CORE_SESSION_MONITOR_H_
#define VERBSCOPE_CORE_SESSION_MONITOR_H_

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/loops/interval_recorder.h"
#include "core/wait/stop.h"
#include "transports/control/peer_link.h"
#include "transports/device.h"

namespace verbscope {

class Monitor {
 public:
  Monitor(PeerLink& link, Device& device, const Interrupt& interrupt, Deadline deadline);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  StopSignal& stop() { return stop_; }
  // Between two phases: clears the stop signal, but not what ends the run for good.
  void Reset();
  // While held, the peer's "done" does not stop this side, which has work of its own to finish; a
  // "done" that came meanwhile stops it at the release.
  void HoldDone(bool hold);
  // The recorder whose intervals are folded; null between phases. After Watch(nullptr) returns, no
  // fold is running.
  void Watch(IntervalRecorder* recorder);
  // From now on events of single QPs ("QP_FATAL on …") stop nothing: whoever breaks QPs on purpose
  // has a deadline for every wait, and looks at completions. They are still kept.
  void TolerateQpEvents() { tolerate_qp_events_.store(true, std::memory_order_relaxed); }
  // The same of events of single CQs ("CQ_ERR on …"), for whoever overruns one on purpose.
  void TolerateCqEvents() { tolerate_cq_events_.store(true, std::memory_order_relaxed); }
  // Every asynchronous event since the last call, oldest first; beyond kMostEvents the rest is
  // forgotten.
  std::vector<std::string> TakeEvents();
  static constexpr size_t kMostEvents = 4096;
  // Why asynchronous events could not be read; nothing: they could.
  std::optional<Error> events_error() const;
  // The first fatal asynchronous event, or, while none was fatal, the last one.
  std::optional<std::string> device_event() const;

 private:
  void Tick();
  void Note(AsyncEvent event);  // with mutex_ held
  bool Tolerated(const AsyncEvent& event) const;
  void Done();
  void Lost();

  PeerLink& link_;
  Device& device_;
  const Interrupt& interrupt_;
  const Deadline deadline_;
  StopSignal stop_;
  std::atomic<bool> tolerate_qp_events_ = false;
  std::atomic<bool> tolerate_cq_events_ = false;
  mutable std::mutex mutex_;
  IntervalRecorder* recorder_ = nullptr;
  bool hold_done_ = false;
  bool done_held_ = false;
  std::optional<std::string> device_event_;
  std::vector<std::string> events_;
  std::optional<Error> events_error_;  // the first
  bool fatal_event_ = false;
  bool lost_ = false;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_MONITOR_H_
