#include "core/scenario/cq_threads.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "core/loops/wr_id.h"
#include "core/plan/cq_plan.h"

namespace verbscope {
namespace {

constexpr const char* kSource =
    "ibv_poll_cq(3), ibv_req_notify_cq(3): thread-safe; each completion is taken once; "
    "ibv_get_cq_event(3): every event must be acknowledged";
constexpr uint32_t kSendDepth = 64;
// So many messages of each queue pair, then a pause long enough for the threads to arm and sleep.
constexpr uint32_t kBurst = 16;
constexpr std::chrono::microseconds kPause(300);
constexpr int kSleepMs = 20;
constexpr int kBatch = 4;
constexpr std::chrono::seconds kLimit(15);  // below a step's time

// What the threads found, together.
struct Tally {
  explicit Tally(size_t completions)
      : due(completions), times(new std::atomic<uint8_t>[completions]()) {}
  const size_t due;                                     // completions
  const std::unique_ptr<std::atomic<uint8_t>[]> times;  // how often each came
  std::atomic<uint64_t> seen = 0;
  std::atomic<uint64_t> doubled = 0;
  std::atomic<uint64_t> foreign = 0;  // of no request, or of another queue pair
  std::atomic<uint64_t> failed = 0;   // status
  std::atomic<uint64_t> events = 0;
  std::atomic<uint64_t> sleeps = 0;
  std::atomic<int> error = 0;  // errno of a call
};

class Poller {
 public:
  Poller(Stage& stage, QpSet& set, uint32_t messages, Deadline deadline, Tally& tally)
      : stage_(stage), set_(set), messages_(messages), deadline_(deadline), tally_(tally) {}

  void Run() {
    while (Going()) {
      if (Poll()) continue;
      if (const int refused = ibv_req_notify_cq(set_.cq(), 0); refused != 0) {
        tally_.error = refused;
        return;
      }
      // What came before the arm raises no event.
      if (!Poll() && Going()) Sleep();
    }
  }

 private:
  // Until all are there, or none has come for as long as a completion may take.
  bool Going() {
    if (const uint64_t seen = tally_.seen.load(); seen != last_seen_) {
      last_seen_ = seen;
      patience_ = Deadline::After(stage_.CompletionLimit());
    }
    return !patience_.Passed() && tally_.seen.load() < tally_.due && tally_.error.load() == 0 &&
           !stage_.stop().stopped() && !deadline_.Passed();
  }

  bool Poll() {
    ibv_wc wcs[kBatch];
    const int got = ibv_poll_cq(set_.cq(), kBatch, wcs);
    if (got < 0) tally_.error = EIO;
    for (int i = 0; i < got; ++i) Record(wcs[i]);
    return got > 0;
  }

  void Record(const ibv_wc& wc) {
    const size_t index = QpIndexOf(wc.wr_id);
    const uint64_t number = SequenceOf(wc.wr_id);
    if (KindOf(wc.wr_id) != WrKind::kRecv || index >= set_.size() || number >= messages_ ||
        wc.qp_num != set_.qp(index)->qp_num) {
      ++tally_.foreign;
      return;
    }
    if (wc.status != IBV_WC_SUCCESS) ++tally_.failed;
    if (tally_.times[index * messages_ + number].fetch_add(1) == 0) {
      ++tally_.seen;
    } else {
      ++tally_.doubled;
    }
  }

  // Bounded, since another thread may take the event, or the last completion.
  void Sleep() {
    ++tally_.sleeps;
    pollfd readable = {.fd = set_.channel()->fd, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, kSleepMs) <= 0) return;
    Expected<ibv_cq*> cq = stage_.device().GetCqEvent(set_.channel());
    if (!cq) {
      tally_.error = cq.error().errno_value != 0 ? cq.error().errno_value : EIO;
    } else if (*cq != nullptr) {
      stage_.device().AckCqEvents(*cq, 1);
      ++tally_.events;
    }
  }

  Stage& stage_;
  QpSet& set_;
  const uint32_t messages_;
  const Deadline deadline_;
  Tally& tally_;
  uint64_t last_seen_ = 0;
  Deadline patience_ = Deadline::After(stage_.CompletionLimit());
};

// Ends by the deadline, so the join does.
void RunPollers(Stage& stage, QpSet& set, uint32_t messages, Tally& tally) {
  const Deadline deadline = Deadline::After(kLimit);
  std::vector<std::thread> threads;
  try {
    for (uint32_t i = 0; i < kThreadsPollers; ++i) {
      threads.emplace_back([&] { Poller(stage, set, messages, deadline, tally).Run(); });
    }
  } catch (const std::system_error& error) {
    tally.error = error.code().value();
  }
  for (std::thread& thread : threads) thread.join();
}

CheckRow RowOf(const Stage& stage, const Tally& tally) {
  CheckRow row{.name = stage.name(),
               .status = "pass",
               .expected = fmt::format("each of {} completions once, of its own queue pair, by {} "
                                       "threads that poll and arm one CQ",
                                       tally.due, kThreadsPollers),
               .source = kSource};
  const uint64_t lost = tally.due - tally.seen;
  if (tally.error != 0) {
    row.status = "fail";
    row.observed = fmt::format("a thread's call failed with errno {} after {} completions",
                               tally.error.load(), tally.seen.load());
  } else if (lost + tally.doubled + tally.foreign + tally.failed > 0) {
    row.status = "fail";
    row.observed = fmt::format(
        "{} lost, {} came twice, {} of a wr_id or qp_num that was not due, {} with an error, of {}",
        lost, tally.doubled.load(), tally.foreign.load(), tally.failed.load(), tally.due);
  } else {
    row.observed = fmt::format(
        "{} completions of {} queue pairs taken once each by {} threads; {} events, all "
        "acknowledged, in {} sleeps",
        tally.due, kThreadsQps, kThreadsPollers, tally.events.load(), tally.sleeps.load());
  }
  return row;
}

Status Receive(Stage& stage) {
  const uint32_t messages = ThreadsMessages(stage.plan());
  Expected<QpSet*> made = stage.MakeQpSet({.qps = kThreadsQps,
                                           .cqe = kThreadsQps * (messages + 1),
                                           .channel = true,
                                           .receive_depth = messages});
  if (!made) return Fail(std::move(made.error()));
  QpSet& set = **made;
  for (uint32_t qp = 0; qp < kThreadsQps; ++qp) {
    for (uint32_t i = 0; i < messages; ++i) {
      if (const int refused = set.PostReceive(qp, MakeWrId(WrKind::kRecv, qp, i)); refused != 0) {
        return Fail(
            CallError(ErrorClass::kRun, "ibv_post_recv", fmt::format("receive {}", i), refused));
      }
    }
  }
  if (Status status = set.Connect(); !status) return status;
  Tally tally(size_t{kThreadsQps} * messages);
  RunPollers(stage, set, messages, tally);
  if (Status status = stage.Stopped(); !status) return status;
  CheckRow row = RowOf(stage, tally);
  const bool lost = tally.seen < tally.due;
  stage.Check(row);
  if (lost) stage.GiveUp(row.observed);
  return stage.Meet("received");
}

// Posts a burst on each queue pair and takes its completions. False: one did not come, and what
// became of the messages is the responder's to say.
Expected<bool> SendBurst(Stage& stage, QpSet& set, uint32_t from, uint32_t count) {
  for (uint32_t qp = 0; qp < set.size(); ++qp) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t wr_id = MakeWrId(WrKind::kSend, qp, from + i);
      if (const int refused = set.PostSend(qp, IBV_WR_SEND, wr_id); refused != 0) {
        return Fail(CallError(ErrorClass::kRun, "ibv_post_send",
                              fmt::format("message {}", from + i), refused));
      }
    }
  }
  for (uint32_t due = count * set.size(); due > 0; --due) {
    Expected<std::optional<ibv_wc>> wc = stage.Await(set.cq(), stage.CompletionLimit());
    if (!wc) return Fail(std::move(wc.error()));
    if (!*wc) return false;
    if ((*wc)->status == IBV_WC_SUCCESS) continue;
    return Fail(set.Explain(**wc, QpIndexOf((*wc)->wr_id) % set.size(), "SEND", from + 1));
  }
  return true;
}

Status Send(Stage& stage) {
  const uint32_t messages = ThreadsMessages(stage.plan());
  Expected<QpSet*> made = stage.MakeQpSet(
      {.qps = kThreadsQps, .cqe = kThreadsQps * kSendDepth, .send_depth = kSendDepth});
  if (!made) return Fail(std::move(made.error()));
  if (Status status = (*made)->Connect(); !status) return status;
  for (uint32_t sent = 0; sent < messages; sent += kBurst) {
    const uint32_t count = std::min(kBurst, messages - sent);
    Expected<bool> came = SendBurst(stage, **made, sent, count);
    if (!came) return Fail(std::move(came.error()));
    if (!*came) break;
    if (Status status = stage.Rest(kPause); !status) return status;
  }
  return stage.Meet("received");
}

}  // namespace

Scenario CqThreads() { return {.name = "cq-threads", .requester = Send, .responder = Receive}; }

}  // namespace verbscope
