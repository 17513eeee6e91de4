// SEND ping-pong: the fast path of send-lat. One message in flight; each side answers what it
// hears.
//
// What a sample is. Both sides read the clock once per message, when the receive completion is
// seen. A sample is the time between two such readings: one full round trip, so the recorded value
// is half of it. Both sides run the same code and take the same number of samples: the first round
// trip of a phase starts both clocks and is no sample.
//
// What is inside a sample. Receive completion -> post of the answer -> wire -> the peer's same two
// steps -> wire -> receive completion. Everything else (recording, re-posting receives, reaping
// send completions) is done while the answer is on its way. Send completions are signalled once in
// `signal_every` messages, on a CQ of their own without a channel: no wait ever includes one, and
// event mode has exactly one wake-up per message (unlike tools that also sleep for the send).
//
// The loop allocates, formats and logs nothing and looks at no option. It is instantiated per way
// of waiting (core/wait) and per clock (core/clock) in ping_pong.cc; PingPongLoop below is the
// body.
//
// Threads: the calling thread owns QP and CQs until the loop returns. The control thread talks to
// it through the StopSignal and drains the IntervalRecorder.
#ifndef VERBSCOPE_CORE_LOOPS_PING_PONG_H_
#define VERBSCOPE_CORE_LOOPS_PING_PONG_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "core/clock/clock.h"
#include "core/loops/interval_recorder.h"
#include "core/loops/loop.h"
#include "core/plan/plan.h"
#include "core/wait/stop.h"
#include "core/wait/wait.h"
#include "transports/device.h"

namespace verbscope {

// What outlives a phase: queues go on where the last phase left them.
struct PingPongState {
  uint32_t unsignalled = 0;     // sends since the last signalled one
  uint32_t consumed = 0;        // receives to give back, fewer than a batch
  bool signal_pending = false;  // a signalled send has not been reaped
};

// Everything prebuilt: the loop only posts.
struct PingPongSetup {
  Device* device = nullptr;
  ibv_qp* qp = nullptr;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
  ibv_send_wr* send = nullptr;  // unsignalled
  ibv_send_wr* signalled_send = nullptr;
  std::span<ibv_recv_wr> recv_batch;  // linked; posted as one list each recv_batch.size() messages
  bool shares_cpu = false;            // busy pollers yield: too few CPUs for both sides
  uint32_t signal_every = 1;          // 1 … send queue depth / 2
  PingPongState* state = nullptr;
  StopSignal* stop = nullptr;
  IntervalRecorder* recorder = nullptr;
};

// Runs one phase. `spin` and `wait` choose the instantiation once, before the loop.
LoopOutcome RunPingPong(LoopRole role, const PingPongSetup& setup, LoopLength length, WaitMode wait,
                        const Clock& clock);

// The body. Template parameters: Role is a compile-time constant because it only decides who posts
// first and who tests for the end.
template <LoopRole kRole, class Waiter, class TickClock>
class PingPongLoop {
 public:
  PingPongLoop(const PingPongSetup& setup, LoopLength length, Waiter& waiter)
      : setup_(setup), length_(length), waiter_(waiter), state_(*setup.state) {}

  LoopCounts Run() {
    // Every post is followed by a look at the signalled send before the next post.
    if (kRole == LoopRole::kRequester && (!Post() || !Reap())) return outcome_;
    if (!Receive()) return outcome_;
    uint64_t previous = TickClock::Now();
    outcome_.first_ticks = outcome_.last_ticks = previous;
    const uint64_t end_ticks = EndOf(previous, length_.ticks);
    if (!Post()) return outcome_;
    setup_.recorder->Start(previous);
    if (!Refill()) return outcome_;
    for (;;) {
      if (!Receive()) return outcome_;
      const uint64_t now = TickClock::Now();
      const uint64_t sample = now - previous;
      outcome_.last_ticks = previous = now;
      ++outcome_.samples;
      if constexpr (kRole == LoopRole::kRequester) {
        if (outcome_.samples >= length_.messages || now >= end_ticks) {
          setup_.recorder->Record(now, sample);
          Refill();
          return outcome_;
        }
      }
      const bool posted = Post();
      setup_.recorder->Record(now, sample);
      if (!posted || !Refill()) return outcome_;
    }
  }

 private:
  bool Post() {
    const bool signal = ++state_.unsignalled >= setup_.signal_every;
    ibv_send_wr* const request = signal ? setup_.signalled_send : setup_.send;
    if (!PostSends(setup_.qp, request, outcome_)) return false;
    ++outcome_.sent;
    if (signal) {
      state_.unsignalled = 0;
      state_.signal_pending = true;
    }
    return true;
  }

  bool Receive() {
    ibv_wc wc;
    if (!Judge(waiter_.Next(&wc, 1), wc, LoopEnd::kRecvFailed, outcome_)) return false;
    ++outcome_.received;
    return true;
  }

  // Work that may wait until a message is on its way: give back consumed receives a batch at a
  // time, and reap the one signalled send before the next may be posted.
  bool Refill() {
    if (++state_.consumed >= setup_.recv_batch.size()) {
      state_.consumed = 0;
      if (!PostReceives(setup_.qp, setup_.recv_batch.data(), outcome_)) return false;
    }
    return Reap();
  }

  bool Reap() { return !state_.signal_pending || ReapSend(); }

  // Polls once. It insists only when the next post would be signalled too: by then the completion
  // came many round trips ago, except with signal_every 1.
  bool ReapSend() {
    do {
      ibv_wc wc;
      const int polled = ibv_poll_cq(setup_.send_cq, 1, &wc);
      if (polled == 0) continue;
      if (!Judge(polled, wc, LoopEnd::kSendFailed, outcome_)) return false;
      state_.signal_pending = false;
      return true;
    } while (state_.unsignalled + 1 >= setup_.signal_every && !setup_.stop->stopped());
    return true;
  }

  const PingPongSetup setup_;
  const LoopLength length_;
  Waiter& waiter_;
  PingPongState& state_;
  LoopCounts outcome_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_PING_PONG_H_
