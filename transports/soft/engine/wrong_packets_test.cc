// Packets that no correct peer would send: refused, or ignored and counted.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "transports/soft/engine/engine_fixture.h"

namespace verbscope::soft::testing {
namespace {

struct Bad {
  const char* name;
  std::vector<Opcode> opcodes;  // one after the other, from the expected PSN
  std::vector<size_t> bytes;
  uint32_t dma_length = 0;
};

class RefusedTest : public ::testing::TestWithParam<std::tuple<Bad, Profile>> {};

TEST_P(RefusedTest, WithAnInvalidRequestNak) {
  const auto& [bad, profile] = GetParam();
  Connection c({.profile = profile});
  const bool rxe = profile == Profile::kRxe61;
  c.b.Receive(1, {c.b.Piece(0, 4096)});
  Header header{.dest_qpn = c.b.qp->qpn(), .psn = 0xfffff0};
  header.address = c.b.Address(8192);
  header.rkey = c.b.key;
  header.dma_length = bad.dma_length;
  for (size_t i = 0; i < bad.opcodes.size(); ++i) {
    ASSERT_EQ(c.b.state(), IBV_QPS_RTS);
    header.opcode = bad.opcodes[i];
    header.pad = static_cast<uint8_t>(-bad.bytes[i] & 3);
    ASSERT_TRUE(c.world.Deliver(c.b.side, 9, header, std::vector<std::byte>(bad.bytes[i])));
    ++header.psn;
  }
  c.world.Serve();
  EXPECT_EQ(c.b.state(), IBV_QPS_ERR);
  ASSERT_EQ(c.world.log.size(), 1U);
  EXPECT_EQ(c.world.log[0].header.syndrome, kNakInvalidRequest);
  EXPECT_EQ(c.world.log[0].header.psn, header.psn - 1);
  EXPECT_EQ(c.b.side.Count(IBV_EVENT_QP_REQ_ERR), rxe ? 0U : 1U);
  const auto received = c.b.PollReceive();
  ASSERT_EQ(received.size(), 1U);
  // The receive of a message under way: rxe 6.1 puts the blame there.
  const bool under_way = bad.opcodes[0] == Opcode::kSendFirst;
  EXPECT_EQ(received[0].status, rxe && under_way ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_WR_FLUSH_ERR);
}

INSTANTIATE_TEST_SUITE_P(
    WrongPackets, RefusedTest,
    ::testing::Combine(
        ::testing::Values(
            Bad{"LastWithoutFirst", {Opcode::kSendLast}, {10}},
            Bad{"MiddleWithoutFirst", {Opcode::kWriteMiddle}, {1024}},
            Bad{"FirstAfterFirst", {Opcode::kSendFirst, Opcode::kSendFirst}, {1024, 1024}},
            Bad{"OnlyInAMessage", {Opcode::kSendFirst, Opcode::kSendOnly}, {1024, 10}},
            Bad{"ReadInAMessage", {Opcode::kSendFirst, Opcode::kReadRequest}, {1024, 0}, 4},
            Bad{"WriteEndsASend", {Opcode::kSendFirst, Opcode::kWriteLast}, {1024, 10}, 1034},
            Bad{"WriteShorterThanSaid", {Opcode::kWriteOnly}, {10}, 11},
            Bad{"WriteLongerThanSaid", {Opcode::kWriteOnly}, {10}, 9},
            Bad{"WriteFirstHoldsAll", {Opcode::kWriteFirst}, {1024}, 1024},
            Bad{"WriteLastTooLong", {Opcode::kWriteFirst, Opcode::kWriteLast}, {1024, 20}, 1034},
            Bad{"WriteFirstNotFull", {Opcode::kWriteFirst}, {1000}, 2000},
            Bad{"WriteOverMtu", {Opcode::kWriteOnly}, {1028}, 1028},
            Bad{"WriteTooLongForAnyone", {Opcode::kWriteFirst}, {1024}, 0x80000000U},
            Bad{"ReadTooLongForAnyone", {Opcode::kReadRequest}, {0}, 0xffffffffU}),
        ::testing::Values(Profile::kIbta, Profile::kRxe61)),
    [](const auto& test) {
      return std::string(std::get<0>(test.param).name) +
             (std::get<1>(test.param) == Profile::kRxe61 ? "Rxe" : "Ibta");
    });

TEST(WrongPacketsTest, SendsAreMeasuredAgainstTheMtuByIbtaOnly) {
  for (const Profile profile : {Profile::kIbta, Profile::kRxe61}) {
    Connection c({.profile = profile});
    c.b.Receive(1, {c.b.Piece(0, 4096)});
    const Header header{.opcode = Opcode::kSendOnly, .dest_qpn = c.b.qp->qpn(), .psn = 0xfffff0};
    c.world.Deliver(c.b.side, 9, header, std::vector<std::byte>(1400));
    c.world.Serve();
    EXPECT_EQ(c.b.state(), profile == Profile::kRxe61 ? IBV_QPS_RTS : IBV_QPS_ERR);
  }
}

// What is dropped is counted, and nothing else has happened.
class DroppedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    c_.a.Fill(4);
    c_.b.Receive(1, {c_.b.Piece(0, 4096)});
    header_ = {.opcode = Opcode::kSendOnly, .dest_qpn = c_.b.qp->qpn(), .psn = 0xfffff0};
    before_ = c_.b.memory;
  }
  void ExpectNothingHappened() {
    c_.world.Serve();
    EXPECT_EQ(c_.b.state(), IBV_QPS_RTS);
    EXPECT_EQ(c_.a.state(), IBV_QPS_RTS);
    EXPECT_TRUE(c_.b.memory == before_);
    EXPECT_TRUE(c_.b.PollReceive().empty());
    EXPECT_TRUE(c_.b.side.qp_events.empty());
    // And the connection works on.
    c_.a.Post({.id = 5, .local = {c_.a.Piece(0, 100)}});
    c_.world.Run();
    EXPECT_EQ(c_.b.PollReceive().size(), 1U);
    EXPECT_EQ(c_.a.PollSend().size(), 1U);
  }
  const Counters& counters() { return c_.b.side.engine.counters(); }

  Connection c_;
  Header header_;
  std::vector<std::byte> before_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(8, std::byte{0xee});
};

TEST_F(DroppedTest, FromAThirdPath) {
  c_.world.Deliver(c_.b.side, kThirdPath, header_, payload_);
  EXPECT_EQ(counters().wrong_source, 1U);
  ExpectNothingHappened();
}

TEST_F(DroppedTest, ForAnUnknownQp) {
  header_.dest_qpn += 1;
  c_.world.Deliver(c_.b.side, 9, header_, payload_);
  header_.dest_qpn += Engine::kMaxQps - 1;  // the same place in the table
  c_.world.Deliver(c_.b.side, 9, header_, payload_);
  EXPECT_EQ(counters().unknown_qpn, 2U);
  ExpectNothingHappened();
}

TEST_F(DroppedTest, ResponsesToNothing) {
  for (const Opcode opcode : {Opcode::kAck, Opcode::kAtomicAck, Opcode::kReadResponseOnly}) {
    for (const uint32_t psn : {0xffffefU, 0xfffff0U, 0xfffff1U, 0x7ffff0U}) {
      Header response{.opcode = opcode, .dest_qpn = c_.b.qp->qpn(), .psn = psn};
      for (const uint8_t syndrome : {kSyndromeAck, kSyndromeRnr, kNakSequence, kNakRemoteAccess}) {
        response.syndrome = syndrome;
        c_.world.Deliver(c_.b.side, 9, response, {});
      }
    }
  }
  EXPECT_EQ(counters().unexpected_response, 48U);
  ExpectNothingHappened();
}

TEST_F(DroppedTest, DuplicatesAreAcknowledgedAndNotExecuted) {
  header_.psn = 0xffffef;
  c_.world.Deliver(c_.b.side, 9, header_, payload_);
  header_.opcode = Opcode::kWriteOnly;
  header_.address = c_.b.Address(0);
  header_.rkey = c_.b.key;
  header_.dma_length = 8;
  c_.world.Deliver(c_.b.side, 9, header_, payload_);
  EXPECT_EQ(counters().duplicate_request, 2U);
  c_.world.Serve();
  ASSERT_EQ(c_.world.log.size(), 1U);  // one ACK for both
  EXPECT_EQ(c_.world.log[0].header.psn, 0xffffefU);
  EXPECT_EQ(c_.world.log[0].header.msn, 0U);
  ExpectNothingHappened();
}

TEST_F(DroppedTest, DuplicateReadsAndAtomicsThatDoNotHoldAreSilent) {
  header_.psn = 0xffffe0;
  header_.address = c_.b.Address(0);
  header_.rkey = 0x1234;
  header_.dma_length = 8;
  for (const Opcode opcode : {Opcode::kReadRequest, Opcode::kFetchAdd, Opcode::kCompareSwap}) {
    header_.opcode = opcode;
    c_.world.Deliver(c_.b.side, 9, header_, {});
  }
  // Reaches over the expected PSN.
  header_.opcode = Opcode::kReadRequest;
  header_.rkey = c_.b.key;
  header_.dma_length = 17 * 1024;
  c_.world.Deliver(c_.b.side, 9, header_, {});
  c_.world.Serve();
  EXPECT_TRUE(c_.world.log.empty());
  EXPECT_EQ(counters().duplicate_request, 4U);
  ExpectNothingHappened();
}

TEST(WrongPacketsTest, AnswersOfTheWrongKindEndTheRequest) {
  for (const Opcode opcode :
       {Opcode::kAtomicAck, Opcode::kReadResponseOnly, Opcode::kReadResponseMiddle}) {
    Connection c;
    c.world.lose = [](const Sent&) { return true; };
    c.a.Post({.id = 1, .local = {c.a.Piece(0, 10)}});
    const Header header{.opcode = opcode, .dest_qpn = c.a.qp->qpn(), .psn = 0xfffff0};
    c.world.Deliver(c.a.side, 5, header, {});
    const auto done = c.a.PollSend();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, IBV_WC_BAD_RESP_ERR);
    EXPECT_EQ(c.a.state(), IBV_QPS_ERR);
  }
}

TEST(WrongPacketsTest, AQpThatIsNotReadyDropsAndCounts) {
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_ERR}) {
    Connection c;
    if (state == IBV_QPS_INIT) {
      c.b.Modify(IBV_QPS_RESET);
      c.b.Connect(c.a, {}, IBV_QPS_INIT);
    } else {
      c.b.Modify(state);
      c.b.qp->SetPath(9);
    }
    const Header header{.opcode = Opcode::kSendOnly, .dest_qpn = c.b.qp->qpn(), .psn = 0xfffff0};
    c.world.Deliver(c.b.side, 9, header, {});
    c.world.Serve();
    EXPECT_EQ(c.b.side.engine.counters().dropped_state, 1U);
    EXPECT_EQ(c.b.state(), state);
    EXPECT_TRUE(c.world.log.empty());
  }
}

}  // namespace
}  // namespace verbscope::soft::testing
