#include "core/compare/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/compare/testing.h"

namespace verbscope {
namespace {

Expected<Comparison> Compared(const Record& base, const Record& fresh,
                              CompareOptions options = {}) {
  if (options.base_files.empty()) options.base_files = {"base.json"};
  if (options.new_files.empty()) options.new_files = {"new.json"};
  return Compare({&base, 1}, {&fresh, 1}, options);
}

const ComparisonRow* Find(const Comparison& comparison, const std::string& metric) {
  const auto row = std::ranges::find(comparison.rows, metric, &ComparisonRow::metric);
  return row == comparison.rows.end() ? nullptr : &*row;
}

std::string Message(const Expected<Comparison>& comparison) {
  if (comparison) return "no error";
  EXPECT_EQ(comparison.error().error_class, ErrorClass::kUsage);
  return comparison.error().ToText();
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const Record kBase = LatencyReport(Around(2000, 10));

TEST(CompareTest, AReportIsTheSameAsItself) {
  const Expected<Comparison> comparison = Compared(kBase, kBase);
  ASSERT_TRUE(comparison);
  for (const ComparisonRow& row : comparison->rows) EXPECT_EQ(row.verdict, "same") << row.metric;
  EXPECT_FALSE(AnyWorse(*comparison));
  EXPECT_FALSE(AnyUndecided(*comparison));
  EXPECT_TRUE(comparison->environment.empty());
  EXPECT_TRUE(comparison->causes.empty());
  EXPECT_EQ(comparison->base_name, "base.json");
  EXPECT_EQ(comparison->shifts.size(), 11u);
}

TEST(CompareTest, TenPercentSlowerIsWorseAndTheOtherWayRoundBetter) {
  const Record slower = LatencyReport(Around(2200, 10));
  const Expected<Comparison> worse = Compared(kBase, slower);
  ASSERT_TRUE(worse);
  EXPECT_TRUE(AnyWorse(*worse));
  EXPECT_EQ(Find(*worse, "p99")->verdict, "worse");
  EXPECT_NEAR(*Find(*worse, "p99")->ratio, 1.1, 0.001);
  const Expected<Comparison> better = Compared(slower, kBase);
  ASSERT_TRUE(better);
  EXPECT_FALSE(AnyWorse(*better));
  EXPECT_EQ(Find(*better, "p99")->verdict, "better");
}

TEST(CompareTest, LessBandwidthIsWorse) {
  Record base = Report("write-bw");
  Record fresh = Report("write-bw");
  for (uint32_t run = 0; run < 10; ++run) {
    base.results.push_back(BandwidthRun("write", Around(90, 10)[run], run));
    fresh.results.push_back(BandwidthRun("write", Around(80, 10)[run], run));
  }
  const Expected<Comparison> comparison = Compared(base, fresh);
  ASSERT_TRUE(comparison);
  ASSERT_NE(Find(*comparison, "bw"), nullptr);
  EXPECT_EQ(Find(*comparison, "bw")->verdict, "worse");
  EXPECT_TRUE(Find(*comparison, "bw")->gated);
  EXPECT_FALSE(Find(*comparison, "msgrate")->gated);
  EXPECT_TRUE(comparison->shifts.empty());
}

TEST(CompareTest, TheMarginOfAShortTimeIsFiftyNsOrTwoClockSteps) {
  Record base = LatencyReport(Around(1000, 10));
  const auto margin = [&base](const Margins& margins, const std::string& metric = "p50") {
    return Find(*Compared(base, base, {.margins = margins}), metric)->margin;
  };
  EXPECT_NEAR(margin({}), 0.05, 0.001);
  EXPECT_NEAR(margin({.share = 0.1}), 0.1, 1e-12);
  base.local.clock.emplace().resolution_ns = 40;
  EXPECT_NEAR(margin({}), 0.08, 0.001);
  EXPECT_EQ(margin({.share = 0}), 0);
  EXPECT_NEAR(margin({.by_metric = {{"p99", 0.2}}}), 0.08, 0.001);
  EXPECT_NEAR(margin({.by_metric = {{"p99", 0.2}}}, "p99"), 0.2, 1e-12);
  base = LatencyReport(Around(1e6, 10));
  EXPECT_NEAR(margin({}), 0.03, 1e-12);
}

TEST(CompareTest, APercentileThatNotEveryRunStatesSaysSo) {
  Record fresh = kBase;
  for (size_t run = 0; run < 4; ++run) {
    fresh.results[run].metrics.latency->percentiles[2].value_ns.reset();
  }
  const Expected<Comparison> comparison = Compared(kBase, fresh);
  ASSERT_TRUE(comparison);
  EXPECT_EQ(Find(*comparison, "p99.9")->new_runs, 6u);
  EXPECT_EQ(Find(*comparison, "p99.9")->why,
            "10 of 10 and 6 of 10 runs have samples enough to state it");
  EXPECT_EQ(Find(*comparison, "p99")->why, "");
}

// A file may hold any number; what comes of it is finite.
TEST(CompareTest, ExtremeFiguresStayFinite) {
  for (const double extreme : {0.0, -1.0, 5e-324, 1e-300, 1.7e308, -1.7e308}) {
    for (const int64_t whole : {int64_t{0}, int64_t{1}, INT64_MIN, INT64_MAX}) {
      Record base = kBase;
      Record fresh = kBase;
      base.local.clock.emplace().resolution_ns = 1.7e308;
      for (size_t run = 0; run < 10; ++run) {
        LatencyMetrics& latency = *(run % 2 == 0 ? base : fresh).results[run].metrics.latency;
        latency.mean_ns = extreme;
        latency.max_ns = whole;
        latency.percentiles[0].value_ns = whole;
        latency.buckets = {{whole, whole, UINT64_MAX}, {whole, whole, 5}};
        fresh.results[run].metrics.latency->mean_ns = extreme;
        fresh.results[run].metrics.counters = {{"x", whole}};
        base.results[run].metrics.counters = {{"x", INT64_MAX}};
      }
      const Expected<Comparison> comparison = Compared(base, fresh);
      ASSERT_TRUE(comparison);
      for (const ComparisonRow& row : comparison->rows) {
        for (const std::optional<double>& number :
             {row.base, row.fresh, row.ratio, row.ratio_low, row.ratio_high, row.p_worse}) {
          EXPECT_TRUE(!number || std::isfinite(*number)) << row.metric;
        }
        EXPECT_TRUE(std::isfinite(row.margin));
      }
    }
  }
}

TEST(CompareTest, DifferentParametersAreNamedAndRefusedUnlessAllowed) {
  Record fresh = kBase;
  fresh.plan->qps = 4;
  fresh.plan->duration_ns = 9'000'000'000;
  for (Result& result : fresh.results) result.point.qps = 4;
  const std::string message = Message(Compared(kBase, fresh));
  EXPECT_TRUE(Contains(message, "plan.qps (1, new 4)")) << message;
  EXPECT_TRUE(Contains(message, "plan.duration_ns")) << message;
  EXPECT_TRUE(Contains(message, "--allow-diff duration_ns,qps")) << message;
  const std::string half = Message(Compared(kBase, fresh, {.allowed = *ParseAllowed({"qps"})}));
  EXPECT_TRUE(Contains(half, "plan.duration_ns")) << half;
  EXPECT_FALSE(Contains(half, "plan.qps")) << half;
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"qps", "duration_ns"}, {"all"}}) {
    const Expected<Comparison> comparison =
        Compared(kBase, fresh, {.allowed = *ParseAllowed(names)});
    ASSERT_TRUE(comparison) << Message(comparison);
    EXPECT_EQ(comparison->parameters.size(), 2u);
    EXPECT_EQ(Find(*comparison, "p50")->verdict, "same");
  }
}

TEST(CompareTest, AnotherWayOfWaitingIsAnotherQuestion) {
  Record fresh = kBase;
  for (Result& result : fresh.results) result.point.wait = "event";
  EXPECT_TRUE(Contains(Message(Compared(kBase, fresh)), "requester.wait (busy, new event)"));
  EXPECT_TRUE(Compared(kBase, fresh, {.allowed = *ParseAllowed({"wait"})}));
}

TEST(CompareTest, TheEnvironmentIsListedAndRefusesNothing) {
  Record fresh = kBase;
  fresh.remote->device->firmware = "20.40";
  const Expected<Comparison> comparison = Compared(kBase, fresh);
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->environment,
            (std::vector<SetDifference>{{"remote.device.firmware", "20.39", "20.40"}}));
}

TEST(CompareTest, UselessReportsAreRefusedByName) {
  const auto refused = [](auto spoil) {
    Record fresh = kBase;
    spoil(fresh);
    const std::string message = Message(Compared(kBase, fresh));
    EXPECT_TRUE(Contains(message, "new.json")) << message;
    return message;
  };
  EXPECT_TRUE(Contains(refused([](Record& r) { r.results[3].complete = false; }), "run 3"));
  EXPECT_TRUE(Contains(refused([](Record& r) { r.results.clear(); }), "no results"));
  EXPECT_TRUE(Contains(refused([](Record& r) { r.command = "read-lat"; }), "read-lat"));
  EXPECT_TRUE(Contains(refused([](Record& r) { r.error = SetupError("it broke"); }), "it broke"));
  EXPECT_TRUE(Contains(refused([](Record& r) { r.results[0].set = "a"; }), "both sets"));
  EXPECT_TRUE(Contains(refused([](Record& r) {
                         r.results.clear();
                         r.comparison.emplace();
                       }),
                       "itself a comparison"));
  EXPECT_TRUE(Contains(Message(Compare({&kBase, 1}, {}, {})), "the new set has no report"));
  EXPECT_TRUE(Contains(Message(Compare({}, {&kBase, 1}, {})), "the base set has no report"));
}

TEST(CompareTest, NothingInCommonIsAnErrorThatShowsBoth) {
  Record fresh = kBase;
  for (Result& result : fresh.results) result.point.variant = "another";
  const std::string message = Message(Compared(kBase, fresh));
  EXPECT_TRUE(Contains(message, "no result in common")) << message;
  EXPECT_TRUE(Contains(message, "another")) << message;
}

TEST(CompareTest, ByOrderParametersAreTheQuestionAndListed) {
  Record fresh = LatencyReport(Around(2400, 10));
  fresh.plan->qps = 2;
  for (Result& result : fresh.results) {
    result.point.qps = 2;
    result.point.wait = "event";
  }
  const Expected<Comparison> comparison = Compared(kBase, fresh, {.join_by_order = true});
  ASSERT_TRUE(comparison) << Message(comparison);
  EXPECT_EQ(Find(*comparison, "p50")->verdict, "worse");
  EXPECT_EQ(Find(*comparison, "p50")->point, kBase.results[0].point);
  ASSERT_EQ(comparison->parameters.size(), 2u);
  EXPECT_EQ(comparison->parameters[0].field, "plan.qps");
  EXPECT_EQ(comparison->parameters[1].field, "requester.wait");
}

TEST(CompareTest, CausesAreThoseOfBothSidesAndOnlyOfWhatChanged) {
  Record base = kBase;
  Record fresh = LatencyReport(Around(2200, 10));
  const auto add = [](Record& record, int64_t naks) {
    for (uint32_t run = 0; run < 10; ++run) {
      Result other;
      other.point = record.results[run].point;
      other.point.wait = "event";  // that side waits in its own way
      other.side = "responder";
      other.run = run;
      other.metrics.counters = {{"naks", naks + run}};
      record.results.push_back(other);
    }
  };
  add(base, 0);
  add(fresh, 800);
  const Expected<Comparison> comparison = Compared(base, fresh);
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->causes,
            std::vector<std::string>{"naks of the responder: 4.5 -> 804 per run"});
  Record same = fresh;
  for (uint32_t run = 0; run < 10; ++run) same.results[run] = kBase.results[run];
  EXPECT_TRUE(Compared(base, same)->causes.empty());
}

TEST(CompareTest, WhereNothingGatesNothingIsDecided) {
  Record base = kBase;
  for (Result& result : base.results) result.side = "responder";
  const Expected<Comparison> comparison = Compared(base, base);
  ASSERT_TRUE(comparison);
  EXPECT_TRUE(AnyUndecided(*comparison));
  EXPECT_FALSE(AnyWorse(*comparison));
}

TEST(ParseMarginsTest, PercentForAllOrForOneMetric) {
  const Expected<Margins> margins = ParseMargins({"5", "p99=2.5", "bw=0"});
  ASSERT_TRUE(margins);
  EXPECT_EQ(margins->share, 0.05);
  EXPECT_EQ(margins->by_metric, (std::map<std::string, double>{{"bw", 0}, {"p99", 0.025}}));
  EXPECT_EQ(ParseMargins({})->share, Margins::kDefault);
  for (const char* text :
       {"", "-1", "x", "3%", "1e9", "nan", "inf", "p98=3", "p99=", "=3", "p99=-1"}) {
    EXPECT_FALSE(ParseMargins({text})) << text;
  }
}

}  // namespace
}  // namespace verbscope
