#include "transports/ibverbs/inline_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace verbscope {
namespace {

Error Refused(int errno_value) {
  return CallError(ErrorClass::kSetup, "ibv_create_qp", "", errno_value);
}

// A device that takes up to `limit` and gives back what was asked for.
struct ExactDevice {
  uint32_t limit;
  std::vector<uint32_t> asked = {};

  Expected<uint32_t> operator()(uint32_t bytes) {
    asked.push_back(bytes);
    if (bytes > limit) return Fail(Refused(EINVAL));
    return bytes;
  }
};

class InlineLimit : public ::testing::TestWithParam<uint32_t> {};

TEST_P(InlineLimit, IsFoundExactlyInFewAttempts) {
  ExactDevice device{GetParam()};
  EXPECT_EQ(FindMaxInline(std::ref(device)), GetParam());
  EXPECT_LE(device.asked.size(), 12u);
}

INSTANTIATE_TEST_SUITE_P(FieldLimits, InlineLimit,
                         ::testing::Values(0, 1, 2, 101, 220, 400, 511, 512, 1023));

TEST(InlineProbeTest, LimitsAboveTheFirstGuessAreFoundToo) {
  for (const uint32_t limit : {1024u, 1025u, 3000u, 8192u}) {
    ExactDevice device{limit};
    EXPECT_EQ(FindMaxInline(std::ref(device)), limit);
    EXPECT_LE(device.asked.size(), 16u);
  }
}

TEST(InlineProbeTest, NothingBeyondTheLargestSizeIsAskedFor) {
  ExactDevice device{UINT32_MAX};
  EXPECT_EQ(FindMaxInline(std::ref(device)), 8192u);
  EXPECT_EQ(*std::max_element(device.asked.begin(), device.asked.end()), 8192u);
}

TEST(InlineProbeTest, ALiarIsBelievedByWhatItGives) {
  for (const uint32_t given : {0u, 60u}) {
    int attempts = 0;
    const auto liar = [&](uint32_t bytes) -> Expected<uint32_t> {
      ++attempts;
      return std::min(bytes, given);
    };
    EXPECT_EQ(FindMaxInline(liar), given);
    EXPECT_EQ(attempts, 2);
  }
}

TEST(InlineProbeTest, ADeviceThatRoundsUpIsFoundFaster) {
  std::vector<uint32_t> asked;
  const auto rounds_up = [&](uint32_t bytes) -> Expected<uint32_t> {
    asked.push_back(bytes);
    if (bytes > 252) return Fail(Refused(ENOMEM));
    return bytes <= 28 ? 28u : (bytes + 3) / 64 * 64 + 60;
  };
  EXPECT_EQ(FindMaxInline(rounds_up), 252u);
  EXPECT_LE(asked.size(), 11u);
}

TEST(InlineProbeTest, ALargeSizeGivenUnaskedIsWhereTheSearchStarts) {
  std::vector<uint32_t> asked;
  const auto device = [&](uint32_t bytes) -> Expected<uint32_t> {
    asked.push_back(bytes);
    if (bytes > 400) return Fail(Refused(EINVAL));
    return 400;
  };
  EXPECT_EQ(FindMaxInline(device), 400u);
  EXPECT_TRUE(std::all_of(asked.begin() + 1, asked.end(), [](uint32_t n) { return n > 400; }));
}

TEST(InlineProbeTest, AbsurdAnswersDoNotEndInALoop) {
  int attempts = 0;
  const auto absurd = [&](uint32_t) -> Expected<uint32_t> {
    ++attempts;
    return UINT32_MAX;
  };
  EXPECT_EQ(FindMaxInline(absurd), 8192u);
  EXPECT_LE(attempts, 3);
}

TEST(InlineProbeTest, WithoutAnyQpTheErrorIsPassedOn) {
  const auto none = [](uint32_t) -> Expected<uint32_t> { return Fail(Refused(ENOMEM)); };
  const auto found = FindMaxInline(none);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().errno_value, ENOMEM);
}

TEST(InlineProbeTest, ADeviceThatGoesAwayIsNoLimit) {
  const auto gone = [](uint32_t bytes) -> Expected<uint32_t> {
    if (bytes == 0) return 0u;
    return Fail(Refused(ENODEV));
  };
  const auto found = FindMaxInline(gone);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().errno_value, ENODEV);
}

}  // namespace
}  // namespace verbscope
