// One run of a check, on the requester's side: the ends it works with, the rows it leaves and its
// first failure. A check is a function of a Trial:
//
//   void Recv(Trial& trial) {
//     const Ends ends = trial.Connect();
//     if (!ends) return;
//     ends.there->PostReceive({.wr_id = 7, .pieces = {{0, 64}}});
//     ends.here->PostSend({.pieces = {{0, 64}}});
//     trial.Expect("status", "requester SUCCESS, responder SUCCESS", trial.AwaitBoth(ends));
//   }
//
// The responder runs ServeCheck meanwhile. The session's thread.
#ifndef VERBSCOPE_CORE_CHECKS_TRIAL_H_
#define VERBSCOPE_CORE_CHECKS_TRIAL_H_

#include <infiniband/verbs.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/checks/end.h"
#include "core/checks/latch.h"
#include "core/checks/local_end.h"
#include "core/checks/remote_end.h"
#include "core/scenario/scenario.h"

namespace verbscope {

// The two ends of one connection. Empty when it could not be made.
struct Ends {
  LocalEnd* here = nullptr;
  RemoteEnd* there = nullptr;
  explicit operator bool() const { return here != nullptr && there != nullptr; }
};

// How long to look for something that must not come.
inline constexpr std::chrono::milliseconds kQuiet(20);

class Trial {
 public:
  explicit Trial(Stage& stage) : stage_(stage), events_(stage) {}
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  Stage& stage() const { return stage_; }
  Device& device() const { return stage_.device(); }
  bool ok() const { return latch_.ok(); }
  Latch& latch() { return latch_; }
  // How long what is due may take.
  std::chrono::nanoseconds limit() const { return stage_.CompletionLimit(); }

  // Two queue pairs in INIT; of a connection in RTS.
  Ends Make(const FreshQpOptions& here, const FreshQpOptions& there);
  bool Join(const Ends& ends);    // to RTS
  bool Rejoin(const Ends& ends);  // from any state through RESET to RTS
  Ends Connect(const FreshQpOptions& here, const FreshQpOptions& there);
  Ends Connect(const FreshQpOptions& both = {}) { return Connect(both, both); }

  // A row: what should be seen in this part of the check, and what was. The two texts are compared;
  // another text may be a deviation that is listed for either side's device (deviations.h) under
  // `rule`, or else "CHECK/PART". Without effect after a failure.
  void Expect(std::string_view part, std::string expected, std::string observed,
              std::string_view rule = {});
  void Skip(std::string_view part, std::string why);

  // "requester SUCCESS, responder LOC_LEN_ERR" of what comes next on both sides, each within the
  // limit: the sender's completion, then the receiver's.
  std::string AwaitBoth(const Ends& ends);
  // The same where nothing may complete at the responder.
  std::string AwaitSendOnly(const Ends& ends);

  // Ends the responder's part. A device that could not make what the check needs is a failed part
  // and not a broken run.
  Status Finish();

 private:
  std::string Name(std::string_view part) const;

  Stage& stage_;
  Latch latch_;
  AsyncEvents events_;
  std::vector<std::unique_ptr<LocalEnd>> here_;
  std::vector<std::unique_ptr<RemoteEnd>> there_;
};

// "SUCCESS", "no completion".
std::string StatusOf(const std::optional<ibv_wc>& wc);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CHECKS_TRIAL_H_
