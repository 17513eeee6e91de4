// How requests fail between the soft device and the kernel's rxe, both ways: each side reports what
// its own rule book says of the other's answer. Runs in the lab (rxe_interop_suite.py).
#include <gtest/gtest.h>
#include <sched.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/lab/interop_pair.h"

namespace verbscope::soft {
namespace {

constexpr uint32_t kShort = 100;
constexpr uint32_t kLong = 3000;  // three packets at the smaller MTU

class RxeErrors : public InteropTest {
 protected:
  // The request fails as expected, and one behind it is flushed.
  void ExpectFailure(SendWork work, ibv_wc_status status) {
    ASSERT_EQ(Post(from(), work), 0);
    const ibv_wc wc = Wait(from().send_cq);
    EXPECT_EQ(wc.status, status);
    EXPECT_EQ(wc.wr_id, work.wr.wr_id);
    ASSERT_EQ(Post(from(), Send(from(), 77, kShort)), 0);
    const ibv_wc next = Wait(from().send_cq);
    EXPECT_EQ(next.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(next.wr_id, 77u);
    EXPECT_EQ(StateOf(from()), IBV_QPS_ERR);
  }

  // What the responder has posted comes back, since its QP has failed as well.
  void ExpectReceiveFlushed() {
    const ibv_wc wc = Wait(to().recv_cq);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(StateOf(to()), IBV_QPS_ERR);
  }

  // Each in a connection of its own: WRITE, READ, atomic, changed by `spoil`.
  template <class F>
  void ExpectEachRefused(F&& spoil, ibv_wc_status status, const ConnectOptions& options = {}) {
    for (int operation = 0; operation < 3; ++operation) {
      SCOPED_TRACE(operation);
      ConnectEnds(options);
      ASSERT_EQ(PostReceive(to(), 1, kLong), 0);
      SendWork work = operation == 0   ? Write(from(), to(), 5, kLong)
                      : operation == 1 ? Read(from(), to(), 5, kLong)
                                       : FetchAdd(from(), to(), 5, 1);
      spoil(work);
      ExpectFailure(work, status);
      ExpectReceiveFlushed();
    }
  }

  bool AwaitCounter(std::string_view name) {
    return Await([&] { return Counter(soft(), name) > 0; });
  }

 private:
  template <class F>
  static bool Await(F&& done) {
    const Deadline deadline = Soon();
    while (!done() && !deadline.Passed()) sched_yield();
    return done();
  }
};

TEST_P(RxeErrors, ReceiverThatStaysUnreadyEndsInRnrRetryExceeded) {
  ConnectEnds({.rnr_retry = 2});
  ExpectFailure(Send(from(), 5, kLong), IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(StateOf(to()), IBV_QPS_RTS);
}

TEST_P(RxeErrors, ReceiverThatBecomesReadyGetsTheMessage) {
  ConnectEnds({.rnr_retry = 7});
  const std::vector<std::byte> data = Pattern(kLong, 3);
  std::memcpy(from().at(0), data.data(), data.size());
  ASSERT_EQ(Post(from(), Send(from(), 5, kLong)), 0);
  ASSERT_TRUE(AwaitCounter(soft_requests() ? "rcvd_rnr_err" : "send_rnr_err"));
  ExpectEmpty(from().send_cq);
  ASSERT_EQ(PostReceive(to(), 6, kLong), 0);
  EXPECT_EQ(Wait(to().recv_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(Wait(from().send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(to().at(0), data.data(), data.size()), 0);
  ExpectEmpty(to().recv_cq);
}

TEST_P(RxeErrors, PeerInErrorStateEndsInRetryExceeded) {
  ConnectEnds({.timeout = 8, .retry_cnt = 2});
  ASSERT_TRUE(ToState(to(), IBV_QPS_ERR));
  ExpectFailure(Send(from(), 5, kLong), IBV_WC_RETRY_EXC_ERR);
}

TEST_P(RxeErrors, PeerThatWasResetEndsInRetryExceeded) {
  ConnectEnds({.timeout = 8, .retry_cnt = 2});
  ASSERT_TRUE(ToState(to(), IBV_QPS_RESET));
  ExpectFailure(Read(from(), to(), 5, kLong), IBV_WC_RETRY_EXC_ERR);
}

TEST_P(RxeErrors, WrongRemoteKey) {
  // The key is in the same place of the request for WRITE and READ, in another one for atomics.
  ExpectEachRefused(
      [](SendWork& work) {
        if (work.wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
          work.wr.wr.atomic.rkey ^= 0x5a;
        } else {
          work.wr.wr.rdma.rkey ^= 0x5a;
        }
      },
      IBV_WC_REM_ACCESS_ERR);
}

TEST_P(RxeErrors, OutOfTheRegion) {
  ExpectEachRefused(
      [this](SendWork& work) {
        const uint64_t end = to().address(to().buffer->bytes().size());
        if (work.wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
          work.wr.wr.atomic.remote_addr = end;
        } else {
          work.wr.wr.rdma.remote_addr = end - kLong + 1;  // one byte too far
        }
      },
      IBV_WC_REM_ACCESS_ERR);
}

TEST_P(RxeErrors, OperationThatTheQpDoesNotAllow) {
  ExpectEachRefused([](SendWork&) {}, IBV_WC_REM_INV_REQ_ERR, {.access = 0});
}

TEST_P(RxeErrors, MisalignedAtomic) {
  ConnectEnds();
  ASSERT_EQ(PostReceive(to(), 1, kLong), 0);
  SendWork work = FetchAdd(from(), to(), 5, 1);
  work.wr.wr.atomic.remote_addr += 4;
  if (!soft_requests()) {
    EXPECT_EQ(Post(from(), work), EINVAL) << "rxe looks at the address itself";
    return;
  }
  ExpectFailure(work, IBV_WC_REM_INV_REQ_ERR);
}

TEST_P(RxeErrors, SendLongerThanTheReceive) {
  // Each responder has its rule book; the requester says what the NAK says.
  const Expectations& rules = ExpectationsOf(soft_requests() ? Profile::kRxe61 : Profile::kIbta);
  for (const uint32_t bytes : {kShort + 1, kLong}) {
    SCOPED_TRACE(bytes);
    ConnectEnds();
    ASSERT_EQ(PostReceive(to(), 8, kShort), 0);
    ExpectFailure(Send(from(), 5, bytes), rules.too_long_requester);
    const ibv_wc wc = Wait(to().recv_cq);
    EXPECT_EQ(wc.status, rules.too_long_responder);
    EXPECT_EQ(wc.wr_id, 8u);
  }
}

INSTANTIATE_TEST_SUITE_P(, RxeErrors,
                         testing::Values(InteropParam{true, false, IBV_MTU_1024},
                                         InteropParam{true, true, IBV_MTU_1024},
                                         InteropParam{false, false, IBV_MTU_1024},
                                         InteropParam{false, true, IBV_MTU_1024}),
                         InteropParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
