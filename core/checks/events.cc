// Checks of completion events: arming, channels, solicited messages. The events are this side's;
// the other side sends.
#include <fmt/core.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file_descriptor.h"
#include "core/checks/bodies.h"
#include "core/scenario/channel.h"

namespace verbscope {
namespace {

constexpr Piece kMessage = {.offset = 0, .bytes = 64};
constexpr Piece kPlace = {.offset = 1024, .bytes = 64};
constexpr int kQuietMs = 20;
constexpr int kEventMs = 2000;

FreshQpOptions WithChannel() {
  FreshQpOptions options = {};
  options.channel = true;
  return options;
}

void Arm(Trial& trial, ibv_cq* cq, bool solicited) {
  if (!trial.ok()) return;
  if (const int refused = ibv_req_notify_cq(cq, solicited ? 1 : 0); refused != 0) {
    trial.latch().Keep(
        Fail(CallError(ErrorClass::kRun, "ibv_req_notify_cq", "completion queue", refused)));
  }
}

// The CQ of the next event of a channel within `ms`, acknowledged; null: none.
ibv_cq* AwaitEvent(Trial& trial, ibv_comp_channel* channel, int ms) {
  if (!trial.ok()) return nullptr;
  pollfd readable = {.fd = channel->fd, .events = POLLIN, .revents = 0};
  const Deadline deadline = Deadline::After(std::chrono::milliseconds(ms));
  for (;;) {
    // A soft device's descriptor may be readable for a packet that makes no event.
    ibv_cq* const cq = trial.latch().Take(trial.device().GetCqEvent(channel));
    if (cq != nullptr) trial.device().AckCqEvents(cq, 1);
    if (cq != nullptr || !trial.ok() || deadline.Passed()) return cq;
    (void)::poll(&readable, 1, deadline.PollTimeoutMs());
    trial.latch().Keep(trial.stage().Stopped());
  }
}

std::string EventText(ibv_cq* cq) { return cq == nullptr ? "no event" : "an event"; }

// One message from the other side; it is there when this returns.
void Deliver(Trial& trial, const Ends& ends, uint64_t wr_id, unsigned flags = 0) {
  ends.there->PostSend({.wr_id = wr_id, .flags = IBV_SEND_SIGNALED | flags, .pieces = {kMessage}});
  (void)ends.there->AwaitSend(trial.limit());
}

void PostReceives(const Ends& ends, uint64_t count) {
  for (uint64_t i = 1; i <= count; ++i) ends.here->PostReceive({.wr_id = i, .pieces = {kPlace}});
}

// How many completions are there now.
uint64_t Drain(LocalEnd& end) {
  uint64_t count = 0;
  while (end.AwaitReceive(std::chrono::nanoseconds(0))) ++count;
  return count;
}

// A process that has no descriptor left hears so when it asks for a channel.
void ChannelWithoutDescriptor(Trial& trial) {
  if (!trial.ok()) return;
  rlimit limit = {};
  const FileDescriptor lowest(::dup(STDERR_FILENO));
  if (lowest.get() < 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return trial.Skip("no-descriptor", "the limit of descriptors cannot be read");
  }
  rlimit none = limit;
  none.rlim_cur = static_cast<rlim_t>(lowest.get());
  if (::setrlimit(RLIMIT_NOFILE, &none) != 0) {
    return trial.Skip("no-descriptor", "the limit of descriptors cannot be lowered");
  }
  const Expected<CompChannel> channel = trial.device().CreateCompChannel();
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
  trial.Expect("no-descriptor", "refused with EMFILE",
               channel                                 ? "made"
               : channel.error().errno_value == EMFILE ? "refused with EMFILE"
                                                       : channel.error().message);
}

// Arm, sleep, acknowledge, arm again, drain: the order that loses nothing.
void NothingIsLost(Trial& trial) {
  constexpr uint64_t kRounds = 100;
  const Ends ends = trial.Connect(WithChannel(), {});
  if (!ends) return;
  ibv_cq* const cq = ends.here->fresh().receive_cq();
  uint64_t seen = 0;
  Arm(trial, cq, false);
  for (uint64_t round = 0; round < kRounds && trial.ok(); ++round) {
    const uint64_t burst = 1 + round % 3;
    PostReceives(ends, burst);
    for (uint64_t i = 0; i < burst; ++i) ends.there->PostSend({.pieces = {kMessage}});
    uint64_t due = burst;
    while (due > 0 && AwaitEvent(trial, ends.here->fresh().channel(), kEventMs) != nullptr) {
      Arm(trial, cq, false);
      const uint64_t got = Drain(*ends.here);
      due -= std::min(due, got);
      seen += got;
    }
    for (uint64_t i = 0; i < burst; ++i) (void)ends.there->AwaitSend(trial.limit());
    if (due > 0) break;
  }
  trial.Expect("nothing-is-lost", "199 of 199 completions",
               fmt::format("{} of 199 completions", seen));
}

}  // namespace

void CompletionChannel(Trial& trial) {
  const Ends ends = trial.Connect(WithChannel(), {});
  if (!ends) return;
  FreshQp& qp = ends.here->fresh();
  PostReceives(ends, 8);
  trial.Expect("empty", "no event", EventText(AwaitEvent(trial, qp.channel(), 0)));
  Deliver(trial, ends, 1);
  trial.Expect("not-armed", "no event", EventText(AwaitEvent(trial, qp.channel(), kQuietMs)));
  // Two CQs on one channel: each event names its own.
  (void)Drain(*ends.here);
  Arm(trial, qp.receive_cq(), false);
  Arm(trial, qp.send_cq(), false);
  Deliver(trial, ends, 2);
  const bool receive = AwaitEvent(trial, qp.channel(), kEventMs) == qp.receive_cq();
  ends.here->PostSend(
      {.opcode = IBV_WR_RDMA_WRITE, .pieces = {kMessage}, .remote_offset = kPlace.offset});
  const bool send = AwaitEvent(trial, qp.channel(), kEventMs) == qp.send_cq();
  trial.Expect("names-its-cq", "the receive CQ, the send CQ",
               fmt::format("{}, {}", receive ? "the receive CQ" : "another",
                           send ? "the send CQ" : "another"));
  (void)ends.here->AwaitSend(trial.limit());
  (void)Drain(*ends.here);
  // A copy of the descriptor is the same queue; another channel hears nothing.
  CompChannel other = trial.latch().Take(MakeNonBlockingChannel(trial.device()));
  if (!trial.ok()) return;
  const FileDescriptor copy(::dup(qp.channel()->fd));
  Arm(trial, qp.receive_cq(), false);
  Deliver(trial, ends, 3);
  pollfd readable = {.fd = copy.get(), .events = POLLIN, .revents = 0};
  const bool woken = ::poll(&readable, 1, kEventMs) == 1;
  const std::string elsewhere = EventText(AwaitEvent(trial, other.get(), 0));
  const bool taken = AwaitEvent(trial, qp.channel(), kEventMs) == qp.receive_cq();
  trial.Expect("dup-and-no-broadcast", "a dup is readable, an event, elsewhere no event",
               fmt::format("a dup is {}, {}, elsewhere {}", woken ? "readable" : "silent",
                           taken ? "an event" : "no event", elsewhere));
  ChannelWithoutDescriptor(trial);
}

void EventRace(Trial& trial) {
  const Ends ends = trial.Connect(WithChannel(), {});
  if (!ends) return;
  FreshQp& qp = ends.here->fresh();
  PostReceives(ends, 32);
  Arm(trial, qp.receive_cq(), false);
  Deliver(trial, ends, 1);
  const std::string first = EventText(AwaitEvent(trial, qp.channel(), kEventMs));
  Deliver(trial, ends, 2);
  trial.Expect(
      "one-shot", "an event, then no event",
      fmt::format("{}, then {}", first, EventText(AwaitEvent(trial, qp.channel(), kQuietMs))));
  // Several messages, one look: at least one event, and all completions in the queue.
  (void)Drain(*ends.here);
  Arm(trial, qp.receive_cq(), false);
  for (uint64_t i = 3; i <= 5; ++i) Deliver(trial, ends, i);
  const std::string many = EventText(AwaitEvent(trial, qp.channel(), kEventMs));
  trial.Expect("one-for-many", "an event, 3 completions",
               fmt::format("{}, {} completions", many, Drain(*ends.here)));
  while (AwaitEvent(trial, qp.channel(), 0) != nullptr) {
  }
  // What was polled before the arm raises nothing.
  Deliver(trial, ends, 6);
  (void)ends.here->AwaitReceive(trial.limit());
  while (AwaitEvent(trial, qp.channel(), 0) != nullptr) {
  }
  Arm(trial, qp.receive_cq(), false);
  trial.Expect("no-spurious-event", "no event",
               EventText(AwaitEvent(trial, qp.channel(), kQuietMs)));
  NothingIsLost(trial);
}

void Solicited(Trial& trial) {
  const Ends ends = trial.Connect(WithChannel(), {});
  if (!ends) return;
  FreshQp& qp = ends.here->fresh();
  PostReceives(ends, 8);
  Arm(trial, qp.receive_cq(), true);
  Deliver(trial, ends, 1);
  trial.Expect("ordinary", "no event", EventText(AwaitEvent(trial, qp.channel(), kQuietMs)));
  Deliver(trial, ends, 2, IBV_SEND_SOLICITED);
  trial.Expect("solicited", "an event", EventText(AwaitEvent(trial, qp.channel(), kEventMs)));
  (void)Drain(*ends.here);
  Arm(trial, qp.receive_cq(), false);
  Arm(trial, qp.receive_cq(), true);
  Deliver(trial, ends, 3);
  trial.Expect("any-stays-any", "an event", EventText(AwaitEvent(trial, qp.channel(), kEventMs)));
  (void)Drain(*ends.here);
  // A failed completion wakes whoever waits for solicited ones (IBTA vol. 1, 11.4.2.2).
  Arm(trial, qp.receive_cq(), true);
  ends.here->ToError();
  trial.Expect("a-failure-wakes", "an event", EventText(AwaitEvent(trial, qp.channel(), kEventMs)));
}

}  // namespace verbscope
