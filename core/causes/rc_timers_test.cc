#include "core/causes/rc_timers.h"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

TEST(RnrTimerTest, NamedValuesOfTheSpecification) {
  EXPECT_EQ(RnrTimerNs(0), 655'360'000);
  EXPECT_EQ(RnrTimerNs(1), 10'000);
  EXPECT_EQ(RnrTimerNs(12), 640'000);
  EXPECT_EQ(RnrTimerNs(14), 1'280'000);
  EXPECT_EQ(RnrTimerNs(26), 81'920'000);
  EXPECT_EQ(RnrTimerNs(31), 491'520'000);
}

TEST(RnrTimerTest, TimesGrowWithTheCodeFromOneOn) {
  for (uint32_t code = 2; code < 32; ++code) EXPECT_GT(RnrTimerNs(code), RnrTimerNs(code - 1));
  EXPECT_GT(RnrTimerNs(0), RnrTimerNs(31));
}

// From code 4 on the table doubles every two steps: 0.04, 0.06, 0.08, 0.12, … ms.
TEST(RnrTimerTest, TimesDoubleEveryTwoCodes) {
  for (uint32_t code = 4; code + 2 < 32; ++code) {
    EXPECT_EQ(RnrTimerNs(code + 2), 2 * RnrTimerNs(code)) << code;
  }
  EXPECT_EQ(RnrTimerNs(3), 30'000);
  EXPECT_EQ(RnrTimerNs(0), 2 * RnrTimerNs(30));
}

TEST(RnrTimerTest, OnlyTheFiveBitsOfThePacketFieldCount) {
  EXPECT_EQ(RnrTimerNs(32), RnrTimerNs(0));
  EXPECT_EQ(RnrTimerNs(0xffffffffU), RnrTimerNs(31));
}

TEST(RnrGiveUpTest, RetriesTimesTheTimerAndSevenNeverEnds) {
  EXPECT_EQ(RnrGiveUpNs(12, 6), 3'840'000);
  EXPECT_EQ(RnrGiveUpNs(12, 0), 0);
  EXPECT_EQ(RnrGiveUpNs(12, 7), std::nullopt);
}

TEST(AckTimeoutTest, FourMicrosecondsTimesAPowerOfTwo) {
  EXPECT_EQ(AckTimeoutNs(1), 8'192);
  EXPECT_EQ(AckTimeoutNs(14), 67'108'864);
  EXPECT_EQ(AckTimeoutNs(31), int64_t{4096} << 31);
  EXPECT_EQ(AckTimeoutNs(0), std::nullopt);
}

TEST(AckTimeoutTest, GivesUpAfterTheFirstTransmissionAndAllRetries) {
  EXPECT_EQ(AckGiveUpNs(14, 6), 7 * int64_t{67'108'864});
  EXPECT_EQ(AckGiveUpNs(14, 0), 67'108'864);
  EXPECT_EQ(AckGiveUpNs(0, 6), std::nullopt);
  EXPECT_EQ(AckGiveUpNs(31, 7), 8 * (int64_t{4096} << 31));
}

}  // namespace
}  // namespace verbscope
