// Threads at completion queues of the fake device: every request is accounted for, however the CQs
// are shared, and every wrong completion is found.
#include "core/loops/cq_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/endpoint/endpoint_test_util.h"

namespace verbscope {
namespace {

constexpr uint32_t kDepth = 8;
constexpr uint32_t kQpsPerCq = 3;

// What a poll of any CQ goes through; the hooks of verbs are plain function pointers.
struct Liar {
  std::function<bool(ibv_wc&)> completion;  // false: keep it
  std::mutex mutex;
};
Liar* liar = nullptr;
int (*true_poll)(ibv_cq*, int, ibv_wc*) = nullptr;

int LyingPoll(ibv_cq* cq, int wanted, ibv_wc* wcs) {
  const std::lock_guard lock(liar->mutex);
  const int got = true_poll(cq, wanted, wcs);
  int kept = 0;
  for (int i = 0; i < got; ++i) {
    ibv_wc wc = wcs[i];
    if (liar->completion(wc)) wcs[kept++] = wc;
  }
  return got < 0 ? got : kept;
}

// `cqs` endpoint pairs of some queue pairs each; queue pair i is the (i / cqs)-th of pair i % cqs.
class CqWorkersTest : public testing::Test {
 protected:
  void Make(uint32_t cqs) {
    Plan plan;
    plan.command = "write-bw";
    plan.qps = kQpsPerCq;
    plan.tx_depth = kDepth;
    plan.signal_every = 1;
    for (uint32_t i = 0; i < cqs; ++i) {
      pairs_.push_back(std::make_unique<EndpointPair>(plan));
      cqs_.push_back(pairs_.back()->a->send_cq());
    }
    StopSignal unused;
    for (uint32_t i = 0; i < cqs * kQpsPerCq; ++i) {
      const StreamQp qp = pairs_[i % cqs]->a->Stream(unused).qps[i / cqs];
      qps_.push_back(qp.qp);
      requests_.push_back(qp.list.front());
      requests_.back().next = nullptr;
      requests_.back().send_flags |= IBV_SEND_SIGNALED;
    }
    ledger_ = std::make_unique<RequestLedger>(qps_.size(), kDepth);
  }
  ~CqWorkersTest() override { liar = nullptr; }

  CqWorkersOutcome Run(uint32_t threads, int64_t ns = 20'000'000) {
    const TickScale scale = clock_.scale();
    return RunCqWorkers({.cqs = cqs_,
                         .qps = qps_,
                         .requests = requests_,
                         .threads = threads,
                         .phase = phase_++,
                         .ticks = scale.Ticks(static_cast<uint64_t>(ns)),
                         .drain_ticks = scale.Ticks(200'000'000),
                         .ledger = ledger_.get(),
                         .stop = &stop_},
                        clock_);
  }

  // One CQ, whose `nth` completion is changed, or kept where `lie` says false. What is found out
  // ends the phase, whose time is only for what is not.
  CqWorkersOutcome RunLying(uint32_t threads, std::function<bool(ibv_wc&)> lie, int nth = 50,
                            int64_t ns = int64_t{3600} * 1'000'000'000) {
    Make(1);
    liar_.completion = [lie = std::move(lie), nth, seen = 0](ibv_wc& wc) mutable {
      return ++seen != nth || lie(wc);
    };
    liar = &liar_;
    true_poll = std::exchange(cqs_[0]->context->ops.poll_cq, LyingPoll);
    return Run(threads, ns);
  }

  const Clock clock_ = Clock::Calibrate();
  std::vector<std::unique_ptr<EndpointPair>> pairs_;
  std::vector<ibv_cq*> cqs_;
  std::vector<ibv_qp*> qps_;
  std::vector<ibv_send_wr> requests_;
  std::unique_ptr<RequestLedger> ledger_;
  StopSignal stop_;
  Liar liar_;
  uint32_t phase_ = 0;
};

void ExpectAllCame(const CqWorkersOutcome& outcome, uint64_t least) {
  EXPECT_EQ(outcome.end, LoopEnd::kComplete);
  EXPECT_EQ(outcome.never_came, 0U);
  EXPECT_GE(outcome.messages, least);
  EXPECT_GT(outcome.polls, 0U);
  EXPECT_GE(outcome.messages, outcome.polls);
  EXPECT_GE(outcome.last_ticks, outcome.first_ticks);
  EXPECT_EQ(outcome.mismatch.kind, CqMismatch::Kind::kNone);
}

TEST_F(CqWorkersTest, OneThreadAtOneCqCountsEveryRequest) {
  Make(1);
  ExpectAllCame(Run(1), kQpsPerCq * kDepth);
  ExpectAllCame(Run(1), kQpsPerCq * kDepth);  // a second phase on the same queue pairs
}

TEST_F(CqWorkersTest, SeveralThreadsAtOneCqShareItsCompletions) {
  Make(1);
  ExpectAllCame(Run(3), kQpsPerCq * kDepth);
  ExpectAllCame(Run(5), kQpsPerCq * kDepth);  // more threads than queue pairs
}

TEST_F(CqWorkersTest, EachThreadHasACqOfItsOwn) {
  Make(3);
  ExpectAllCame(Run(3), 3 * kQpsPerCq * kDepth);
}

TEST_F(CqWorkersTest, NoTimeStillCompletesWhatWasPosted) {
  Make(2);
  ExpectAllCame(Run(2, 0), 2 * kQpsPerCq * kDepth);
}

TEST_F(CqWorkersTest, AStopEndsEveryThread) {
  // Nothing completes, so that every poll is empty.
  Make(1);
  liar_.completion = [](ibv_wc&) { return false; };
  liar = &liar_;
  true_poll = std::exchange(cqs_[0]->context->ops.poll_cq, LyingPoll);
  std::thread stopper([this] { stop_.Stop(StopReason::kPeerLost); });
  const CqWorkersOutcome outcome = Run(3, 3'600'000'000'000);
  stopper.join();
  EXPECT_EQ(outcome.end, LoopEnd::kStopped);
}

TEST_F(CqWorkersTest, AQpNumOfAnotherQueuePairIsAMismatch) {
  for (const uint32_t threads : {1U, 3U}) {
    pairs_.clear(), cqs_.clear(), qps_.clear(), requests_.clear(), phase_ = 0;
    const CqWorkersOutcome outcome = RunLying(threads, [this](ibv_wc& wc) {
      wc.qp_num = qps_[(QpIndexOf(wc.wr_id) + 1) % qps_.size()]->qp_num;
      return true;
    });
    ASSERT_EQ(outcome.end, LoopEnd::kMismatch);
    EXPECT_EQ(outcome.mismatch.kind, CqMismatch::Kind::kQpNum);
    EXPECT_EQ(outcome.mismatch.expected, qps_[outcome.mismatch.qp_index]->qp_num);
    EXPECT_NE(outcome.mismatch.got, outcome.mismatch.expected);
  }
}

TEST_F(CqWorkersTest, AWrIdThatNamesAnotherQueuePairIsAMismatch) {
  const CqWorkersOutcome outcome = RunLying(1, [](ibv_wc& wc) {
    wc.wr_id ^= 1 << 8;
    return true;
  });
  ASSERT_EQ(outcome.end, LoopEnd::kMismatch);
  EXPECT_NE(outcome.mismatch.kind, CqMismatch::Kind::kNone);
}

TEST_F(CqWorkersTest, AWrIdBeyondAllQueuePairsIsAMismatch) {
  const CqWorkersOutcome outcome = RunLying(1, [](ibv_wc& wc) {
    wc.wr_id |= 0xffff00;
    return true;
  });
  EXPECT_EQ(outcome.mismatch.kind, CqMismatch::Kind::kWrId);
}

// What another thread's queue pair completes into this CQ is no less wrong.
TEST_F(CqWorkersTest, ACompletionInTheWrongCqIsAMismatch) {
  Make(2);
  liar_.completion = [seen = 0](ibv_wc& wc) mutable {
    if (++seen == 20) wc.wr_id ^= 1 << 8;  // an even index becomes odd: of the other CQ
    return true;
  };
  liar = &liar_;
  true_poll = std::exchange(cqs_[0]->context->ops.poll_cq, LyingPoll);
  EXPECT_EQ(Run(2).mismatch.kind, CqMismatch::Kind::kWrId);
}

TEST_F(CqWorkersTest, ACompletionThatComesTwiceIsFound) {
  for (const uint32_t threads : {1U, 3U}) {
    pairs_.clear(), cqs_.clear(), qps_.clear(), requests_.clear(), phase_ = 0;
    uint64_t last = 0;
    const CqWorkersOutcome outcome = RunLying(
        threads,
        [&last](ibv_wc& wc) {
          // As if the completion of 24 requests ago had come again.
          last = wc.wr_id;
          wc.wr_id -= uint64_t{kDepth} << 24;
          return true;
        },
        100);
    ASSERT_EQ(outcome.end, LoopEnd::kMismatch);
    EXPECT_EQ(outcome.mismatch.kind, CqMismatch::Kind::kInFlight);
    // The one before the first of a queue pair has a number too, modulo 2^40.
    EXPECT_EQ(outcome.mismatch.got, (SequenceOf(last) - kDepth) & kWrSequenceMask);
  }
}

TEST_F(CqWorkersTest, ACompletionThatNeverComesIsCountedAtTheEnd) {
  const CqWorkersOutcome outcome = RunLying(
      3, [](ibv_wc&) { return false; }, /*nth=*/5, /*ns=*/1'000'000);
  EXPECT_EQ(outcome.end, LoopEnd::kComplete);
  EXPECT_EQ(outcome.never_came, 1U);
}

// One thread sees the order of each queue pair, and so what is missing at once.
TEST_F(CqWorkersTest, OneThreadFindsACompletionThatWasLeftOut) {
  const CqWorkersOutcome outcome = RunLying(1, [](ibv_wc&) { return false; });
  ASSERT_EQ(outcome.end, LoopEnd::kMismatch);
  EXPECT_EQ(outcome.mismatch.kind, CqMismatch::Kind::kOrder);
  EXPECT_EQ(outcome.mismatch.got, outcome.mismatch.expected + 1);
}

TEST_F(CqWorkersTest, AWrongOpcodeIsAMismatch) {
  const CqWorkersOutcome outcome = RunLying(1, [](ibv_wc& wc) {
    wc.opcode = IBV_WC_SEND;
    return true;
  });
  EXPECT_EQ(outcome.mismatch.kind, CqMismatch::Kind::kOpcode);
}

TEST_F(CqWorkersTest, AFailedRequestEndsAllThreadsAndIsReported) {
  Make(1);
  pairs_[0]->fabric->FailNextSend(qps_[1], IBV_WC_REM_ACCESS_ERR);
  const CqWorkersOutcome outcome = Run(2, 3'600'000'000'000);
  ASSERT_EQ(outcome.end, LoopEnd::kSendFailed);
  EXPECT_EQ(QpIndexOf(outcome.failure.wr_id), 1U);
}

TEST_F(CqWorkersTest, APostThatIsRefusedIsReported) {
  Make(1);
  requests_[2].num_sge = 99;
  const CqWorkersOutcome outcome = Run(1, 3'600'000'000'000);
  EXPECT_EQ(outcome.end, LoopEnd::kPostFailed);
  EXPECT_NE(outcome.post_errno, 0);
}

}  // namespace
}  // namespace verbscope
