#include "transports/soft/options/value_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

namespace verbscope::soft {
namespace {

using std::chrono::nanoseconds;

TEST(Count, TakesDigitsWithinTheRangeOnly) {
  EXPECT_EQ(CountFromText("0", 0, 9), 0u);
  EXPECT_EQ(CountFromText("18446744073709551615", 0, UINT64_MAX), UINT64_MAX);
  for (const char* bad :
       {"", "-1", "+1", " 1", "1 ", "0x1", "1k", "1.0", "10", "18446744073709551616"}) {
    EXPECT_EQ(CountFromText(bad, 0, 9), std::nullopt) << bad;
  }
}

TEST(Chance, IsAShareOrAPercentage) {
  EXPECT_EQ(ChanceFromText("0"), 0.0);
  EXPECT_EQ(ChanceFromText("1"), 1.0);
  EXPECT_EQ(ChanceFromText("0.25"), 0.25);
  EXPECT_EQ(ChanceFromText(".5"), 0.5);
  EXPECT_EQ(ChanceFromText("1e-6"), 1e-6);
  EXPECT_EQ(ChanceFromText("5%"), 0.05);
  EXPECT_EQ(ChanceFromText("100%"), 1.0);
  for (const char* bad : {"", "%", ".", "1.01", "101%", "-0.1", "-0", "nan", "inf", "0x1", "5 %",
                          "5%%", "0,5", "1e400"}) {
    EXPECT_EQ(ChanceFromText(bad), std::nullopt) << bad;
  }
}

TEST(Delay, IsExactAndNeedsAUnit) {
  EXPECT_EQ(DelayFromText("0"), nanoseconds(0));
  EXPECT_EQ(DelayFromText("7ns"), nanoseconds(7));
  EXPECT_EQ(DelayFromText("10us"), nanoseconds(10'000));
  EXPECT_EQ(DelayFromText("1.5ms"), nanoseconds(1'500'000));
  EXPECT_EQ(DelayFromText("0.000000001s"), nanoseconds(1));
  EXPECT_EQ(DelayFromText("1.500ns"), std::nullopt);
  EXPECT_EQ(DelayFromText("1.000ns"), nanoseconds(1));
  EXPECT_EQ(DelayFromText("60s"), nanoseconds(60'000'000'000));
  for (const char* bad : {"", "1", "us", "1m", "1 ms", "-1us", "1.us", ".5us", "0.1ns",
                          "60.000000001s", "61s", "60000000001ns", "99999999999999999999s"}) {
    EXPECT_EQ(DelayFromText(bad), std::nullopt) << bad;
  }
}

TEST(Gid, TakesBothFamilies) {
  const auto v4 = GidFromText("10.0.0.1");
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->raw[9], 0);
  EXPECT_EQ(v4->raw[10], 0xff);
  EXPECT_EQ(v4->raw[12], 10);
  EXPECT_EQ(v4->raw[15], 1);
  const auto v6 = GidFromText("fe80::2");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->raw[0], 0xfe);
  EXPECT_EQ(v6->raw[15], 2);
  EXPECT_TRUE(GidFromText("::"));
  for (const char* bad : {"", "host", "10.0.0", "10.0.0.256", "fe80::1%eth0", "1:2"}) {
    EXPECT_FALSE(GidFromText(bad)) << bad;
  }
  EXPECT_FALSE(GidFromText(std::string_view("10.0.0.1\0x", 10)));
}

TEST(Address, IsOneThatAHostCanHave) {
  for (const char* good :
       {"10.0.0.1", "127.0.0.1", "::1", "fe80::1", "fd09::1", "::ffff:10.0.0.1"}) {
    EXPECT_TRUE(AddressFromText(good)) << good;
  }
  for (const char* bad : {"0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "ff02::1"}) {
    EXPECT_FALSE(AddressFromText(bad)) << bad;
  }
}

TEST(Errno, IsFoundByName) {
  EXPECT_EQ(ErrnoFromText("ENOMEM"), ENOMEM);
  EXPECT_EQ(ErrnoFromText("ETIMEDOUT"), ETIMEDOUT);
  EXPECT_EQ(ErrnoFromText("EACCES"), EACCES);
  EXPECT_EQ(ErrnoFromText("enomem"), std::nullopt);
  EXPECT_EQ(ErrnoFromText("0"), std::nullopt);
  EXPECT_EQ(ErrnoFromText(""), std::nullopt);
}

// The names stand in order of value.
TEST(CompletionStatus, NamesAllValues) {
  EXPECT_EQ(CompletionStatusFromText("SUCCESS"), IBV_WC_SUCCESS);
  EXPECT_EQ(CompletionStatusFromText("LOC_PROT_ERR"), IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(CompletionStatusFromText("WR_FLUSH_ERR"), IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(CompletionStatusFromText("LOC_ACCESS_ERR"), IBV_WC_LOC_ACCESS_ERR);
  EXPECT_EQ(CompletionStatusFromText("REM_ACCESS_ERR"), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(CompletionStatusFromText("RNR_RETRY_EXC_ERR"), IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(CompletionStatusFromText("REM_ABORT_ERR"), IBV_WC_REM_ABORT_ERR);
  EXPECT_EQ(CompletionStatusFromText("GENERAL_ERR"), IBV_WC_GENERAL_ERR);
  EXPECT_EQ(CompletionStatusFromText("TM_RNDV_INCOMPLETE"), IBV_WC_TM_RNDV_INCOMPLETE);
  EXPECT_EQ(CompletionStatusFromText("OK"), std::nullopt);
}

TEST(Path, HasNoControlCharacters) {
  EXPECT_TRUE(IsPath("a b/\xc3\xa4.json"));
  EXPECT_TRUE(IsPath(std::string(4095, 'x')));
  EXPECT_FALSE(IsPath(std::string(4096, 'x')));
  EXPECT_FALSE(IsPath(""));
  EXPECT_FALSE(IsPath("a\nb"));
  EXPECT_FALSE(IsPath("a\x7f"));
}

TEST(Suggestion, FindsTyposAndShortForms) {
  constexpr std::array<std::string_view, 4> kNames = {"drop", "duplicate", "delay", "RoCE v2"};
  const std::pair<const char*, const char*> kCases[] = {
      {"drp", "drop"},
      {"dropp", "drop"},
      {"dup", "duplicate"},
      {"duplciate", "duplicate"},
      {"rocev2", "RoCE v2"},
      {"DELAY", "delay"},
      {"loss", ""},
      {"", ""},
      {"d", ""},
      {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", ""},
  };
  for (const auto& [text, nearest] : kCases) EXPECT_EQ(Nearest(text, kNames), nearest) << text;
  EXPECT_EQ(Suggestion("drp", kNames), "write 'drop'");
  EXPECT_EQ(Suggestion("loss", kNames), "");
}

TEST(Quoted, IsShortAndPrintable) {
  EXPECT_EQ(Quoted("a\x1b[1m"), "'a?[1m'");
  EXPECT_EQ(Quoted(std::string(100, 'x')), "'" + std::string(64, 'x') + "...'");
}

}  // namespace
}  // namespace verbscope::soft
