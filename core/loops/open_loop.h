// Messages at times of their own, whether or not earlier ones have been answered: the fast path of
// --rate. A closed loop sends nothing while the fabric stalls, and so shows one slow sample for a
// stall that every user of the fabric would have felt; here all messages that were due meanwhile
// are late, as they would be.
//
// What a sample is. From the time a message was due to its answer (SEND, WRITE with immediate) or
// its completion (READ, Atomic): the response time. Waiting to be sent is part of it, in this
// program or in a queue. At most `depth` messages are in flight; what is due beyond that is sent as
// soon as there is room, and counted as late.
//
// The other side answers with the ping-pong loop. At the end of the time nothing more is sent, what
// is in flight is awaited; what was due and never sent is the difference between offered and
// achieved rate.
//
// Threads as in ping_pong.h; the loop allocates, formats and logs nothing.
#ifndef VERBSCOPE_CORE_LOOPS_OPEN_LOOP_H_
#define VERBSCOPE_CORE_LOOPS_OPEN_LOOP_H_

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/clock/clock.h"
#include "core/loops/atomic_results.h"
#include "core/loops/interval_recorder.h"
#include "core/loops/loop.h"
#include "core/loops/wr_id.h"
#include "core/plan/plan.h"
#include "core/wait/stop.h"
#include "core/wait/wait.h"
#include "transports/device.h"

namespace verbscope {

// A message that is posted so much after it was due counts as sent late.
inline constexpr uint64_t kLateNs = 10'000;

// What outlives a phase.
struct OpenLoopState {
  uint64_t posted = 0;       // on this queue pair
  uint64_t reaped = 0;       // of those: known to be done
  uint32_t unsignalled = 0;  // since the last signalled one
  uint32_t signals = 0;      // signalled and not reaped
  uint32_t consumed = 0;     // receives to give back, fewer than a batch
};

struct OpenLoopSetup {
  Device* device = nullptr;
  ibv_qp* qp = nullptr;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
  ibv_send_wr* request = nullptr;
  unsigned flags = 0;  // of an unsignalled request
  std::span<ibv_recv_wr> recv_batch;
  bool answered = false;  // samples end with a receive, else with the request's own completion
  AtomicOp atomic_op = AtomicOp::kFetchAdd;
  AtomicSlots* atomic = nullptr;
  uint32_t depth = 1;            // messages in flight
  uint32_t send_slots = 1;       // of the send queue, at least depth + 2 * signal_every if answered
  uint32_t signal_every = 1;     // answered only; else every request is signalled
  std::span<uint64_t> due = {};  // scratch: a power of two of entries, at least depth
  std::span<const uint64_t> gaps = {};  // a power of two of entries
  TickScale scale = {};
  bool shares_cpu = false;
  OpenLoopState* state = nullptr;
  StopSignal* stop = nullptr;
  IntervalRecorder* recorder = nullptr;
};

LoopOutcome RunOpenLoop(const OpenLoopSetup& setup, LoopLength length, WaitMode wait,
                        const Clock& clock);

template <bool kAnswered, class Results, class Waiter, class TickClock>
class OpenLoop {
 public:
  OpenLoop(const OpenLoopSetup& setup, LoopLength length, Waiter& waiter, Results results)
      : setup_(setup),
        length_(length),
        late_ticks_(setup.scale.Ticks(kLateNs)),
        waiter_(waiter),
        results_(results),
        state_(*setup.state) {}

  LoopCounts Run() {
    const uint64_t begun = TickClock::Now();
    counts_.first_ticks = counts_.last_ticks = begun;
    end_ticks_ = EndOf(begun, length_.ticks);
    due_ = begun + setup_.gaps[0];
    setup_.recorder->Start(begun);
    for (;;) {
      if (!SendDue()) return counts_;
      if (over_ && counts_.samples == counts_.sent) return counts_;
      const bool nothing_to_send = over_ || InFlight() == setup_.depth;
      ibv_wc wc;
      const int got = nothing_to_send ? waiter_.Next(&wc, 1)
                                      : waiter_.template NextUntil<TickClock>(
                                            wc, std::min(due_, end_ticks_), setup_.scale);
      if (got == kTimeUp) continue;
      if (!Judge(got, wc, kAnswered ? LoopEnd::kRecvFailed : LoopEnd::kSendFailed, counts_)) {
        return counts_;
      }
      if (!Take()) return counts_;
    }
  }

 private:
  uint64_t InFlight() const { return counts_.sent - counts_.samples; }

  bool SendDue() {
    uint64_t now = TickClock::Now();
    while (!over_) {
      over_ = now >= end_ticks_ || counts_.sent >= length_.messages;
      if (over_ || due_ > now || InFlight() == setup_.depth) return true;
      if (!Post()) return false;
      if (now - due_ > late_ticks_) ++counts_.late_sends;
      setup_.due[counts_.sent & (setup_.due.size() - 1)] = due_;
      ++counts_.sent;
      due_ += setup_.gaps[counts_.sent & (setup_.gaps.size() - 1)];
      now = TickClock::Now();
    }
    return true;
  }

  bool Post() {
    ibv_send_wr& request = *setup_.request;
    results_.Prepare(request);
    if constexpr (kAnswered) {
      const bool signal = ++state_.unsignalled >= setup_.signal_every;
      request.send_flags = SendFlags(setup_.flags, signal);
      request.wr_id = MakeWrId(WrKind::kSend, 0, state_.posted + 1);
      if (!Reap() || !PostSends(setup_.qp, &request, counts_)) return false;
      if (signal) {
        state_.unsignalled = 0;
        ++state_.signals;
      }
    } else {
      request.send_flags = SendFlags(setup_.flags, true);
      if (!PostSends(setup_.qp, &request, counts_)) return false;
    }
    ++state_.posted;
    return true;
  }

  // Answered messages only: takes the completions of sends that are there, and insists while the
  // send queue has no room.
  bool Reap() {
    for (;;) {
      const bool full = state_.posted - state_.reaped >= setup_.send_slots;
      if (state_.signals == 0) return true;
      ibv_wc wc;
      const int polled = ibv_poll_cq(setup_.send_cq, 1, &wc);
      if (polled == 0) {
        if (!full) return true;
        if (setup_.stop->stopped()) {
          counts_.end = LoopEnd::kStopped;
          return false;
        }
        continue;
      }
      if (!Judge(polled, wc, LoopEnd::kSendFailed, counts_)) return false;
      --state_.signals;
      state_.reaped += (SequenceOf(wc.wr_id) - state_.reaped) & kWrSequenceMask;
    }
  }

  // One answer or completion.
  bool Take() {
    const uint64_t now = TickClock::Now();
    ++counts_.received;
    setup_.recorder->Record(now, now - setup_.due[counts_.samples & (setup_.due.size() - 1)]);
    counts_.last_ticks = now;
    ++counts_.samples;
    if (!results_.Check(counts_)) return false;
    if constexpr (kAnswered) {
      if (++state_.consumed >= setup_.recv_batch.size()) {
        state_.consumed = 0;
        return PostReceives(setup_.qp, setup_.recv_batch.data(), counts_);
      }
    }
    return true;
  }

  const OpenLoopSetup setup_;
  const LoopLength length_;
  const uint64_t late_ticks_;
  Waiter& waiter_;
  Results results_;
  OpenLoopState& state_;
  uint64_t end_ticks_ = UINT64_MAX;
  uint64_t due_ = 0;
  bool over_ = false;  // nothing more is sent
  LoopCounts counts_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_OPEN_LOOP_H_
