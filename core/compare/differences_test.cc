#include "core/compare/differences.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/compare/environment.h"
#include "core/compare/testing.h"

namespace verbscope {
namespace {

using Rows = std::vector<SetDifference>;

Rows Parameters(const Record& base, const Record& fresh) {
  return ParameterDifferences({&base, 1}, {&fresh, 1});
}
Rows Environment(const Record& base, const Record& fresh) {
  return EnvironmentDifferences({&base, 1}, {&fresh, 1});
}

const Record kReport = LatencyReport({1000});

TEST(ParameterDifferencesTest, ThereAreNoneBetweenAReportAndItself) {
  EXPECT_EQ(Parameters(kReport, kReport), Rows());
  EXPECT_EQ(Environment(kReport, kReport), Rows());
}

TEST(ParameterDifferencesTest, MembersOfThePlanAreNamedWithBothValues) {
  Record fresh = kReport;
  fresh.plan->qps = 4;
  fresh.plan->duration_ns = 5'000'000'000;
  fresh.plan->sizes_bytes = {64, 128};
  EXPECT_EQ(Parameters(kReport, fresh), (Rows{{"plan.duration_ns", "2000000000", "5000000000"},
                                              {"plan.qps", "1", "4"},
                                              {"plan.sizes_bytes", "[64]", "[64,128]"}}));
}

TEST(ParameterDifferencesTest, WhatChangesNoFigureDoesNotCount) {
  Record fresh = kReport;
  fresh.plan->repeat = 10;
  fresh.plan->interval_ns = 1'000'000'000;
  fresh.plan->extend_to_ns = 1'000'000'000;
  fresh.plan->deadline_ns = 1'000'000'000;
  fresh.plan->p99_limit_ns = 1000;
  fresh.plan->changes.push_back({"qps", "8", "1", "the server's limit"});
  EXPECT_EQ(Parameters(kReport, fresh), Rows());
}

TEST(ParameterDifferencesTest, HowASideWaitsIsAParameterThoughNoPlanHoldsIt) {
  Record fresh = kReport;
  fresh.results[0].point.wait = "hybrid";
  fresh.results[0].point.spin_ns = 20'000;
  EXPECT_EQ(Parameters(kReport, fresh), (Rows{{"requester.wait", "busy", "hybrid:20us"}}));
}

TEST(ParameterDifferencesTest, ReportsOfOneSetThatDifferAreADifference) {
  std::vector<Record> base(2, kReport);
  base[1].plan->qps = 2;
  EXPECT_EQ(ParameterDifferences(base, base), (Rows{{"plan.qps", "1,2", "1,2"}}));
}

TEST(EnvironmentDifferencesTest, FirmwareKernelProcessorAndTheRestAreNamed) {
  Record fresh = kReport;
  fresh.local.device->firmware = "20.40";
  fresh.remote->kernel = "6.12.0";
  fresh.local.pinned_cpus = {2, 3};
  fresh.path_mtu_bytes = 1024;
  fresh.tool_version = "0.2.0";
  fresh.local.cpu.clear();
  EXPECT_EQ(Environment(kReport, fresh), (Rows{{"tool.version", "not known", "0.2.0"},
                                               {"path_mtu_bytes", "0", "1024"},
                                               {"local.cpu", "a processor", "not known"},
                                               {"local.pinned_cpus", "none", "2+3"},
                                               {"local.device.firmware", "20.39", "20.40"},
                                               {"remote.kernel", "6.1.0", "6.12.0"}}));
}

TEST(EnvironmentDifferencesTest, ASideThatIsMissingIsADifference) {
  Record fresh = kReport;
  fresh.remote.reset();
  const Rows rows = Environment(kReport, fresh);
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows[0], (SetDifference{"remote.host", "node-b", "not known"}));
}

TEST(EnvironmentDifferencesTest, JitterFloorsDifferWhereTheyAreFarApart) {
  Record base = kReport;
  Record fresh = kReport;
  base.local.jitter_floor.emplace().max_gap_ns = 20'000;
  fresh.local.jitter_floor.emplace().max_gap_ns = 50'000;
  EXPECT_EQ(Environment(base, fresh), Rows());
  fresh.local.jitter_floor->max_gap_ns = 900'000;
  EXPECT_EQ(Environment(base, fresh), (Rows{{"local.jitter_floor.max_gap_ns", "20000", "900000"}}));
  base.local.jitter_floor->max_gap_ns = 5;  // two gaps too short to matter
  fresh.local.jitter_floor->max_gap_ns = 500;
  EXPECT_EQ(Environment(base, fresh), Rows());
}

TEST(AllowedDifferencesTest, NamesArePlainAndUnknownOnesAreRefused) {
  const Expected<AllowedDifferences> allowed = ParseAllowed({"size", "wait", "duration_ns"});
  ASSERT_TRUE(allowed);
  EXPECT_TRUE(IsAllowed(*allowed, {"plan.duration_ns", "1", "2"}));
  EXPECT_TRUE(IsAllowed(*allowed, {"plan.sizes_bytes", "1", "2"}));
  EXPECT_TRUE(IsAllowed(*allowed, {"responder.wait", "1", "2"}));
  EXPECT_FALSE(IsAllowed(*allowed, {"plan.qps", "1", "2"}));
  EXPECT_TRUE(IsAllowed(*ParseAllowed({"all"}), {"plan.qps", "1", "2"}));
  for (const char* name : {"", "speed", "command", "plan.qps", "repeat"}) {
    const Expected<AllowedDifferences> refused = ParseAllowed({"qps", name});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().error_class, ErrorClass::kUsage);
    EXPECT_NE(refused.error().cause.find("tx_depth"), std::string::npos);
  }
}

TEST(IgnoredMembersTest, AllIsWhatEachSetHasOneValueOf) {
  Record base = LatencyReport({1000, 1000});
  base.results[1].point.size_bytes = 128;
  Record fresh = base;
  for (Result& result : fresh.results) result.point.wait = "event";
  const auto ignored = [&](const std::vector<std::string>& names) {
    return IgnoredMembers(*ParseAllowed(names), {&base, 1}, {&fresh, 1});
  };
  EXPECT_EQ(ignored({"all"}), std::set<std::string>{"wait"});
  EXPECT_EQ(ignored({"wait"}), (std::set<std::string>{"spin_ns", "wait"}));
  EXPECT_EQ(ignored({"size"}), std::set<std::string>{"size_bytes"});
  EXPECT_EQ(ignored({}), std::set<std::string>());
}

}  // namespace
}  // namespace verbscope
