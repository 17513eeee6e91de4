#include "transports/soft/wire/psn.h"

#include <gtest/gtest.h>

namespace verbscope::soft {
namespace {

TEST(Psn, AddsModulo24Bits) {
  EXPECT_EQ(PsnAdd(0xffffff, 1), 0U);
  EXPECT_EQ(PsnAdd(0xfffff0, 0x20), 0x10U);
  EXPECT_EQ(PsnAdd(5, 0x1000000), 5U);
  EXPECT_EQ(PsnAdd(5, kPsnMask), 4U);
}

TEST(Psn, DifferenceGoesTheShortWayRound) {
  EXPECT_EQ(PsnDiff(7, 7), 0);
  EXPECT_EQ(PsnDiff(0, 0xffffff), 1);
  EXPECT_EQ(PsnDiff(0xffffff, 0), -1);
  EXPECT_EQ(PsnDiff(0x10, 0xfffff0), 0x20);
  EXPECT_EQ(PsnDiff(0xfffff0, 0x10), -0x20);
}

TEST(Psn, HalfTheNumbersAreOlder) {
  for (uint32_t base : {0U, 1U, 0x7fffffU, 0x800000U, 0xffffffU}) {
    EXPECT_EQ(PsnDiff(PsnAdd(base, 0x7fffff), base), 0x7fffff) << base;
    EXPECT_EQ(PsnDiff(PsnAdd(base, 0x800000), base), -0x800000) << base;
  }
}

TEST(Psn, BitsAbove24DoNotMatter) {
  EXPECT_EQ(PsnDiff(0xab000001, 0xcd000000), 1);
  EXPECT_EQ(PsnDiff(0x1000000, 0xffffff), 1);
}

}  // namespace
}  // namespace verbscope::soft
