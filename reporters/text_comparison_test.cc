// The text report of a comparison.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "core/record/random_record.h"
#include "core/record/record.h"
#include "reporters/text.h"
#include "reporters/text_canvas.h"

namespace verbscope {
namespace {

ComparisonRow Row(const std::string& metric, const std::string& verdict, double ratio) {
  ComparisonRow row;
  row.point.op = "send";
  row.point.size_bytes = 64;
  row.point.wait = "busy";
  row.side = "requester";
  row.metric = metric;
  row.unit = "ns";
  row.gated = true;
  row.base_runs = row.new_runs = 10;
  row.base = 2000;
  row.fresh = 2000 * ratio;
  row.ratio = ratio;
  row.ratio_low = ratio - 0.02;
  row.ratio_high = ratio + 0.02;
  row.margin = 0.03;
  row.p_worse = 0.0123;
  row.verdict = verdict;
  return row;
}

Record Compared() {
  Record record;
  record.command = "compare";
  record.verdict = "pass";
  record.exit_code = 0;
  record.local.host = "where-it-was-compared";
  Comparison& comparison = record.comparison.emplace();
  comparison.base_name = "base.json";
  comparison.new_name = "new.json";
  comparison.rows = {Row("p50", "same", 1.0), Row("p99", "same", 1.001)};
  ComparisonRow mean = Row("mean", "worse", 1.2);
  mean.gated = false;
  comparison.rows.push_back(mean);
  comparison.shifts = {{comparison.rows[0].point, "requester", "10", 1000, 1100},
                       {comparison.rows[0].point, "requester", "99.9", 2000, 1000}};
  return record;
}

std::string Rendered(const Record& record, bool verbose = false) {
  return RenderText(record, {.verbose = verbose});
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TextComparisonTest, EachMetricIsARowWithItsVerdict) {
  const std::string text = Rendered(Compared());
  EXPECT_TRUE(Contains(text, "verbscope compare"));
  EXPECT_TRUE(Contains(text, "base     base.json\n  new      new.json\n")) << text;
  EXPECT_TRUE(Contains(text, "send 64 bytes, 1 QP, wait busy, requester: 10 against 10 runs\n"));
  EXPECT_TRUE(
      Contains(text, "  p50        2.000 us   2.000 us    1.000   0.980 to 1.020    3.0 %  same\n"))
      << text;
  EXPECT_TRUE(Contains(text, "  (worse)\n")) << text;  // shown, not gated
  EXPECT_TRUE(Contains(text, "SAME: every gated metric is proven to lie within its margin"));
  EXPECT_FALSE(Contains(text, "where-it-was-compared"));
  EXPECT_FALSE(Contains(text, "0.0123"));
  EXPECT_TRUE(Contains(Rendered(Compared(), /*verbose=*/true), "p of not worse 0.0123"));
}

TEST(TextComparisonTest, WhereTheDistributionMovedIsShown) {
  const std::string text = Rendered(Compared());
  EXPECT_TRUE(Contains(text, "  p10        1.000 us   1.100 us      +10.0 %\n")) << text;
  EXPECT_TRUE(Contains(text, "      -50.0 %\n")) << text;
}

TEST(TextComparisonTest, OfSeveralPointsOnlyThoseThatChangedShowTheirShifts) {
  Record record = Compared();
  for (ComparisonRow row : {Row("p50", "worse", 1.3), Row("p99", "same", 1.0)}) {
    row.point.size_bytes = 128;
    record.comparison->rows.push_back(row);
  }
  ShiftRow shift = record.comparison->shifts[0];
  shift.point.size_bytes = 128;
  shift.fresh_ns = 1300;
  record.comparison->shifts.push_back(shift);
  EXPECT_FALSE(Contains(Rendered(record), "+10.0 %"));
  EXPECT_TRUE(Contains(Rendered(record), "+30.0 %"));
  EXPECT_TRUE(Contains(Rendered(record, /*verbose=*/true), "+10.0 %"));
}

TEST(TextComparisonTest, TheClosingSentenceNamesTheWorst) {
  Record record = Compared();
  record.comparison->rows[0] = Row("p50", "worse", 1.051);
  EXPECT_TRUE(Contains(Rendered(record), "WORSE: p50 of send 64 bytes, 1 QP, wait busy, +5.1 %\n"));
  record.comparison->rows[1] = Row("p99", "worse", 1.40);
  EXPECT_TRUE(Contains(Rendered(record),
                       "WORSE: p99 of send 64 bytes, 1 QP, wait busy, +40.0 %, and 1 more of 2"));
  record.comparison->rows[0] = Row("p50", "better", 0.9);
  record.comparison->rows[1] = Row("p99", "same", 1.0);
  EXPECT_TRUE(Contains(Rendered(record), "BETTER: 1 of 2 gated metrics; the others are the same"));
  for (ComparisonRow& row : record.comparison->rows) row.gated = false;
  EXPECT_TRUE(Contains(Rendered(record), "UNDECIDED: no metric that gates"));
}

TEST(TextComparisonTest, WhatIsUndecidedSaysHowManyRunsAreMissing) {
  Record record = Compared();
  ComparisonRow& row = record.comparison->rows[1];
  row.verdict = "undecided";
  row.runs_needed = 14;
  std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "4 more runs of each set, 14 in all, would decide it")) << text;
  EXPECT_TRUE(Contains(text, "UNDECIDED: nothing is proven worse, 1 of 2 gated metrics is"));
  row.base_runs = row.new_runs = 3;
  row.ratio_low.reset();
  row.ratio_high.reset();
  row.runs_needed = 5;
  row.why = "3 and 3 runs are too few";
  text = Rendered(record);
  EXPECT_TRUE(Contains(text, "3 and 3 runs are too few; 2 more runs of each set, 5 in all, are"))
      << text;
  row.runs_needed.reset();
  text = Rendered(record);
  EXPECT_TRUE(Contains(text, "3 and 3 runs are too few\n")) << text;
  EXPECT_FALSE(Contains(text, "more runs"));
}

TEST(TextComparisonTest, DifferencesStandBeforeTheTableAndCausesBehindIt) {
  Record record = Compared();
  record.comparison->environment = {{"local.device.firmware", "20.39", "20.40"}};
  record.comparison->parameters = {{"plan.qps", "1", "4"}};
  record.comparison->unmatched = {"only in base: write 8 bytes"};
  record.comparison->causes = {"out_of_sequence of the responder: 0 -> 812 per run"};
  const std::string text = Rendered(record);
  const size_t table = text.find("95 % interval");
  EXPECT_LT(text.find("  local.device.firmware: 20.39 -> 20.40\n"), table);
  EXPECT_LT(text.find("  plan.qps: 1 -> 4\n"), table);
  EXPECT_LT(text.find("  only in base: write 8 bytes\n"), table);
  EXPECT_GT(text.find("  out_of_sequence of the responder: 0 -> 812 per run\n"), table);
}

TEST(TextComparisonTest, OtherSidesAreForWhoeverAsksForAll) {
  Record record = Compared();
  for (ComparisonRow& row : record.comparison->rows) row.gated = false;
  record.comparison->rows.push_back(Row("bw", "same", 1));
  record.comparison->rows.back().side = "responder";
  EXPECT_FALSE(Contains(Rendered(record), "requester: 10"));
  EXPECT_TRUE(Contains(Rendered(record), "responder: 10"));
  EXPECT_TRUE(Contains(Rendered(record, /*verbose=*/true), "requester: 10"));
}

// Whatever texts and numbers a file brings: lines stay within the width and hold no control bytes.
TEST(TextComparisonTest, HostileRecordsStayWithinTheWidth) {
  std::mt19937_64 random(9);
  const std::string hostile = std::string("\x1b[31m</script>]]>\"\n\r\t\x07,\xff\xfe") +
                              "\xe2\x80\xae" + std::string(300, 'x');
  for (int round = 0; round < 200; ++round) {
    Record record = RandomRecord(random, /*hostile=*/true);
    Comparison& comparison = record.comparison ? *record.comparison : record.comparison.emplace();
    ComparisonRow row = Row(hostile, hostile, 1e300);
    row.point.op = row.point.wait = row.unit = row.side = row.why = hostile;
    row.margin = 1e300;
    row.base = -1e300;
    row.runs_needed = UINT64_MAX;
    row.gated = round % 2 == 0;
    comparison.rows.push_back(row);
    comparison.shifts.push_back({row.point, row.side, hostile, INT64_MIN, INT64_MAX});
    comparison.base_name = comparison.new_name = hostile;
    comparison.environment = {{hostile, hostile, hostile}};
    comparison.causes = comparison.unmatched = {hostile};
    const bool unicode = round % 4 < 2;
    Record only = record;
    only.results.clear();  // as `compare` has it
    only.gates.clear();
    only.checks.clear();
    const std::string text = RenderText(only, {.unicode = unicode, .verbose = round % 3 == 0});
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      ASSERT_TRUE(c == '\n' || (byte >= 0x20 && byte != 0x7f));
      ASSERT_TRUE(unicode || byte < 0x80);
    }
    ASSERT_FALSE(Contains(text, "\xe2\x80\xae"));
    for (size_t from = 0; from < text.size();) {
      const size_t end = text.find('\n', from);
      const std::string line = text.substr(from, end - from);
      // A word that is longer than a line cannot be wrapped.
      ASSERT_TRUE(Columns(line) <= 80 || Contains(line, std::string(40, 'x'))) << line;
      from = end + 1;
    }
  }
}

}  // namespace
}  // namespace verbscope
