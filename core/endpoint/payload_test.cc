#include "core/endpoint/payload.h"

#include <gtest/gtest.h>

#include <vector>

namespace verbscope {
namespace {

TEST(Payload, WhatWasFilledMatchesAtEverySize) {
  for (const size_t size : {0u, 1u, 7u, 8u, 9u, 64u, 4097u}) {
    std::vector<std::byte> bytes(size);
    FillPattern(bytes, 3);
    EXPECT_FALSE(FindMismatch(bytes, 3));
  }
}

TEST(Payload, EveryFlippedBitIsFoundAtItsOffset) {
  std::vector<std::byte> bytes(64);
  FillPattern(bytes, 1);
  for (size_t bit = 0; bit < 64 * 8; ++bit) {
    std::vector<std::byte> damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    const auto found = FindMismatch(damaged, 1);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->offset, bit / 8);
    EXPECT_EQ(found->expected, std::to_integer<uint8_t>(bytes[bit / 8]));
    EXPECT_EQ(found->got, std::to_integer<uint8_t>(damaged[bit / 8]));
  }
}

TEST(Payload, NoByteOfWhatNeverArrivedLooksRight) {
  std::vector<std::byte> bytes(1000);
  FillAgainst(bytes, 9);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> right(i + 1);
    FillPattern(right, 9);
    EXPECT_NE(bytes[i], right[i]);
  }
}

TEST(Payload, DataOfAnotherSeedOrPlaceIsNoMatch) {
  std::vector<std::byte> bytes(4096);
  FillPattern(bytes, 1);
  EXPECT_TRUE(FindMismatch(bytes, 2));
  EXPECT_TRUE(FindMismatch(std::span(bytes).subspan(8), 1));
}

TEST(Payload, ABrokenGuardIsFound) {
  std::vector<std::byte> guard(64, kGuardByte);
  EXPECT_FALSE(FindBrokenGuard(guard));
  guard[0] = std::byte{0};
  EXPECT_EQ(FindBrokenGuard(guard)->offset, 0u);
}

}  // namespace
}  // namespace verbscope
