#include "core/loops/cq_workers.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "core/wait/wait.h"

namespace verbscope {
namespace {

constexpr int kBatch = 16;
constexpr size_t kCacheLine = 64;
// An empty poller looks at the clock so often.
constexpr uint32_t kEmptyPollsPerClock = 1024;

enum class Go : uint32_t { kWait, kRun, kLeave };

struct alignas(kCacheLine) Left {
  std::atomic<uint64_t> requests = 0;  // of one CQ that are still to complete, once time is up
};

// What the threads of one call have in common. Written rarely: at the ends of a phase.
struct Common {
  explicit Common(size_t cqs) : left(cqs) {}
  std::vector<Left> left;
  alignas(kCacheLine) std::atomic<Go> go = Go::kWait;
  std::atomic<bool> failed = false;
};

// What one thread leaves behind, on cache lines of its own.
struct alignas(kCacheLine) Part {
  CqWorkersOutcome outcome;
};

// kShared: other threads take completions of the same CQ.
template <bool kShared, class TickClock>
class CqWorker {
 public:
  CqWorker(const CqWorkersSetup& setup, uint32_t thread, Common& common, CqWorkersOutcome& out)
      : setup_(setup),
        thread_(thread),
        cq_index_(kShared ? 0 : thread),
        cq_(setup.cqs[cq_index_]),
        depth_(setup.ledger->depth()),
        left_(common.left[cq_index_].requests),
        common_(common),
        out_(out),
        requests_(setup.requests.begin(), setup.requests.end()),
        next_(setup.qps.size(), setup.ledger->FirstNumber(setup.phase)) {}

  void Run() {
    common_.go.wait(Go::kWait);
    if (common_.go.load() == Go::kLeave) return;
    const ThreadUsage before = ThreadUsage::Now();
    const uint64_t begun = TickClock::Now();
    out_.first_ticks = out_.last_ticks = begun;
    end_ticks_ = EndOf(begun, setup_.ticks);
    give_up_ticks_ = EndOf(end_ticks_, setup_.drain_ticks);
    if (!Fill() || !Work()) common_.failed.store(true, std::memory_order_relaxed);
    out_.usage = ThreadUsage::Now() - before;
  }

 private:
  bool Fill() {
    const size_t first = thread_;
    for (size_t i = first; i < setup_.qps.size(); i += setup_.threads) {
      const uint64_t number = setup_.ledger->FirstNumber(setup_.phase);
      for (uint32_t line = 0; line < depth_; ++line) {
        if (!Post(i, number + line)) return false;
      }
    }
    return true;
  }

  bool Work() {
    for (uint32_t empty = 1;;) {
      const int got = ibv_poll_cq(cq_, kBatch, wcs_);
      if (got > 0) [[likely]] {
        empty = 1;
        if (!TakeBatch(got)) return false;
        continue;
      }
      if (got < 0) [[unlikely]] {
        out_.end = LoopEnd::kPollFailed;
        return false;
      }
      if (left_.load(std::memory_order_relaxed) == 0) return true;
      if (common_.failed.load(std::memory_order_relaxed)) return true;
      if (setup_.stop->stopped()) [[unlikely]] {
        out_.end = LoopEnd::kStopped;
        return false;
      }
      // Those that never come are counted by the caller.
      if (empty % kEmptyPollsPerClock == 0 && TickClock::Now() >= give_up_ticks_) return true;
      RestAfterPoll</*kPause=*/false, /*kYield=*/true>(empty++);
    }
  }

  bool TakeBatch(int got) {
    const uint64_t now = TickClock::Now();
    out_.last_ticks = now;
    ++out_.polls;
    over_ = over_ || now >= end_ticks_ || common_.failed.load(std::memory_order_relaxed);
    for (int i = 0; i < got; ++i) {
      if (!Take(wcs_[i])) return false;
    }
    return true;
  }

  bool Take(const ibv_wc& wc) {
    const size_t index = QpIndexOf(wc.wr_id);
    const bool ours = index < setup_.qps.size() && index % setup_.cqs.size() == cq_index_ &&
                      KindOf(wc.wr_id) == WrKind::kSend;
    if (!ours) [[unlikely]] {
      return Mismatch(CqMismatch::Kind::kWrId, wc, index, setup_.qps.size(), index);
    }
    if (wc.qp_num != setup_.qps[index]->qp_num) [[unlikely]] {
      return Mismatch(CqMismatch::Kind::kQpNum, wc, index, setup_.qps[index]->qp_num, wc.qp_num);
    }
    if (wc.status != IBV_WC_SUCCESS) [[unlikely]] {
      out_.end = LoopEnd::kSendFailed;
      out_.failure = wc;
      return false;
    }
    if (wc.opcode != setup_.opcode) [[unlikely]] {
      return Mismatch(CqMismatch::Kind::kOpcode, wc, index, setup_.opcode, wc.opcode);
    }
    const uint64_t number = SequenceOf(wc.wr_id);
    if (!setup_.ledger->Close(index, number)) [[unlikely]] {
      return Mismatch(CqMismatch::Kind::kInFlight, wc, index, 0, number);
    }
    if constexpr (!kShared) {
      const uint64_t due = next_[index]++ & kWrSequenceMask;
      if (number != due) [[unlikely]] {
        return Mismatch(CqMismatch::Kind::kOrder, wc, index, due, number);
      }
    }
    ++out_.messages;
    if (!over_) [[likely]] {
      return Post(index, number + depth_);
    }
    left_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  bool Post(size_t index, uint64_t number) {
    ibv_send_wr& request = requests_[index];
    request.wr_id = MakeWrId(WrKind::kSend, index, number);
    setup_.ledger->Open(index, number);
    ibv_send_wr* bad = nullptr;
    const int result = ibv_post_send(setup_.qps[index], &request, &bad);
    if (result == 0) [[likely]] {
      return true;
    }
    out_.end = LoopEnd::kPostFailed;
    out_.post_errno = result;
    return false;
  }

  bool Mismatch(CqMismatch::Kind kind, const ibv_wc& wc, size_t index, uint64_t expected,
                uint64_t got) {
    out_.end = LoopEnd::kMismatch;
    out_.mismatch = {
        .kind = kind, .wr_id = wc.wr_id, .qp_index = index, .expected = expected, .got = got};
    return false;
  }

  const CqWorkersSetup& setup_;
  const uint32_t thread_;
  const size_t cq_index_;
  ibv_cq* const cq_;
  const uint32_t depth_;
  std::atomic<uint64_t>& left_;
  Common& common_;
  CqWorkersOutcome& out_;
  std::vector<ibv_send_wr> requests_;  // of this thread, since wr_id changes with each post
  std::vector<uint64_t> next_;         // number due of each queue pair
  uint64_t end_ticks_ = 0;
  uint64_t give_up_ticks_ = 0;
  bool over_ = false;
  ibv_wc wcs_[kBatch];
};

template <bool kShared, class TickClock>
void RunThread(const CqWorkersSetup& setup, uint32_t thread, Common& common,
               CqWorkersOutcome& out) {
  CqWorker<kShared, TickClock>(setup, thread, common, out).Run();
}

// The first failure that is not the echo of another thread's.
CqWorkersOutcome Merged(const std::vector<Part>& parts) {
  CqWorkersOutcome all = parts.front().outcome;
  for (size_t i = 1; i < parts.size(); ++i) {
    const CqWorkersOutcome& one = parts[i].outcome;
    if (all.end == LoopEnd::kComplete || all.end == LoopEnd::kStopped) {
      if (one.end != LoopEnd::kComplete) all.end = one.end;
      if (one.end == LoopEnd::kMismatch) all.mismatch = one.mismatch;
      if (one.end == LoopEnd::kSendFailed) all.failure = one.failure;
      if (one.end == LoopEnd::kPostFailed) all.post_errno = one.post_errno;
    }
    all.messages += one.messages;
    all.polls += one.polls;
    all.first_ticks = std::min(all.first_ticks, one.first_ticks);
    all.last_ticks = std::max(all.last_ticks, one.last_ticks);
    all.usage.cpu_ns += one.usage.cpu_ns;
    all.usage.voluntary_switches += one.usage.voluntary_switches;
    all.usage.involuntary_switches += one.usage.involuntary_switches;
  }
  return all;
}

}  // namespace

CqWorkersOutcome RunCqWorkers(const CqWorkersSetup& setup, const Clock& clock) {
  Common common(setup.cqs.size());
  for (size_t i = 0; i < setup.qps.size(); ++i) {
    common.left[i % setup.cqs.size()].requests += setup.ledger->depth();
  }
  std::vector<Part> parts(setup.threads);
  std::vector<std::thread> threads;
  threads.reserve(setup.threads);
  CqWorkersOutcome refused;
  clock.Dispatch([&](auto counter) {
    using TickClock = decltype(counter);
    const bool shared = setup.threads > setup.cqs.size();
    const auto run = shared ? RunThread<true, TickClock> : RunThread<false, TickClock>;
    try {
      for (uint32_t i = 0; i < setup.threads; ++i) {
        threads.emplace_back(run, std::cref(setup), i, std::ref(common),
                             std::ref(parts[i].outcome));
      }
    } catch (const std::system_error& error) {
      refused.threads_failed = true;
      refused.post_errno = error.code().value();
    }
  });
  common.go.store(refused.threads_failed ? Go::kLeave : Go::kRun);
  common.go.notify_all();
  for (std::thread& thread : threads) thread.join();
  if (refused.threads_failed) return refused;
  CqWorkersOutcome outcome = Merged(parts);
  if (outcome.end == LoopEnd::kComplete) outcome.never_came = setup.ledger->in_flight();
  return outcome;
}

}  // namespace verbscope
