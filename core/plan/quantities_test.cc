#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/plan.h"

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseSizeTest, SuffixesArePowersOf1024InEitherCase) {
  constexpr uint64_t kKi = 1024, kMi = kKi * 1024, kGi = kMi * 1024;
  const std::pair<const char*, uint64_t> rows[] = {
      {"0", 0},
      {"1", 1},
      {"64", 64},
      {"007", 7},
      {"4K", 4 * kKi},
      {"4k", 4 * kKi},
      {"4Ki", 4 * kKi},
      {"4kI", 4 * kKi},
      {"4KI", 4 * kKi},
      {"4ki", 4 * kKi},
      {"3M", 3 * kMi},
      {"3m", 3 * kMi},
      {"3Mi", 3 * kMi},
      {"3mi", 3 * kMi},
      {"2G", 2 * kGi},
      {"2g", 2 * kGi},
      {"2Gi", 2 * kGi},
      {"2gI", 2 * kGi},
      {"0G", 0},
      {"18446744073709551615", std::numeric_limits<uint64_t>::max()},
      {"17179869183G", 17179869183 * kGi},
  };
  for (const auto& [text, bytes] : rows) {
    const auto parsed = ParseSize(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ParseSizeTest, AnythingElseIsRefusedAsUsageAndNamed) {
  for (const char* text : {"",
                           " ",
                           " 64",
                           "64 ",
                           "6 4",
                           "-1",
                           "+1",
                           "K",
                           "Ki",
                           "i",
                           "4KB",
                           "4KiB",
                           "4B",
                           "4b",
                           "4T",
                           "4Ti",
                           "4i",
                           "4iK",
                           "4KK",
                           "4Kii",
                           "1.5K",
                           "0x40",
                           "1e3",
                           "64,128",
                           "4\xC3\xA4",
                           "four",
                           "18446744073709551616",
                           "99999999999999999999999",
                           "17179869184G",
                           "18014398509481984K"}) {
    const auto parsed = ParseSize(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().error_class, ErrorClass::kUsage);
    EXPECT_FALSE(parsed.error().next_step.empty());
  }
  EXPECT_THAT(ParseSize("4KB").error().message, HasSubstr("'4KB' has the unknown suffix 'KB'"));
  EXPECT_THAT(ParseSize("17179869184G").error().message, HasSubstr("too large"));
}

TEST(ParseSizeTest, ErrorsHoldNoControlBytesAndAreShort) {
  const std::string hostile = "\x1b[2J\n" + std::string(100'000, 'x');
  const std::string message = ParseSize(hostile).error().message;
  EXPECT_THAT(message, HasSubstr("'?[2J?xxx"));
  EXPECT_LT(message.size(), 200u);
}

TEST(ParseDurationTest, UnitsFractionsAndTheBareNumber) {
  const std::pair<const char*, int64_t> rows[] = {
      {"0", 0},
      {"0ms", 0},
      {"10", 10'000'000'000},
      {"0.5", 500'000'000},
      {"10s", 10'000'000'000},
      {"500ms", 500'000'000},
      {"20us", 20'000},
      {"100ns", 100},
      {"2m", 120'000'000'000},
      {"1h", 3'600'000'000'000},
      {"1.5s", 1'500'000'000},
      {"0.25m", 15'000'000'000},
      {"2.000ns", 2},
      {"1.0000000000000000000000s", 1'000'000'000},
      {"0.000000001s", 1},
      {"0.0000000000025h", 9},
      {"9223372036854775807ns", std::numeric_limits<int64_t>::max()},
      {"9223372036.854775807s", std::numeric_limits<int64_t>::max()},
  };
  for (const auto& [text, ns] : rows) {
    const auto parsed = ParseDuration(text);
    ASSERT_TRUE(parsed.has_value()) << text << ": " << parsed.error().message;
    EXPECT_EQ(*parsed, ns) << text;
  }
}

TEST(ParseDurationTest, AnythingElseIsRefused) {
  for (const char* text : {"",
                           " ",
                           "s",
                           "ms",
                           "-1s",
                           "+1s",
                           "1 s",
                           " 1s",
                           "1s ",
                           "1S",
                           "1Ms",
                           "1min",
                           "1d",
                           "1sec",
                           "1.s",
                           ".5s",
                           ".",
                           "1.",
                           "1..5s",
                           "1.5.5s",
                           "1e3",
                           "nan",
                           "inf",
                           "1,5s",
                           "0.5ns",
                           "1.2345ns",
                           "0.0000000001s",
                           "0.00000000000001h",
                           "9223372036854775808ns",
                           "9223372036854775807us",
                           "9223372036.854775808s",
                           "2562048h",
                           "18446744073709551616ns"}) {
    const auto parsed = ParseDuration(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().error_class, ErrorClass::kUsage);
  }
  EXPECT_THAT(ParseDuration("0.5ns").error().message, HasSubstr("finer than 1 ns"));
  EXPECT_THAT(ParseDuration("1min").error().message, HasSubstr("unknown unit 'min'"));
}

TEST(DurationTextTest, IsTheShortestExactForm) {
  const std::pair<int64_t, const char*> rows[] = {
      {0, "0s"},
      {1, "1ns"},
      {999, "999ns"},
      {20'000, "20us"},
      {500'000'000, "500ms"},
      {200'000'000, "200ms"},
      {2'000'000'000, "2s"},
      {1'500'000'000, "1.5s"},
      {1'234, "1234ns"},
      {30'000'000'000, "30s"},
      {90'000'000'000, "90s"},
      {600'000'000'000, "10m"},
      {9'000'000'000'000, "2.5h"},
      {-5, "-5ns"},
  };
  for (const auto& [ns, text] : rows) EXPECT_EQ(DurationText(ns), text);
}

TEST(DurationTextTest, ParsesBackToTheSameTime) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto ns = static_cast<int64_t>((random() >> 1) >> (random() % 63));
    const auto parsed = ParseDuration(DurationText(ns));
    ASSERT_TRUE(parsed.has_value()) << ns;
    ASSERT_EQ(*parsed, ns);
  }
}

TEST(ParseSizesTest, OneSizeAndRange) {
  EXPECT_THAT(*ParseSizes("64"), ElementsAre(64));
  EXPECT_THAT(*ParseSizes("0"), ElementsAre(0));
  EXPECT_THAT(*ParseSizes("1K:8Ki"), ElementsAre(1024, 2048, 4096, 8192));
  EXPECT_THAT(*ParseSizes("3:20"), ElementsAre(3, 6, 12, 20));
  EXPECT_THAT(*ParseSizes("0:4"), ElementsAre(0, 1, 2, 4));
  EXPECT_THAT(*ParseSizes("7:7"), ElementsAre(7));
  EXPECT_EQ(ParseSizes("0:2G")->size(), 33u);
  EXPECT_EQ(ParseSizes("0:2G")->back(), kMaxMessageBytes);
}

TEST(ParseSizesTest, AllIsThePowersOfTwoUpTo8Mi) {
  const auto sizes = *ParseSizes("all");
  ASSERT_EQ(sizes.size(), 24u);
  for (size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(sizes[i], uint64_t{1} << i);
}

TEST(ParseSizesTest, AllWithNeighboursHasBothNeighboursOnceAndNoZero) {
  const auto sizes = *ParseSizes("all+-1");
  EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end()));
  EXPECT_EQ(std::adjacent_find(sizes.begin(), sizes.end()), sizes.end());
  EXPECT_EQ(sizes.front(), 1u);
  EXPECT_LE(sizes.size(), kMaxSizes);
  for (uint64_t power = 2; power <= uint64_t{8} << 20; power *= 2) {
    for (const uint64_t size : {power - 1, power, power + 1}) {
      if (size > uint64_t{8} << 20) continue;  // the limit of many ports
      EXPECT_TRUE(std::binary_search(sizes.begin(), sizes.end(), size)) << size;
    }
  }
  EXPECT_EQ(sizes.back(), uint64_t{8} << 20);
}

TEST(ParseSizesTest, AnythingElseIsRefused) {
  for (const char* text : {"", ":", "1:", ":1", "8:4", "1:2:3", "All", "all+1", "all+-2", "64,128",
                           "1-8", "3G", "1:3G", "all:4", "1:8x"}) {
    const auto sizes = ParseSizes(text);
    ASSERT_FALSE(sizes.has_value()) << text;
    EXPECT_EQ(sizes.error().error_class, ErrorClass::kUsage);
  }
  EXPECT_THAT(ParseSizes("8:4").error().message, HasSubstr("downwards"));
}

TEST(WaitModeTest, EveryModeParsesBackFromItsText) {
  for (const WaitMode mode : {WaitMode{WaitKind::kBusy, 0}, WaitMode{WaitKind::kBusyPause, 0},
                              WaitMode{WaitKind::kEvent, 0}, WaitMode{WaitKind::kSolicited, 0},
                              WaitMode{WaitKind::kHybrid, 1}, WaitMode{WaitKind::kHybrid, 20'000},
                              WaitMode{WaitKind::kHybrid, kMaxSpinNs}}) {
    const auto parsed = ParseWaitMode(ToText(mode));
    ASSERT_TRUE(parsed.has_value()) << ToText(mode);
    EXPECT_EQ(*parsed, mode);
  }
  EXPECT_EQ(ToText(WaitMode{WaitKind::kHybrid, 20'000}), "hybrid:20us");
}

TEST(WaitModeTest, AnythingElseIsRefusedWithTheChoices) {
  for (const char* text :
       {"", "poll", "Busy", "busy:", "busy:pause:1", "event:1us", "hybrid", "hybrid:", "hybrid:0",
        "hybrid:-1us", "hybrid:2s", "hybrid:20", "hybrid:x", " busy"}) {
    const auto parsed = ParseWaitMode(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().error_class, ErrorClass::kUsage);
  }
  EXPECT_THAT(ParseWaitMode("poll").error().next_step, HasSubstr("hybrid:TIME"));
}

TEST(WaitModeTest, OnlyTheSleepingModesUseEvents) {
  EXPECT_FALSE(ParseWaitMode("busy")->uses_events());
  EXPECT_FALSE(ParseWaitMode("busy:pause")->uses_events());
  EXPECT_TRUE(ParseWaitMode("event")->uses_events());
  EXPECT_TRUE(ParseWaitMode("solicited")->uses_events());
  EXPECT_TRUE(ParseWaitMode("hybrid:1us")->uses_events());
}

TEST(InlineModeTest, TextsAndBack) {
  EXPECT_EQ(*ParseInlineMode("auto"), InlineMode{});
  EXPECT_EQ(*ParseInlineMode("off"), (InlineMode{InlineKind::kOff, 0}));
  EXPECT_EQ(*ParseInlineMode("0"), (InlineMode{InlineKind::kOff, 0}));
  EXPECT_EQ(*ParseInlineMode("220"), (InlineMode{InlineKind::kBytes, 220}));
  EXPECT_EQ(*ParseInlineMode("1K"), (InlineMode{InlineKind::kBytes, 1024}));
  for (const char* text : {"auto", "off", "220", "65536"}) {
    EXPECT_EQ(ToText(*ParseInlineMode(text)), text);
  }
}

TEST(InlineModeTest, AnythingElseIsRefused) {
  for (const char* text : {"", "on", "-1", "64B", "65537", "4294967297", "Auto"}) {
    EXPECT_FALSE(ParseInlineMode(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace verbscope
