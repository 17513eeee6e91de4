#include "reporters/result_name.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

#include "core/record/random_record.h"

namespace verbscope {
namespace {

Record Latency(uint32_t run = 0) {
  Record record;
  record.command = "send-lat";
  Result& result = record.results.emplace_back();
  result.point.op = "send";
  result.point.size_bytes = 64;
  result.point.wait = "busy";
  result.run = run;
  return record;
}

TEST(ResultNameTest, NamesWhatIsTheSameTomorrow) {
  Record record = Latency();
  EXPECT_EQ(ResultName(record, record.results[0]),
            "send-lat: send 64 bytes, 1 QP, wait busy, requester");
  record.results[0].run = 2;
  record.results[0].set = "b";
  EXPECT_EQ(ResultName(record, record.results[0]),
            "send-lat: send 64 bytes, 1 QP, wait busy, requester, set b, run 2");
}

TEST(ResultNameTest, AShareOfBusyPollingStandsForTheRateItCameTo) {
  Record record = Latency();
  record.results[0].point.busy_share_percent = 80;
  record.results[0].point.rate_per_s = 123456.5;
  record.results[0].point.moderation = "16:8us";
  EXPECT_EQ(
      ResultName(record, record.results[0]),
      "send-lat: send 64 bytes, 1 QP, wait busy, 80 % of busy, events held back 16:8us, requester");
}

TEST(ResultNameTest, EveryPointHasTheSameMembers) {
  std::mt19937_64 random(1);
  const auto first = PointColumns(Point());
  for (int i = 0; i < 20; ++i) {
    const Record record = RandomRecord(random, /*hostile=*/true);
    for (const Result& result : record.results) {
      const auto members = PointColumns(result.point);
      ASSERT_EQ(members.size(), first.size());
      for (size_t k = 0; k < first.size(); ++k) EXPECT_EQ(members[k].name, first[k].name);
    }
  }
}

TEST(ResultNameTest, EqualNamesBecomeDifferent) {
  UniqueNames names;
  std::set<std::string> taken;
  for (const char* name : {"a (2)", "a", "a", "a", "a (2)"}) {
    EXPECT_TRUE(taken.insert(names.Take(name)).second) << name;
  }
}

TEST(ResultNameTest, NumbersComeBackAsTheyWere) {
  EXPECT_EQ(NumberText(0.1), "0.1");
  EXPECT_EQ(std::stod(NumberText(1.0 / 3)), 1.0 / 3);
  EXPECT_EQ(NumberText(std::numeric_limits<double>::infinity()), "");
  EXPECT_EQ(NumberText(std::optional<uint64_t>()), "");
  EXPECT_EQ(NumberText(std::optional<uint64_t>(0)), "0");
  EXPECT_EQ(NumberText(std::optional<bool>(false)), "false");
}

TEST(ResultNameTest, EvidenceIsASampleACheckOrADevice) {
  Record record = Latency();
  EXPECT_FALSE(HasEvidence(record));
  record.results[0].metrics.latency.emplace();
  EXPECT_FALSE(HasEvidence(record)) << "no sample";
  record.results[0].metrics.latency->samples = 1;
  EXPECT_TRUE(HasEvidence(record));
  Record checks;
  checks.checks.push_back({.name = "imm-value", .status = "pass"});
  EXPECT_TRUE(HasEvidence(checks));
}

}  // namespace
}  // namespace verbscope
