#include "core/loops/request_ledger.h"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

TEST(RequestLedgerTest, ARequestIsCrossedOutOnce) {
  RequestLedger ledger(2, 4);
  EXPECT_FALSE(ledger.Close(0, 0)) << "never posted";
  ledger.Open(0, 0);
  EXPECT_EQ(ledger.in_flight(), 1U);
  EXPECT_FALSE(ledger.Close(1, 0)) << "of another queue pair";
  EXPECT_TRUE(ledger.Close(0, 0));
  EXPECT_FALSE(ledger.Close(0, 0)) << "twice";
  EXPECT_EQ(ledger.in_flight(), 0U);
}

TEST(RequestLedgerTest, LinesAreIndependent) {
  RequestLedger ledger(1, 4);
  for (uint64_t number = 0; number < 4; ++number) ledger.Open(0, number);
  EXPECT_TRUE(ledger.Close(0, 2));
  ledger.Open(0, 6);
  EXPECT_FALSE(ledger.Close(0, 2)) << "its line has request 6";
  EXPECT_TRUE(ledger.Close(0, 6));
  EXPECT_EQ(ledger.in_flight(), 3U);
}

TEST(RequestLedgerTest, NumbersOfPhasesAreFarApartAndBeginWithALine) {
  const RequestLedger ledger(1, 3);
  for (uint32_t phase = 0; phase + 1 < RequestLedger::kPhases; ++phase) {
    EXPECT_EQ(ledger.FirstNumber(phase) % 3, 0U);
    EXPECT_GT(ledger.FirstNumber(phase + 1), ledger.FirstNumber(phase) + 1'000'000'000);
  }
}

// A number is compared as a wr_id holds it: 40 bits.
TEST(RequestLedgerTest, ANumberBeyondTheWidthOfAWrIdIsStillFound) {
  RequestLedger ledger(1, 1);
  const uint64_t number = kWrSequenceMask + 5;
  ledger.Open(0, number);
  EXPECT_TRUE(ledger.Close(0, SequenceOf(MakeWrId(WrKind::kSend, 0, number))));
}

TEST(RequestLedgerTest, AWrIdHoldsEveryIndexAndNumberItIsGiven) {
  for (const size_t index : {size_t{0}, size_t{kMaxQps - 1}, size_t{0xffff}}) {
    for (const uint64_t number : {uint64_t{0}, uint64_t{1} << 39, kWrSequenceMask}) {
      const uint64_t wr_id = MakeWrId(WrKind::kSend, index, number);
      EXPECT_EQ(QpIndexOf(wr_id), index);
      EXPECT_EQ(SequenceOf(wr_id), number);
      EXPECT_EQ(KindOf(wr_id), WrKind::kSend);
    }
  }
}

}  // namespace
}  // namespace verbscope
