// Watches calls that may never return. ibv_destroy_cq and ibv_destroy_qp wait inside libibverbs,
// without limit, until every event taken from them was acknowledged; one that was forgotten, in
// this program or in a driver, turns a clean-up after an error into a hang that hides the error.
//
// A call that is late is named on standard error, once. A call that is very late cannot be
// interrupted: the thread that made it is lost, and only ending the process helps. Whether and how
// is the caller's decision, so a callback is called, once per call; it should flush what it has and
// leave with ExitCode(ErrorClass::kDeadline).
//
// Threads: Run may be called from several threads at once. One supervising thread is started by the
// first call and joined by the destructor; both callbacks run on it, and must not call back into
// the watchdog. The destructor must not run while a call is still inside Run.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_TEARDOWN_WATCHDOG_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_TEARDOWN_WATCHDOG_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace verbscope {

class TeardownWatchdog {
 public:
  struct Options {
    std::chrono::nanoseconds warn_after = std::chrono::seconds(2);
    std::chrono::nanoseconds give_up_after = std::chrono::seconds(10);  // from the call's start
    // Takes the line, without its end. Default: standard error.
    std::function<void(const std::string& line)> warn = {};
    // Called when a call is given up; takes the same kind of line. Default: nothing.
    std::function<void(const std::string& line)> on_stuck = {};
  };

  TeardownWatchdog() : TeardownWatchdog(Options()) {}
  explicit TeardownWatchdog(Options options);
  ~TeardownWatchdog();
  TeardownWatchdog(const TeardownWatchdog&) = delete;
  TeardownWatchdog& operator=(const TeardownWatchdog&) = delete;

  // Runs `call` on this thread and returns what it returned. `what` says what is being done and all
  // that explains a wait ("destroying CQ 0x5581 (256 entries; events taken 5, acknowledged 4)"); it
  // is text and not a function, since the object may be freed while the line is written.
  int Run(std::string what, const std::function<int()>& call);

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    std::string what;
    Clock::time_point start;
    int stage = 0;  // 0 in time, 1 warned, 2 given up
  };

  void Supervise();
  // The time at which `watched` reaches its next stage.
  Clock::time_point NextStageOf(const Watched& watched) const;

  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Watched> running_;  // guarded by mutex_, as are the next two
  bool stopping_ = false;
  std::thread supervisor_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_TEARDOWN_WATCHDOG_H_
