// Several threads that keep many queue pairs busy, each thread at a completion queue of its own or
// all at one: the fast path of cq-scale.
//
// Every request is signalled, and each completion lets the thread that took it post the next
// request of the same queue pair, whoever posted the one before. So the threads share nothing of
// ours but one line of the ledger per request; what they wait for at each other are the locks of
// the device's library, which is what is measured.
//
// Checked of each completion: wr_id names a queue pair of this CQ, qp_num is that queue pair's (the
// second key), the request is in flight, and, where one thread takes all completions of a queue
// pair, none came before it that was posted later.
//
// The threads live within one call; each runs on the CPUs of the caller. Every loop ends by the
// clock: at the end of the measured time nothing more is posted, and what is then in flight has
// `drain_ticks` to come. The caller's join is bounded by that.
#ifndef VERBSCOPE_CORE_LOOPS_CQ_WORKERS_H_
#define VERBSCOPE_CORE_LOOPS_CQ_WORKERS_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/clock/clock.h"
#include "core/host/thread_usage.h"
#include "core/loops/loop.h"
#include "core/loops/request_ledger.h"
#include "core/wait/stop.h"

namespace verbscope {

struct CqWorkersSetup {
  std::span<ibv_cq* const> cqs;
  // Queue pair i completes into CQ i % cqs.size(), and request i is its signalled one. Its send
  // queue holds `ledger->depth()` requests or more.
  std::span<ibv_qp* const> qps;
  std::span<const ibv_send_wr> requests;
  ibv_wc_opcode opcode = IBV_WC_RDMA_WRITE;  // of the completions
  uint32_t threads = 1;                      // cqs.size(), or any number at one CQ
  uint32_t phase = 0;  // 0 … RequestLedger::kPhases - 1, each once per ledger
  uint64_t ticks = 0;  // measured time
  uint64_t drain_ticks = 0;
  RequestLedger* ledger = nullptr;  // empty
  const StopSignal* stop = nullptr;
};

struct CqMismatch {
  enum class Kind : uint8_t {
    kNone,
    kWrId,      // names no queue pair of this CQ, or no request of ours; expected: their number
    kQpNum,     // expected and got are queue pair numbers
    kOpcode,    // likewise opcodes
    kInFlight,  // a request that is not in flight: got is its number
    kOrder,     // likewise the numbers of requests
  };
  Kind kind = Kind::kNone;
  uint64_t wr_id = 0;
  size_t qp_index = 0;
  uint64_t expected = 0;
  uint64_t got = 0;
};

struct CqWorkersOutcome {
  LoopEnd end = LoopEnd::kComplete;  // of the first thread that did not come to the end
  uint64_t messages = 0;             // completed
  uint64_t polls = 0;                // that found one or more
  uint64_t first_ticks = 0;
  uint64_t last_ticks = 0;      // last completion
  ThreadUsage usage;            // of all threads together
  uint64_t never_came = 0;      // completions, within drain_ticks
  CqMismatch mismatch;          // with kMismatch
  ibv_wc failure = {};          // with kSendFailed
  int post_errno = 0;           // with kPostFailed
  bool threads_failed = false;  // the system gave no more threads; post_errno says why
};

CqWorkersOutcome RunCqWorkers(const CqWorkersSetup& setup, const Clock& clock);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_CQ_WORKERS_H_
