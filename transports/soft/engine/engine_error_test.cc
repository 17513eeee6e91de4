// Which pair of completions, which NAK and which event each broken rule leads to, by profile.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "transports/soft/engine/engine_fixture.h"

namespace verbscope::soft::testing {
namespace {

constexpr uint8_t kNothing = 0;
constexpr int kNoStatus = -1;

struct Answer {
  uint8_t nak;
  int requester;
  int receive;  // kNoStatus: the posted receive is flushed
  int event;    // at the responder, kNoStatus: none
};

struct ErrorCase {
  std::string name;
  std::function<Work(Connection&)> act;  // breaks a rule; the request that fails
  Answer ibta;
  Answer rxe;
};

void PrintTo(const ErrorCase& error, std::ostream* out) { *out << error.name; }

Work Write(Connection& c) {
  return {.opcode = IBV_WR_RDMA_WRITE,
          .local = {c.a.Piece(0, 2000)},
          .remote = c.b.Address(4096),
          .rkey = c.b.key};
}

Work As(ibv_wr_opcode opcode, Work work) {
  work.opcode = opcode;
  return work;
}

Work WithRkey(Work work, uint32_t rkey) {
  work.rkey = rkey;
  return work;
}

Work Atomic(Connection& c) {
  return {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
          .local = {c.a.Piece(0, 8)},
          .remote = c.b.Address(4096),
          .rkey = c.b.key,
          .swap_add = 1};
}

// A region of b's second half with these rights.
uint32_t Region(Connection& c, int access, uint32_t pd = 1) {
  return c.b.side.Register({c.b.memory.data() + 4096, 8192}, access, pd);
}

Work SendInto(Connection& c, std::vector<ibv_sge> receive) {
  c.b.Receive(50, std::move(receive));
  return {.local = {c.a.Piece(0, 2000)}};
}

void Forbid(Connection& c, int access) {
  ibv_qp_attr attributes = {};
  attributes.qp_access_flags = static_cast<unsigned>(kAllAccess & ~access);
  ASSERT_EQ(c.b.qp->Modify(attributes, IBV_QP_ACCESS_FLAGS), 0);
}

constexpr Answer kTooLong = {kNakInvalidRequest, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR,
                             kNoStatus};
constexpr Answer kTooLongRxe = {kNakRemoteOperation, IBV_WC_REM_OP_ERR, IBV_WC_LOC_QP_OP_ERR,
                                kNoStatus};
constexpr Answer kBadReceive = {kNakRemoteOperation, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR,
                                kNoStatus};
constexpr Answer kAccess = {kNakRemoteAccess, IBV_WC_REM_ACCESS_ERR, kNoStatus,
                            IBV_EVENT_QP_ACCESS_ERR};
constexpr Answer kAccessRxe = {kNakRemoteAccess, IBV_WC_REM_ACCESS_ERR, kNoStatus, kNoStatus};
constexpr Answer kInvalid = {kNakInvalidRequest, IBV_WC_REM_INV_REQ_ERR, kNoStatus,
                             IBV_EVENT_QP_REQ_ERR};
constexpr Answer kInvalidRxe = {kNakInvalidRequest, IBV_WC_REM_INV_REQ_ERR, kNoStatus, kNoStatus};
constexpr Answer kLocal = {kNothing, IBV_WC_LOC_PROT_ERR, kNoStatus, kNoStatus};

std::vector<ErrorCase> ReceiveCases() {
  return {
      {"SendLongerThanReceive", [](auto& c) { return SendInto(c, {c.b.Piece(0, 1999)}); }, kTooLong,
       kTooLongRxe},
      {"SendIntoReceiveWithoutPieces", [](auto& c) { return SendInto(c, {}); }, kTooLong,
       kTooLongRxe},
      {"SendIntoUnknownKey",
       [](auto& c) {
         return SendInto(c, {{c.b.Address(0), 3000, 0x1234}});
       },
       kBadReceive, kTooLongRxe},
      {"SendBeyondTheReceiversRegion",
       [](auto& c) { return SendInto(c, {c.b.Piece(c.b.memory.size() - 1999, 2000)}); },
       kBadReceive, kTooLongRxe},
      {"SendIntoRegionWithoutLocalWrite",
       [](auto& c) {
         return SendInto(c, {{c.b.Address(4096), 3000, Region(c, 0)}});
       },
       kBadReceive, kTooLongRxe},
      {"SendIntoRegionOfAnotherDomain",
       [](auto& c) {
         return SendInto(c, {{c.b.Address(4096), 3000, Region(c, kAllAccess, 2)}});
       },
       kBadReceive, kTooLongRxe},
      {"WriteWithImmediateBadKey",
       [](auto& c) {
         c.b.Receive(50, {});
         Work work = WithRkey(As(IBV_WR_RDMA_WRITE_WITH_IMM, Write(c)), 0x1234);
         work.local[0].length = 100;  // in one packet: the immediate is there when the key is seen
         return work;
       },
       {kNakRemoteAccess, IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
       {kNakRemoteAccess, IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR, kNoStatus}},
  };
}

std::vector<ErrorCase> RemoteCases() {
  const auto beyond = [](Work work, uint64_t remote) {
    work.remote = remote;
    return work;
  };
  return {
      {"WriteUnknownKey", [](auto& c) { return WithRkey(Write(c), 0x1234); }, kAccess, kAccessRxe},
      {"ReadUnknownKey", [](auto& c) { return WithRkey(As(IBV_WR_RDMA_READ, Write(c)), 0x1234); },
       kAccess, kAccessRxe},
      {"AtomicUnknownKey", [](auto& c) { return WithRkey(Atomic(c), 0x1234); }, kAccess,
       kAccessRxe},
      {"WriteOneByteInFront", [beyond](auto& c) { return beyond(Write(c), c.b.Address(0) - 1); },
       kAccess, kAccessRxe},
      {"WriteOneByteBehind",
       [beyond](auto& c) { return beyond(Write(c), c.b.Address(c.b.memory.size() - 1999)); },
       kAccess, kAccessRxe},
      {"WriteAroundTheEndOfAddresses",
       [beyond](auto& c) { return beyond(Write(c), ~uint64_t{0} - 10); }, kAccess, kAccessRxe},
      {"WriteWithoutTheRight",
       [](auto& c) { return WithRkey(Write(c), Region(c, IBV_ACCESS_REMOTE_READ)); }, kAccess,
       kAccessRxe},
      {"ReadWithoutTheRight",
       [](auto& c) {
         return WithRkey(As(IBV_WR_RDMA_READ, Write(c)),
                         Region(c, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
       },
       kAccess, kAccessRxe},
      {"AtomicWithoutTheRight",
       [](auto& c) {
         return WithRkey(Atomic(c), Region(c, kAllAccess & ~IBV_ACCESS_REMOTE_ATOMIC));
       },
       kAccess, kAccessRxe},
      {"WriteIntoAnotherDomain",
       [](auto& c) { return WithRkey(Write(c), Region(c, kAllAccess, 2)); }, kAccess, kAccessRxe},
      {"AtomicMisaligned", [beyond](auto& c) { return beyond(Atomic(c), c.b.Address(4100)); },
       kInvalid, kInvalidRxe},
      {"WriteForbiddenByTheQp",
       [](auto& c) {
         Forbid(c, IBV_ACCESS_REMOTE_WRITE);
         return Write(c);
       },
       kInvalid, kInvalidRxe},
      {"ReadForbiddenByTheQp",
       [](auto& c) {
         Forbid(c, IBV_ACCESS_REMOTE_READ);
         return As(IBV_WR_RDMA_READ, Write(c));
       },
       kInvalid, kInvalidRxe},
      {"AtomicForbiddenByTheQp",
       [](auto& c) {
         Forbid(c, IBV_ACCESS_REMOTE_ATOMIC);
         return Atomic(c);
       },
       kInvalid, kInvalidRxe},
  };
}

std::vector<ErrorCase> LocalCases() {
  const auto local = [](Work work, ibv_sge piece) {
    work.local = {piece};
    return work;
  };
  return {
      {"SendFromUnknownKey",
       [local](auto& c) {
         return local({}, {c.a.Address(0), 10, 0x1234});
       },
       kLocal, kLocal},
      {"LongSendThatEndsBehindTheRegion",
       [local](auto& c) { return local({}, c.a.Piece(c.a.memory.size() - 2999, 3000)); }, kLocal,
       kLocal},
      {"WriteWithBothKeysBad",
       [local](auto& c) {
         return local(WithRkey(Write(c), 0x1234), {c.a.Address(0), 10, 0x1234});
       },
       kLocal, kLocal},
      {"ReadIntoUnknownKey",
       [local](auto& c) {
         return local(As(IBV_WR_RDMA_READ, Write(c)), {c.a.Address(0), 10, 0x1234});
       },
       kLocal, kLocal},
      {"ReadIntoRegionWithoutLocalWrite",
       [local](auto& c) {
         const uint32_t key = c.a.side.Register(c.a.memory, IBV_ACCESS_REMOTE_READ);
         return local(As(IBV_WR_RDMA_READ, Write(c)), {c.a.Address(0), 10, key});
       },
       kLocal, kLocal},
      {"ReadWithBothKeysBad",
       [local](auto& c) {
         return local(WithRkey(As(IBV_WR_RDMA_READ, Write(c)), 0x1234),
                      {c.a.Address(0), 10, 0x1234});
       },
       kAccess, kAccessRxe},
      {"AtomicIntoUnknownKey",
       [local](auto& c) {
         return local(Atomic(c), {c.a.Address(0), 8, 0x1234});
       },
       kLocal, kLocal},
      {"AtomicOfWrongSize",
       [local](auto& c) { return local(Atomic(c), c.a.Piece(0, 4)); },
       {kNothing, IBV_WC_LOC_LEN_ERR, kNoStatus, kNoStatus},
       {kNothing, IBV_WC_LOC_LEN_ERR, kNoStatus, kNoStatus}},
  };
}

class ErrorTest : public ::testing::TestWithParam<std::tuple<ErrorCase, Profile>> {
 protected:
  const ErrorCase& error() const { return std::get<0>(GetParam()); }
  Profile profile() const { return std::get<1>(GetParam()); }
  const Answer& answer() const { return profile() == Profile::kRxe61 ? error().rxe : error().ibta; }
};

void ExpectResponder(Connection& c, const Answer& answer, bool rxe) {
  const auto received = c.b.PollReceive();
  if (answer.nak == kNothing) {  // the peer has noticed nothing bad
    EXPECT_EQ(c.b.state(), IBV_QPS_RTS);
    EXPECT_TRUE(received.empty());
    EXPECT_TRUE(c.b.side.qp_events.empty());
    return;
  }
  EXPECT_EQ(c.b.state(), IBV_QPS_ERR);
  ASSERT_FALSE(received.empty());
  EXPECT_EQ(received[0].status,
            answer.receive == kNoStatus ? static_cast<int>(IBV_WC_WR_FLUSH_ERR) : answer.receive);
  EXPECT_EQ(received.back().wr_id, 51U);
  EXPECT_EQ(received.back().status, IBV_WC_WR_FLUSH_ERR);
  if (answer.event == kNoStatus) {
    EXPECT_TRUE(c.b.side.qp_events.empty());
  } else {
    EXPECT_FALSE(rxe);
    ASSERT_EQ(c.b.side.qp_events.size(), 1U);
    EXPECT_EQ(c.b.side.qp_events[0].type, answer.event);
    EXPECT_EQ(c.b.side.qp_events[0].qpn, c.b.qp->qpn());
  }
}

TEST_P(ErrorTest, EndsAsTheProfileSays) {
  Connection c({.profile = profile(), .timeout = 14});
  c.a.Fill(1);
  c.b.Fill(2);
  Work work = error().act(c);
  const std::vector<std::byte> a_before = c.a.memory;
  const std::vector<std::byte> b_before = c.b.memory;
  c.b.Receive(51, {c.b.Piece(0, 4000)});
  work.id = 1;
  work.flags = 0;  // completes all the same
  ASSERT_EQ(c.a.Post(work), 0);
  c.a.Post({.id = 2, .opcode = IBV_WR_RDMA_WRITE, .flags = 0});
  c.world.Run(10 * kMillisecond);
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].wr_id, 1U);
  EXPECT_EQ(done[0].status, answer().requester);
  EXPECT_EQ(done[1].wr_id, 2U);
  EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(c.a.state(), IBV_QPS_ERR);
  EXPECT_EQ(done[0].vendor_err, answer().nak);
  const auto naks = std::ranges::count_if(c.world.log, [](const Sent& sent) {
    return sent.header.opcode == Opcode::kAck && sent.header.syndrome != kSyndromeAck;
  });
  EXPECT_EQ(naks, answer().nak == kNothing ? 0 : 1);
  ExpectResponder(c, answer(), profile() == Profile::kRxe61);
  EXPECT_TRUE(c.a.memory == a_before);
  if (work.opcode != IBV_WR_SEND && work.opcode != IBV_WR_ATOMIC_FETCH_AND_ADD) {
    EXPECT_TRUE(c.b.memory == b_before);
  }
}

std::string CaseName(const ::testing::TestParamInfo<std::tuple<ErrorCase, Profile>>& info) {
  return std::get<0>(info.param).name +
         (std::get<1>(info.param) == Profile::kRxe61 ? "Rxe" : "Ibta");
}

const auto kProfiles = ::testing::Values(Profile::kIbta, Profile::kRxe61);
INSTANTIATE_TEST_SUITE_P(Receive, ErrorTest,
                         ::testing::Combine(::testing::ValuesIn(ReceiveCases()), kProfiles),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Remote, ErrorTest,
                         ::testing::Combine(::testing::ValuesIn(RemoteCases()), kProfiles),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Local, ErrorTest,
                         ::testing::Combine(::testing::ValuesIn(LocalCases()), kProfiles),
                         CaseName);

}  // namespace
}  // namespace verbscope::soft::testing
