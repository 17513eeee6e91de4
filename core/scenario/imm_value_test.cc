#include "core/scenario/imm_value.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace verbscope {
namespace {

std::set<uint32_t> BytesOf(uint32_t value) {
  return {value >> 24, (value >> 16) & 0xFF, (value >> 8) & 0xFF, value & 0xFF};
}

TEST(ImmValueTest, TheFirstTwoAreNothingAndEverything) {
  for (const Direction direction : {Direction::kRequest, Direction::kAnswer}) {
    EXPECT_EQ(ImmediateOf(0, direction), 0U);
    EXPECT_EQ(ImmediateOf(1, direction), 0xFFFFFFFFU);
  }
}

TEST(ImmValueTest, EveryOtherHasFourDifferentBytesAndTellsItsNumber) {
  std::set<uint32_t> seen;
  for (uint64_t number = 2; number < 65536; ++number) {
    for (const Direction direction : {Direction::kRequest, Direction::kAnswer}) {
      const uint32_t value = ImmediateOf(number, direction);
      EXPECT_EQ(BytesOf(value).size(), 4U) << number;
      EXPECT_EQ(NumberOf(value, direction), number);
      seen.insert(value);
    }
    // Reversed it is no value at all, of neither direction.
    const uint32_t swapped = __builtin_bswap32(ImmediateOf(number, Direction::kRequest));
    EXPECT_FALSE(NumberOf(swapped, Direction::kRequest)) << number;
    EXPECT_FALSE(NumberOf(swapped, Direction::kAnswer)) << number;
  }
  EXPECT_GT(seen.size(), 2U * 65534 * 99 / 100) << "directions must differ nearly always";
}

TEST(ImmValueTest, ASingleFlippedBitIsNeverTheValueOfAnotherMessageWithTheSameTags) {
  int taken_for_another = 0;
  for (uint64_t number = 2; number < 4096; ++number) {
    const uint32_t value = ImmediateOf(number, Direction::kRequest);
    for (int bit = 0; bit < 32; ++bit) {
      taken_for_another += NumberOf(value ^ (1U << bit), Direction::kRequest).has_value() ? 1 : 0;
    }
  }
  EXPECT_LT(taken_for_another, 4096 * 32 / 100);
}

TEST(ImmValueTest, OneConversionEachWay) {
  EXPECT_EQ(FromWire(ToWire(0x01020304)), 0x01020304U);
  const __be32 wire = ToWire(0x01020304);
  EXPECT_EQ(reinterpret_cast<const uint8_t*>(&wire)[0], 1) << "most significant byte first";
}

TEST(ImmValueTest, WhatIsWrongIsNamed) {
  const Direction request = Direction::kRequest;
  const uint32_t wanted = ImmediateOf(17, request);
  EXPECT_EQ(ExplainImmediate(__builtin_bswap32(wanted), wanted, request), "byte order swapped");
  EXPECT_EQ(ExplainImmediate(ImmediateOf(18, request), wanted, request),
            "it is the immediate of message 18");
  EXPECT_EQ(ExplainImmediate(ImmediateOf(17, Direction::kAnswer), wanted, request),
            "it is an immediate of the other direction");
  EXPECT_EQ(ExplainImmediate(wanted ^ 0x80000000U, wanted, request), "1 bit of 32 differs");
}

}  // namespace
}  // namespace verbscope
