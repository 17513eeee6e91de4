#include "core/causes/completion_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace verbscope {
namespace {

using testing::Not;
using testing::StartsWith;

TEST(CompletionStatusTest, EveryStatusHasNameMeaningAndForFailuresACauseWithACheck) {
  std::set<std::string_view> names;
  std::set<std::string_view> meanings;
  for (int number = IBV_WC_SUCCESS; number <= IBV_WC_TM_RNDV_INCOMPLETE; ++number) {
    const auto status = static_cast<ibv_wc_status>(number);
    const CompletionStatusInfo* info = FindCompletionStatus(status);
    ASSERT_NE(info, nullptr) << number;
    SCOPED_TRACE(info->name);
    EXPECT_EQ(info->status, status);
    EXPECT_EQ(NameOf(status), info->name);
    EXPECT_THAT(std::string(info->name), Not(StartsWith("IBV_WC_")));
    EXPECT_GE(info->meaning.size(), 20u);
    EXPECT_NE(info->meaning.back(), '.');
    EXPECT_EQ(info->likely_causes().empty(), status == IBV_WC_SUCCESS);
    for (const LikelyCause& row : info->likely_causes()) {
      EXPECT_FALSE(row.check.empty()) << row.cause;
    }
    EXPECT_EQ(info->detected_by == DetectedBy::kNobody, status == IBV_WC_SUCCESS);
    names.insert(info->name);
    meanings.insert(info->meaning);
  }
  EXPECT_EQ(names.size(), kCompletionStatuses);
  EXPECT_EQ(meanings.size(), kCompletionStatuses);
}

TEST(CompletionStatusTest, NamesAreThoseOfTheEnumeration) {
  EXPECT_EQ(NameOf(IBV_WC_LOC_LEN_ERR), "LOC_LEN_ERR");
  EXPECT_EQ(NameOf(IBV_WC_RETRY_EXC_ERR), "RETRY_EXC_ERR");
  EXPECT_EQ(NameOf(IBV_WC_RNR_RETRY_EXC_ERR), "RNR_RETRY_EXC_ERR");
  EXPECT_EQ(NameOf(IBV_WC_WR_FLUSH_ERR), "WR_FLUSH_ERR");
  EXPECT_EQ(NameOf(IBV_WC_TM_RNDV_INCOMPLETE), "TM_RNDV_INCOMPLETE");
}

TEST(CompletionStatusTest, NameFindsItsRowAgain) {
  for (int number = IBV_WC_SUCCESS; number <= IBV_WC_TM_RNDV_INCOMPLETE; ++number) {
    const CompletionStatusInfo* info = FindCompletionStatus(static_cast<ibv_wc_status>(number));
    EXPECT_EQ(FindCompletionStatus(info->name), info);
  }
  EXPECT_EQ(FindCompletionStatus("IBV_WC_SUCCESS"), nullptr);
  EXPECT_EQ(FindCompletionStatus(""), nullptr);
}

TEST(CompletionStatusTest, NumberFromTheFutureIsNamedByNumber) {
  // The enumeration has room for these values: its range is that of its widest enumerator's bits.
  const auto status = static_cast<ibv_wc_status>(kCompletionStatuses);
  EXPECT_EQ(FindCompletionStatus(status), nullptr);
  EXPECT_EQ(NameOf(status), "STATUS_24");
}

TEST(CompletionStatusTest, DetectingSideFollowsTheKindOfStatus) {
  EXPECT_EQ(FindCompletionStatus(IBV_WC_LOC_LEN_ERR)->detected_by, DetectedBy::kThisSide);
  EXPECT_EQ(FindCompletionStatus(IBV_WC_REM_ACCESS_ERR)->detected_by, DetectedBy::kOtherSide);
  EXPECT_EQ(FindCompletionStatus(IBV_WC_RNR_RETRY_EXC_ERR)->detected_by, DetectedBy::kOtherSide);
  EXPECT_EQ(FindCompletionStatus(IBV_WC_RETRY_EXC_ERR)->detected_by, DetectedBy::kSilence);
  EXPECT_EQ(FindCompletionStatus(IBV_WC_WR_FLUSH_ERR)->detected_by, DetectedBy::kAftermath);
}

TEST(CompletionStatusTest, DetectingSidesReadDifferently) {
  std::set<std::string_view> texts;
  for (const DetectedBy by : {DetectedBy::kNobody, DetectedBy::kThisSide, DetectedBy::kOtherSide,
                              DetectedBy::kSilence, DetectedBy::kAftermath}) {
    texts.insert(Text(by));
  }
  EXPECT_EQ(texts.size(), 5u);
}

}  // namespace
}  // namespace verbscope
