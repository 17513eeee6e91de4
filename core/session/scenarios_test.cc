// Sessions of commands of steps: both roles in one process on the fake device, which tells the
// truth unless a test makes it lie. Every check is seen to fail.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/session/session_test_util.h"

namespace verbscope {
namespace {

// What one device's polls and posts go through. The hooks of verbs are plain function pointers, so
// there is one of it; a test has one lying device.
struct Liar {
  // Of a completion that was polled: true, hand it out; false, keep it to yourself.
  std::function<bool(ibv_wc&)> completion;
  std::function<int(const ibv_recv_wr&)> receive;  // an errno instead of posting it
  // Handed out before the next poll of this CQ.
  std::vector<ibv_wc> ready;
  ibv_cq* cq = nullptr;
};
Liar* liar = nullptr;

class LyingDevice : public FakeDevice {
 public:
  using FakeDevice::FakeDevice;

  Expected<Pd> AllocatePd() override {
    Expected<Pd> pd = FakeDevice::AllocatePd();
    if (pd && (*pd)->context->ops.poll_cq != Poll) {
      true_poll = std::exchange((*pd)->context->ops.poll_cq, Poll);
      true_receive = std::exchange((*pd)->context->ops.post_recv, PostReceive);
    }
    return pd;
  }

 private:
  static int Poll(ibv_cq* cq, int count, ibv_wc* completions) {
    if (!liar->ready.empty() && liar->cq == cq) {
      *completions = liar->ready.back();
      liar->ready.pop_back();
      return 1;
    }
    for (;;) {
      if (liar->ready.empty()) liar->cq = cq;
      const int polled = true_poll(cq, std::min(count, 1), completions);
      if (polled <= 0 || liar->completion == nullptr) return polled;
      if (liar->completion(*completions)) return polled;
    }
  }
  static int PostReceive(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
    const int refused = liar->receive ? liar->receive(*request) : 0;
    return refused != 0 ? refused : true_receive(qp, request, bad);
  }

  static inline int (*true_poll)(ibv_cq*, int, ibv_wc*) = nullptr;
  static inline int (*true_receive)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) = nullptr;
};

using LyingProvider = ProviderOf<LyingDevice>;

class ScenariosTest : public testing::Test {
 protected:
  using Outcome = SessionOutcome;

  ScenariosTest() {
    fabric_->set_rnr_exhausts(true);
    liar = &liar_;
    plan_.command = "imm";
    plan_.iterations = 30;
  }
  ~ScenariosTest() override { liar = nullptr; }

  Outcome Run() {
    Outcome outcome =
        RunSession(plan_, {.provider = honest_provider_, .interrupt = requester_interrupt_},
                   {.provider = liar_provider_, .interrupt = responder_interrupt_});
    EXPECT_EQ(fabric_->live().total(), 0);
    return outcome;
  }

  // Both sides end with exit 3 and the same checks; the first failed one is returned.
  CheckRow RunAndFail() {
    const Outcome outcome = Run();
    const CheckRow* first = nullptr;
    for (const Record* record : {&outcome.requester, &outcome.responder}) {
      EXPECT_EQ(record->verdict, "fail");
      EXPECT_EQ(record->exit_code, 3);
      EXPECT_FALSE(record->error) << record->error->ToText();
      const auto failed = std::ranges::find(record->checks, "fail", &CheckRow::status);
      if (failed == record->checks.end()) {
        ADD_FAILURE() << "no failed check";
        return {};
      }
      if (first != nullptr) {
        EXPECT_EQ(first->observed, failed->observed);
      }
      first = &*failed;
    }
    return *first;
  }

  // Lies in the n-th receive completion of the responder, from 1.
  void LieInReceive(int nth, std::function<bool(ibv_wc&)> lie) {
    liar_.completion = [nth, lie = std::move(lie), count = 0](ibv_wc& wc) mutable {
      const bool receive = wc.status == IBV_WC_SUCCESS && wc.opcode >= IBV_WC_RECV;
      return !receive || ++count != nth || lie(wc);
    };
  }

  Plan plan_;
  Liar liar_;
  std::shared_ptr<FakeFabric> fabric_ = std::make_shared<FakeFabric>();
  FakeProvider honest_provider_{fabric_, {DefaultFakeDevice("fake0", 1)}};
  LyingProvider liar_provider_{fabric_, DefaultFakeDevice("fake1", 2)};
  Interrupt requester_interrupt_;
  Interrupt responder_interrupt_;
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ScenariosTest, ImmPassesAndBothSidesSayTheSame) {
  const Outcome outcome = Run();
  for (const Record* record : {&outcome.requester, &outcome.responder}) {
    ASSERT_FALSE(record->error) << record->error->ToText();
    EXPECT_EQ(record->verdict, "pass");
    EXPECT_EQ(record->exit_code, 0);
    EXPECT_EQ(record->checks.size(), 11U);
    for (const CheckRow& row : record->checks) {
      EXPECT_EQ(row.status, "pass") << row.name << ": " << row.observed;
      EXPECT_FALSE(row.source.empty()) << row.name;
    }
    ASSERT_EQ(record->results.size(), 10U);  // a plain WRITE has no latency of its own
    for (const Result& result : record->results) {
      EXPECT_EQ(result.side, "requester");
      EXPECT_EQ(result.metrics.latency->samples, 30U);
      EXPECT_EQ(result.metrics.latency->definition, "half_round_trip");
    }
  }
}

TEST_F(ScenariosTest, MessagesOfNothingAndOfManyPacketsPassToo) {
  for (const uint64_t size : {0ULL, 1ULL, 100'000ULL}) {
    plan_.sizes_bytes = {size};
    plan_.iterations = 5;
    EXPECT_EQ(Run().requester.exit_code, 0) << size;
  }
}

TEST_F(ScenariosTest, ZeroLenRecvPasses) {
  plan_.command = "zero-len-recv";
  const Outcome outcome = Run();
  for (const Record* record : {&outcome.requester, &outcome.responder}) {
    ASSERT_FALSE(record->error) << record->error->ToText();
    EXPECT_EQ(record->exit_code, 0);
    for (const CheckRow& row : record->checks) {
      EXPECT_EQ(row.status, "pass") << row.name << ": " << row.observed;
    }
  }
}

TEST_F(ScenariosTest, AFlippedImmediateIsFoundInTheMessageThatHasIt) {
  LieInReceive(18, [](ibv_wc& wc) {
    wc.imm_data ^= htonl(0x40000000);
    return true;
  });
  const CheckRow row = RunAndFail();
  EXPECT_EQ(row.name, "send-imm-0");
  EXPECT_TRUE(Contains(row.observed, "message 17: immediate is 0x")) << row.observed;
  EXPECT_EQ(row.why, "1 bit of 32 differs");
}

TEST_F(ScenariosTest, ASwappedImmediateIsNamed) {
  LieInReceive(5, [](ibv_wc& wc) {
    wc.imm_data = __builtin_bswap32(wc.imm_data);
    return true;
  });
  EXPECT_EQ(RunAndFail().why, "byte order swapped");
}

TEST_F(ScenariosTest, EveryLieOfACompletionIsNamed) {
  struct Lie {
    std::string named;
    std::function<void(ibv_wc&)> tell;
  };
  const Lie lies[] = {
      {"byte_len is 60", [](ibv_wc& wc) { wc.byte_len = 60; }},
      {"flag IBV_WC_WITH_IMM is not set", [](ibv_wc& wc) { wc.wc_flags = 0; }},
      {"opcode is RECV_RDMA_WITH_IMM", [](ibv_wc& wc) { wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM; }},
      {"wr_id is", [](ibv_wc& wc) { wc.wr_id ^= uint64_t{1} << 60; }},
      {"qp_num is", [](ibv_wc& wc) { wc.qp_num ^= 1; }},
  };
  for (const Lie& lie : lies) {
    for (const int nth : {3, 20}) {  // in the burst, and to and fro
      LieInReceive(nth, [&lie](ibv_wc& wc) {
        lie.tell(wc);
        return true;
      });
      const CheckRow row = RunAndFail();
      EXPECT_TRUE(Contains(row.observed, lie.named)) << row.observed;
      EXPECT_TRUE(Contains(row.observed, "message " + std::to_string(nth - 1))) << row.observed;
    }
  }
}

TEST_F(ScenariosTest, AMissingCompletionIsFoundInTimeAndTheRestIsNotTried) {
  for (const int nth : {3, 20}) {
    LieInReceive(nth, [](ibv_wc&) { return false; });
    const auto start = std::chrono::steady_clock::now();
    const CheckRow row = RunAndFail();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
    EXPECT_TRUE(Contains(
        row.observed, "message " + std::to_string(nth - 1) + ": no receive completion within 2s"))
        << row.observed;
  }
  const Outcome outcome = Run();
  EXPECT_EQ(outcome.requester.exit_code, 0) << "the lie was told once";
}

TEST_F(ScenariosTest, AMissingSendCompletionIsFoundToo) {
  liar_.completion = [count = 0](ibv_wc& wc) mutable {
    return wc.opcode != IBV_WC_SEND || ++count != 4;  // of an answer
  };
  const CheckRow row = RunAndFail();
  EXPECT_TRUE(Contains(row.observed, "answer 3: no send completion within 2s")) << row.observed;
}

TEST_F(ScenariosTest, CompletionsOutOfOrderAreNamed) {
  // The third receive completion is handed out behind the fourth.
  liar_.completion = [this, count = 0, held = ibv_wc{}](ibv_wc& wc) mutable {
    if (wc.status != IBV_WC_SUCCESS || wc.opcode < IBV_WC_RECV) return true;
    ++count;
    if (count == 3) held = wc;
    if (count == 4) liar_.ready.push_back(held);
    return count != 3;
  };
  const CheckRow row = RunAndFail();
  EXPECT_TRUE(Contains(row.why, "out of order")) << row.observed << row.why;
}

TEST_F(ScenariosTest, AReceiveFormThatIsRefusedIsASkipAndNoFailure) {
  liar_.receive = [](const ibv_recv_wr& request) {
    const bool empty = request.num_sge == 1 && request.sg_list->length == 0;
    return empty ? EINVAL : 0;
  };
  const Outcome outcome = Run();
  EXPECT_EQ(outcome.requester.exit_code, 0);
  int skipped = 0;
  for (const CheckRow& row : outcome.requester.checks) {
    if (row.status != "skip") continue;
    ++skipped;
    EXPECT_TRUE(Contains(row.why, "at the responder: Invalid argument")) << row.why;
  }
  EXPECT_EQ(skipped, 2);
}

TEST_F(ScenariosTest, WrongStatusPairsAreFound) {
  plan_.command = "zero-len-recv";
  liar_.completion = [](ibv_wc& wc) {
    if (wc.status == IBV_WC_LOC_LEN_ERR) wc.status = IBV_WC_LOC_PROT_ERR;
    return true;
  };
  const CheckRow row = RunAndFail();
  EXPECT_EQ(row.name, "send-n-receive-0");
  EXPECT_EQ(row.observed, "requester REM_INV_REQ_ERR, responder LOC_PROT_ERR");
}

TEST_F(ScenariosTest, AReceiveThatRescuesALostMessageIsFound) {
  plan_.command = "zero-len-recv";
  liar_.completion = [](ibv_wc& wc) {
    if (wc.status == IBV_WC_WR_FLUSH_ERR) wc.status = IBV_WC_SUCCESS;
    return true;
  };
  EXPECT_EQ(RunAndFail().name, "send-n-receive-0-later-receive");
}

TEST_F(ScenariosTest, ARunWithoutAnyCheckNeverPasses) {
  plan_.command = "rnr-test";
  const Outcome outcome = Run();
  // Once rnr-test has scenarios this test needs another command without any.
  EXPECT_TRUE(!outcome.requester.checks.empty() || outcome.requester.exit_code == 5);
}

TEST_F(ScenariosTest, AnInterruptEndsBothSides) {
  plan_.iterations = 100'000'000;
  std::thread user([this] {
    while (fabric_->live().qps < 2) std::this_thread::yield();
    requester_interrupt_.Raise();
  });
  const Outcome outcome = Run();
  user.join();
  EXPECT_EQ(outcome.requester.exit_code, 130);
  EXPECT_EQ(outcome.responder.exit_code, 5);
}

}  // namespace
}  // namespace verbscope
