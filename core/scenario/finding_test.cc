#include "core/scenario/finding.h"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

TEST(FindingTest, NothingOnBothSidesIsNothing) { EXPECT_FALSE(FirstOf({}, {})); }

TEST(FindingTest, AMismatchExplainsWhatIsMissingElsewhere) {
  const Finding wrong =
      Found(20, "message 20", {.what = "byte_len", .expected = "64", .got = "60", .why = ""});
  const Finding missing = Missing(17, "message 17", "receive completion", 2'000'000'000);
  EXPECT_EQ(missing.observed, "message 17: no receive completion within 2s");
  EXPECT_EQ(FirstOf(missing, wrong)->observed, "message 20: byte_len is 60, seen by the responder");
  EXPECT_EQ(FirstOf(wrong, missing)->observed, "message 20: byte_len is 60, seen by the requester");
}

TEST(FindingTest, OfTwoSilencesTheEarlierIsTheCauseAndMessagesReachTheResponderFirst) {
  const Finding early = Missing(4, "message 4", "receive completion", 1);
  const Finding late = Missing(5, "message 5", "receive completion", 1);
  EXPECT_EQ(FirstOf(early, late)->order, 4U);
  EXPECT_EQ(FirstOf(late, early)->order, 4U);
  EXPECT_NE(FirstOf(early, early)->observed.find("seen by the responder"), std::string::npos);
}

TEST(FindingTest, ItTravels) {
  EXPECT_FALSE(FindingFromJson(ToJson(std::optional<Finding>())));
  const Finding finding = Missing(3, "message 3", "send completion", 1);
  const auto back = FindingFromJson(ToJson(std::optional(finding)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->order, 3U);
  EXPECT_TRUE(back->missing);
  EXPECT_EQ(back->observed, finding.observed);
  EXPECT_TRUE(FindingFromJson({{"order", "x"}, {"observed", 5}})) << "rubbish is no crash";
}

}  // namespace
}  // namespace verbscope
