#include "core/scenario/expectations.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/causes/completion_status.h"

namespace verbscope {
namespace {

CheckRow Row(std::string observed) {
  return {.name = "x",
          .expected = "requester REM_INV_REQ_ERR, responder LOC_LEN_ERR",
          .observed = std::move(observed)};
}

TEST(ExpectationsTest, WhatTheStandardSaysPassesOnEveryDevice) {
  for (const char* kind : {"rxe", "mlx5", "soft", ""}) {
    CheckRow row = Row("requester REM_INV_REQ_ERR, responder LOC_LEN_ERR");
    Judge(kind, kTooLong, row);
    EXPECT_EQ(row.status, "pass");
    EXPECT_EQ(row.why, "");
  }
}

TEST(ExpectationsTest, AListedDeviationCountsForItsDeviceAndRuleOnly) {
  const std::string rxes = "requester REM_OP_ERR, responder LOC_QP_OP_ERR";
  CheckRow row = Row(rxes);
  Judge("rxe", kTooLong, row);
  EXPECT_EQ(row.status, "deviation");
  EXPECT_NE(row.why, "");
  for (const auto& [kind, rule] : {std::pair("mlx5", kTooLong), std::pair("rxe", kEmptyBadKey),
                                   std::pair("rxe", std::string_view())}) {
    CheckRow other = Row(rxes);
    Judge(kind, rule, other);
    EXPECT_EQ(other.status, "fail") << kind << ' ' << rule;
  }
  CheckRow third = Row("requester REM_OP_ERR, responder LOC_PROT_ERR");
  Judge("rxe", kTooLong, third);
  EXPECT_EQ(third.status, "fail");
}

// A deviation of no rule would never be used, and nobody would notice.
TEST(ExpectationsTest, EveryDeviationHasARuleAReasonAndKnownStatuses) {
  for (const DeviceDeviations& device : AllDeviations())
    for (const Deviation& deviation : device.rows) {
      // "CHECK/PART" is looked for among the checks' parts elsewhere.
      if (deviation.rule.find('/') != std::string_view::npos) continue;
      EXPECT_NE(std::ranges::find(kRules, deviation.rule), std::end(kRules)) << deviation.rule;
      EXPECT_FALSE(deviation.why.empty());
      if (deviation.observed == "no completion" || deviation.rule == kSendOverrun) continue;
      ASSERT_TRUE(deviation.observed.starts_with("requester ")) << deviation.observed;
      const auto end = deviation.observed.find(',');
      const auto status = deviation.observed.substr(10, end - 10);
      EXPECT_NE(FindCompletionStatus(status), nullptr) << status;
    }
}

}  // namespace
}  // namespace verbscope
