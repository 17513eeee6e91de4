#include "core/gates/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/gates/figures.h"
#include "core/histogram/histogram.h"

namespace verbscope {
namespace {

using testing::HasSubstr;

LatencyMetrics LatencyOf(const std::vector<int64_t>& samples) {
  Histogram histogram;
  for (const int64_t ns : samples) histogram.Record(ns);
  LatencyMetrics latency;
  latency.samples = histogram.count();
  if (latency.samples > 0) {
    latency.min_ns = histogram.min();
    latency.max_ns = histogram.max();
    latency.mean_ns = histogram.mean();
    latency.stdev_ns = histogram.stdev();
  }
  for (const char* percent : {"50", "90", "99", "99.9", "99.99"}) {
    latency.percentiles.push_back({.percent = percent, .value_ns = {}, .interval = {}});
  }
  histogram.ForEachBucket([&latency](int64_t from_ns, int64_t to_ns, uint64_t count) {
    latency.buckets.push_back({from_ns, to_ns, count});
  });
  return latency;
}

// 1, 2, … n ns.
std::vector<int64_t> Ramp(int64_t n) {
  std::vector<int64_t> samples;
  for (int64_t ns = 1; ns <= n; ++ns) samples.push_back(ns);
  return samples;
}

Result ResultOf(LatencyMetrics latency, uint64_t size_bytes = 64) {
  Result result;
  result.point.op = "send";
  result.point.size_bytes = size_bytes;
  result.metrics.latency = std::move(latency);
  return result;
}

Gates GatesOf(const std::vector<std::string>& texts) {
  Gates gates;
  for (const std::string& text : texts) gates.assertions.push_back(ParseAssertion(text).value());
  return gates;
}

GateRow JudgeOne(const std::string& text, const Record& record) {
  return Judge(GatesOf({text}), record).front();
}

GateOutcome OutcomeOf(const std::string& text, const LatencyMetrics& latency) {
  Record record;
  record.results.push_back(ResultOf(latency));
  return JudgeOne(text, record).outcome;
}

TEST(Judge, AThousandSamplesDoNotDecideP99_9) {
  const GateOutcome outcome = OutcomeOf("p99.9<10us", LatencyOf(Ramp(1000)));
  EXPECT_EQ(outcome.status, "inconclusive");
  EXPECT_EQ(outcome.samples, 1000u);
  EXPECT_EQ(outcome.effective_samples, 1000u);
  EXPECT_EQ(outcome.samples_needed, 2995u);
  EXPECT_EQ(outcome.observed, 999);
  EXPECT_EQ(outcome.bound, std::nullopt);
  EXPECT_EQ(OutcomeOf("p99.9<10us", LatencyOf(Ramp(2995))).status, "pass");
  EXPECT_EQ(OutcomeOf("p99.9<10us", LatencyOf(Ramp(2994))).status, "inconclusive");
}

TEST(Judge, TooFewSamplesToPassMayBeEnoughToFail) {
  const GateOutcome outcome = OutcomeOf("p99.9<100ns", LatencyOf(Ramp(1000)));
  EXPECT_EQ(outcome.status, "fail");
  ASSERT_TRUE(outcome.bound);
  EXPECT_GT(*outcome.bound, 100);
}

// The bounds of 10,000 samples are ranks 9,883 and 9,917 (OneSided95): the outcome changes there.
TEST(Judge, PercentilesAreDecidedByTheirBounds) {
  const LatencyMetrics ramp = LatencyOf(Ramp(2000));
  const RankBounds ranks = OneSided95(kP99, 2000);
  const auto low = static_cast<int64_t>(ranks.lower.value());
  const auto high = static_cast<int64_t>(ranks.upper.value());
  const auto at = [&ramp](const char* op, int64_t ns) {
    return OutcomeOf(std::string("p99") + op + std::to_string(ns) + "ns", ramp).status;
  };
  EXPECT_EQ(at("<", high + 1), "pass");
  EXPECT_EQ(at("<", high), "inconclusive");
  EXPECT_EQ(at("<=", high), "pass");
  EXPECT_EQ(at("<", low + 1), "inconclusive");
  EXPECT_EQ(at("<", low), "fail");
  EXPECT_EQ(at("<=", low - 1), "fail");
  EXPECT_EQ(at(">", low - 1), "pass");
  EXPECT_EQ(at(">=", low), "pass");
  EXPECT_EQ(at(">", low), "inconclusive");
  EXPECT_EQ(at(">", high), "fail");
  EXPECT_EQ(at(">=", high + 1), "fail");
}

TEST(Judge, SaysHowManySamplesWouldDecide) {
  // 1.5 % of the samples are above the limit; p99 allows 1 %.
  std::vector<int64_t> samples(985, 100);
  samples.resize(1000, 900);
  const GateOutcome outcome = OutcomeOf("p99<500ns", LatencyOf(samples));
  EXPECT_EQ(outcome.status, "inconclusive");
  // z² q (1 - q) / 0.005² = 2.7055 * 0.0099 / 0.000025.
  ASSERT_TRUE(outcome.samples_needed);
  EXPECT_NEAR(static_cast<double>(*outcome.samples_needed), 1072, 2);
  // Exactly 1 % above it: no number would tell.
  std::vector<int64_t> even(990, 100);
  even.resize(1000, 900);
  const GateOutcome at_limit = OutcomeOf("p99<500ns", LatencyOf(even));
  EXPECT_EQ(at_limit.status, "inconclusive");
  EXPECT_EQ(at_limit.samples_needed, std::nullopt);
  EXPECT_THAT(at_limit.why, HasSubstr("no number"));
}

TEST(Judge, TheEffectiveCountDecides) {
  LatencyMetrics latency = LatencyOf(Ramp(2000));
  EXPECT_EQ(OutcomeOf("p99<2us", latency).status, "pass");
  latency.percentiles[2].effective_samples = 200;  // of p99
  const GateOutcome outcome = OutcomeOf("p99<2us", latency);
  EXPECT_EQ(outcome.status, "inconclusive");
  EXPECT_EQ(outcome.samples, 2000u);
  EXPECT_EQ(outcome.effective_samples, 200u);
  EXPECT_EQ(outcome.samples_needed, 2990u) << "ten times 299";
  EXPECT_EQ(OutcomeOf("p50<2us", latency).status, "pass") << "its own count is not known: all";
  EXPECT_EQ(OutcomeOf("p98<2us", latency).effective_samples, 200u) << "the worse neighbour's";
  EXPECT_EQ(OutcomeOf("p99.5<2us", latency).effective_samples, 200u);
}

TEST(Judge, LowPercentilesAreBoundedFromBelow) {
  // 299 samples bound p1 from below, as they do p99 from above.
  const GateOutcome outcome = OutcomeOf("p1>0ns", LatencyOf(Ramp(298)));
  EXPECT_EQ(outcome.status, "inconclusive");
  EXPECT_EQ(outcome.samples_needed, 299u);
  EXPECT_EQ(OutcomeOf("p1>0ns", LatencyOf(Ramp(299))).status, "pass");
}

TEST(Judge, BurstsCountForTheMeanWhereverTheyAre) {
  LatencyMetrics latency = LatencyOf(Ramp(2000));
  latency.percentiles[0].effective_samples = 2000;
  latency.percentiles[2].effective_samples = 40;
  EXPECT_EQ(OutcomeOf("mean<5us", latency).effective_samples, 40u);
}

TEST(Judge, ALimitThatIsNoNumberIsRefused) {
  EXPECT_FALSE(ParseAssertion("p50<1e308s"));
  Gates gates = GatesOf({"max<=baseline*1e308"});
  Record& baseline = gates.baselines.emplace_back();
  baseline.results.push_back(ResultOf(LatencyOf({100, 900})));
  Record record = baseline;
  EXPECT_EQ(Judge(gates, record)[0].outcome.status, "fail");
}

TEST(Judge, ARateThatIsAShareOfBusyNeedNotBeTheSame) {
  Gates gates = GatesOf({"max<=baseline*2"});
  Result result = ResultOf(LatencyOf({100, 900}));
  result.point.busy_share_percent = 80;
  result.point.rate_per_s = 1000;
  gates.baselines.emplace_back().results.push_back(result);
  Record record;
  result.point.rate_per_s = 1234;
  record.results.push_back(result);
  EXPECT_EQ(Judge(gates, record)[0].outcome.status, "pass");
}

// What is about other points neither keeps this one from being measured on, nor extends it.
TEST(Judge, OfSomeResultsAlone) {
  const Gates gates = GatesOf({"p99.9{size=64}<1s", "p50{size=128}<1s", "errors==0"});
  const std::vector<Result> results = {ResultOf(LatencyOf(Ramp(1000)), 64)};
  const std::vector<GateRow> rows = Judge(gates, results);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].outcome.status, "inconclusive");
  EXPECT_GT(MoreNs(rows, 1'000'000'000, 60'000'000'000), 1'000'000'000);
}

TEST(Judge, TheMean) {
  std::vector<int64_t> samples;
  for (int i = 0; i < 100; ++i) samples.push_back(i % 2 == 0 ? 900 : 1100);  // sd 100
  const LatencyMetrics latency = LatencyOf(samples);
  EXPECT_EQ(OutcomeOf("mean<1017ns", latency).status, "pass");
  EXPECT_EQ(OutcomeOf("mean<1016ns", latency).status, "inconclusive") << "1000 + 1.645 * 10";
  EXPECT_EQ(OutcomeOf("mean<984ns", latency).status, "inconclusive");
  EXPECT_EQ(OutcomeOf("mean<983ns", latency).status, "fail");
  samples.resize(29);
  EXPECT_EQ(OutcomeOf("mean<5us", LatencyOf(samples)).status, "inconclusive");
}

TEST(Judge, ExactFiguresAreWhatTheyAre) {
  const LatencyMetrics latency = LatencyOf({100, 200, 900});
  EXPECT_EQ(OutcomeOf("max<901ns", latency).status, "pass");
  EXPECT_EQ(OutcomeOf("max<900ns", latency).status, "fail");
  EXPECT_EQ(OutcomeOf("min>=100ns", latency).status, "pass");
  EXPECT_EQ(OutcomeOf("count==3", latency).status, "pass");
  EXPECT_EQ(OutcomeOf("count!=3", latency).status, "fail");
  EXPECT_EQ(OutcomeOf("max<900ns", latency).observed, 900);
}

TEST(Judge, NoDataNeverPasses) {
  Record empty;
  for (const char* text : {"p99<5us", "max<5us", "mean<5us", "count>=0", "bw>=0Gb/s", "cpu<100%",
                           "lost_wakeups==0", "counter.x==0", "msgrate>=0/s"}) {
    const GateRow row = JudgeOne(text, empty);
    EXPECT_EQ(row.outcome.status, "fail") << text;
    EXPECT_FALSE(row.outcome.why.empty()) << text;
  }
  EXPECT_EQ(OutcomeOf("p99<5us", LatencyOf({})).status, "fail");
  EXPECT_EQ(OutcomeOf("max<5us", LatencyOf({})).status, "fail");
  EXPECT_EQ(OutcomeOf("count>=1", LatencyOf({})).status, "fail");
  Record record;
  record.results.push_back(ResultOf(LatencyOf(Ramp(1000))));
  EXPECT_EQ(JudgeOne("p50{size=128}<5us", record).outcome.status, "fail");
  Result& unknown = record.results.emplace_back(ResultOf(LatencyOf({})));
  unknown.metrics.latency.reset();
  unknown.metrics.bandwidth = BandwidthMetrics{};
  EXPECT_EQ(JudgeOne("bw>=0Gb/s", record).outcome.status, "fail") << "not known";
}

TEST(Judge, CountersByName) {
  Record record;
  record.results.push_back(ResultOf(LatencyOf(Ramp(10))));
  record.results[0].metrics.counters = {{"out_of_sequence", 0}, {"retries", 3}};
  EXPECT_EQ(JudgeOne("counter.out_of_sequence==0", record).outcome.status, "pass");
  EXPECT_EQ(JudgeOne("counter.retries==0", record).outcome.status, "fail");
  const GateRow row = JudgeOne("counter.typo==0", record);
  EXPECT_EQ(row.outcome.status, "fail");
  EXPECT_THAT(row.outcome.why, HasSubstr("known are out_of_sequence, retries"));
}

TEST(Judge, EveryResultMustPass) {
  Record record;
  record.results.push_back(ResultOf(LatencyOf(Ramp(1000)), 64));
  record.results.push_back(ResultOf(LatencyOf(std::vector<int64_t>(1000, 9000)), 128));
  record.results.push_back(ResultOf(LatencyOf(Ramp(4)), 256));
  const GateRow row = JudgeOne("p50<5us", record);
  EXPECT_EQ(row.outcome.status, "fail");
  EXPECT_EQ(row.outcome.observed, 9000);
  ASSERT_EQ(row.results.size(), 3u);
  EXPECT_EQ(row.results[0].outcome.status, "pass");
  EXPECT_EQ(row.results[1].outcome.status, "fail");
  EXPECT_EQ(row.results[2].outcome.status, "inconclusive") << "5 samples are needed";
  EXPECT_EQ(JudgeOne("p50{size=64}<5us", record).outcome.status, "pass");
  EXPECT_EQ(JudgeOne("p50{size=256}<5us", record).outcome.status, "inconclusive");
}

TEST(Judge, ABrokenResultMayFailButNotPass) {
  Record record;
  record.results.push_back(ResultOf(LatencyOf(Ramp(1000))));
  record.results[0].complete = false;
  EXPECT_EQ(JudgeOne("p50<5us", record).outcome.status, "inconclusive");
  EXPECT_EQ(JudgeOne("p50<5ns", record).outcome.status, "fail");
  EXPECT_EQ(JudgeOne("count>=1", record).outcome.status, "inconclusive");
}

TEST(Judge, ErrorsAreOfTheRun) {
  Record record;
  EXPECT_EQ(JudgeOne("errors==0", record).outcome.status, "pass");
  record.checks.push_back({.name = "verification", .status = "fail"});
  EXPECT_EQ(JudgeOne("errors==0", record).outcome.status, "fail");
  EXPECT_EQ(JudgeOne("errors<=1", record).outcome.status, "pass");
  record.error = Error();
  EXPECT_EQ(JudgeOne("errors<=1", record).outcome.observed, 2);
}

TEST(Judge, ABaselineIsTheMedianOfItsRuns) {
  Gates gates = GatesOf({"max<=baseline*1.05", "max<=baseline"});
  for (const int64_t max_ns : {900, 1000, 5000}) {
    Record baseline;
    baseline.results.push_back(ResultOf(LatencyOf({100, max_ns})));
    gates.baselines.push_back(std::move(baseline));
  }
  Record record;
  record.results.push_back(ResultOf(LatencyOf({100, 1040})));
  std::vector<GateRow> rows = Judge(gates, record);
  EXPECT_EQ(rows[0].outcome.status, "pass");
  EXPECT_EQ(rows[0].outcome.limit, 1050);
  EXPECT_EQ(rows[1].outcome.status, "fail");
  record.results[0].point.size_bytes = 128;
  rows = Judge(gates, record);
  EXPECT_EQ(rows[0].outcome.status, "fail");
  EXPECT_THAT(rows[0].outcome.why, HasSubstr("baseline has no"));
}

TEST(Baselines, AreCheckedBeforeARun) {
  Gates gates = GatesOf({"p99<=baseline"});
  EXPECT_THAT(CheckBaselines(gates, "send-lat").error().message, HasSubstr("needs a baseline"));
  Record& baseline = gates.baselines.emplace_back();
  baseline.command = "read-lat";
  baseline.results.push_back(ResultOf(LatencyOf(Ramp(10))));
  EXPECT_THAT(CheckBaselines(gates, "send-lat").error().message, HasSubstr("of read-lat"));
  baseline.command = "send-lat";
  EXPECT_TRUE(CheckBaselines(gates, "send-lat"));
  baseline.error = Error();
  EXPECT_THAT(CheckBaselines(gates, "send-lat").error().message, HasSubstr("broke"));
}

std::string_view Verdict(const std::vector<std::string>& statuses, OnInconclusive policy) {
  std::vector<GateRow> rows;
  for (const std::string& status : statuses) {
    rows.push_back({.expression = "x", .outcome = {.status = status}});
  }
  return VerdictOf(rows, policy);
}

TEST(Verdict, ByThePolicy) {
  EXPECT_EQ(Verdict({}, OnInconclusive::kReport), "pass");
  EXPECT_EQ(Verdict({"pass"}, OnInconclusive::kFail), "pass");
  for (const OnInconclusive policy : {OnInconclusive::kReport, OnInconclusive::kFail,
                                      OnInconclusive::kPass, OnInconclusive::kExtend}) {
    EXPECT_EQ(Verdict({"pass", "fail", "inconclusive"}, policy), "fail");
  }
  EXPECT_EQ(Verdict({"pass", "inconclusive"}, OnInconclusive::kReport), "inconclusive");
  EXPECT_EQ(Verdict({"pass", "inconclusive"}, OnInconclusive::kExtend), "inconclusive");
  EXPECT_EQ(Verdict({"pass", "inconclusive"}, OnInconclusive::kFail), "fail");
  EXPECT_EQ(Verdict({"pass", "inconclusive"}, OnInconclusive::kPass), "pass");
  for (const char* text : {"report", "fail", "pass", "extend"}) {
    EXPECT_TRUE(ParseOnInconclusive(text)) << text;
  }
  EXPECT_FALSE(ParseOnInconclusive("maybe"));
}

int64_t More(const GateOutcome& outcome, int64_t measured_ns, int64_t longest_ns) {
  const GateRow row = {.expression = "x",
                       .outcome = outcome,
                       .results = {{.point = {}, .side = "", .outcome = outcome}}};
  return MoreNs(std::vector{row}, measured_ns, longest_ns);
}

TEST(MoreNs, AsLongAsTheSamplesNeed) {
  GateOutcome outcome{.status = "inconclusive", .samples = 1000, .samples_needed = 3000};
  EXPECT_NEAR(static_cast<double>(More(outcome, 1'000'000'000, 60'000'000'000)), 2.45e9, 1)
      << "3.45 times in all";
  EXPECT_EQ(More(outcome, 1'000'000'000, 2'000'000'000), 1'000'000'000) << "what is left";
  EXPECT_EQ(More(outcome, 2'000'000'000, 2'000'000'000), 0);
  outcome.samples_needed.reset();
  EXPECT_EQ(More(outcome, 1'000'000'000, 60'000'000'000), 59'000'000'000) << "nobody knows";
  outcome.status = "pass";
  EXPECT_EQ(More(outcome, 1'000'000'000, 60'000'000'000), 0);
  outcome.status = "fail";
  EXPECT_EQ(More(outcome, 1'000'000'000, 60'000'000'000), 0);
}

// What the 95 % are about: of runs whose true p99 is the limit, at most 5 % pass and 5 % fail.
TEST(Judge, HoldsItsLevel) {
  std::mt19937_64 random(3);
  std::uniform_int_distribution<int64_t> uniform(0, 9'999);  // its p99 is 9,900
  int passed = 0;
  int failed = 0;
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<int64_t> samples;
    for (int i = 0; i < 1000; ++i) samples.push_back(uniform(random));
    const std::string status = OutcomeOf("p99<9900ns", LatencyOf(samples)).status;
    passed += status == "pass" ? 1 : 0;
    failed += status == "fail" ? 1 : 0;
  }
  EXPECT_LT(passed, kRuns * 6 / 100);
  EXPECT_LT(failed, kRuns * 6 / 100);
  EXPECT_GT(passed + failed, kRuns / 100) << "bounds so wide say nothing";
}

}  // namespace
}  // namespace verbscope
