#include "reporters/markdown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/record/random_record.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Every row of a table has the columns of its head, and tags are only those of the fold.
void ExpectStructure(const std::string& text) {
  std::istringstream stream(text);
  std::ptrdiff_t columns = 0;
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("|")) {
      columns = 0;
      EXPECT_EQ(line.find('|'), std::string::npos) << line;
    } else {
      EXPECT_TRUE(line.ends_with(" |")) << line;
      const std::ptrdiff_t bars = std::ranges::count(line, '|');
      if (columns == 0) columns = bars;
      EXPECT_EQ(bars, columns) << line;
    }
    if (line.find('<') != std::string::npos) {
      EXPECT_TRUE(line == "</details>" || line == "<details><summary>What ran where</summary>")
          << line;
    }
    EXPECT_EQ(line.find('`'), std::string::npos) << line;
  }
}

std::string Rendered(const Record& record) {
  std::string text = RenderMarkdown({&record, 1});
  ExpectStructure(text);
  return text;
}

Record OneResult() {
  Record record;
  record.command = "send-lat";
  record.verdict = "fail";
  record.exit_code = 3;
  record.wall_s = 2.25;
  Result& result = record.results.emplace_back();
  result.point.op = "send";
  result.point.size_bytes = 64;
  LatencyMetrics& latency = result.metrics.latency.emplace();
  latency.samples = 1000;
  latency.max_ns = 1'500'000;
  latency.percentiles = {{.percent = "50", .value_ns = 240, .interval = Interval95{239, 2420}},
                         {.percent = "99", .value_ns = {}, .interval = {}}};
  return record;
}

TEST(MarkdownTest, TheVerdictIsTheHeadingAndResultsAreRows) {
  const std::string text = Rendered(OneResult());
  EXPECT_TRUE(text.starts_with("## verbscope send-lat: ❌ fail\n\nExit code 3, 2.25 s.\n")) << text;
  EXPECT_TRUE(Contains(text,
                       "| send 64 bytes, 1 QP, requester | 1000 | 240 ns (239 ns to 2.42 us) | - | "
                       "- | 1.5 ms |\n"))
      << text;
}

TEST(MarkdownTest, MarksStandWithTheirWords) {
  Record record = OneResult();
  for (const char* status : {"pass", "fail", "inconclusive"}) {
    record.gates.push_back({.expression = "p99<5us", .unit = "ns", .outcome = {.status = status}});
  }
  record.gates[1].outcome.observed = 6000;
  record.gates[1].outcome.samples = 1000;
  record.gates[1].outcome.effective_samples = 70;
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "| p99&#60;5us | ✅ pass |")) << text;
  EXPECT_TRUE(Contains(text, "| p99&#60;5us | ❌ fail | 6 us | - | - | 1000 (70) |")) << text;
  EXPECT_TRUE(Contains(text, "| p99&#60;5us | ❔ inconclusive |")) << text;
}

TEST(MarkdownTest, ChecksThatPassedAreANumberAndTheOthersHaveTheirCause) {
  Record record = OneResult();
  record.checks = {{.name = "imm-value", .status = "pass"},
                   {.name = "imm-order",
                    .status = "fail",
                    .expected = "in order",
                    .observed = "3 before 2",
                    .why = "the device reordered"}};
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "1 of 2 checks passed.\n")) << text;
  EXPECT_FALSE(Contains(text, "imm-value"));
  EXPECT_TRUE(
      Contains(text, "| imm-order | ❌ fail | in order | 3 before 2 | the device reordered |"))
      << text;
}

TEST(MarkdownTest, AFailureWithoutResultsSaysSo) {
  Record record;
  record.command = "send-lat";
  record.error.emplace().message = "cannot connect";
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "❌ error")) << text;
  EXPECT_TRUE(Contains(text, "Nothing was measured."));
  EXPECT_TRUE(Contains(text, "**Error:** cannot connect")) << text;
}

TEST(MarkdownTest, ComparisonRowsStandWithRatioAndInterval) {
  Record record;
  record.command = "compare";
  record.comparison.emplace().base_name = "old|new";
  ComparisonRow row{.point = {}, .side = "requester", .metric = "p99", .unit = "ns", .gated = true};
  row.base = 1000;
  row.fresh = 1100;
  row.ratio = 1.1;
  row.ratio_low = 1.05;
  row.ratio_high = 1.15;
  row.verdict = "worse";
  record.comparison->rows = {row};
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "| p99 | ❌ worse | 1 us | 1.1 us | 1.1 (1.05 to 1.15) | yes | - |"))
      << text;
  EXPECT_TRUE(Contains(text, "Base: old&#124;new."));
}

TEST(MarkdownTest, FiguresOfSingleCommandsAreASentenceEach) {
  Record record = OneResult();
  record.results[0].metrics = {};
  record.results[0].metrics.overrun = {.cqe = 16, .outstanding = 32, .delivered = 16, .lost = 16};
  EXPECT_TRUE(
      Contains(Rendered(record), "| CQ of 16: 32 due, 16 delivered, 0 flushed, 16 lost |\n"));
}

TEST(MarkdownTest, NamesMakeNoMarkup) {
  Record record = OneResult();
  record.local.host = "<script>a|b`c`</script> [x](y) *z* @all\n## h";
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "&#60;script&#62;a&#124;b&#96;c&#96;")) << text;
  EXPECT_FALSE(Contains(text, "[x]"));
  EXPECT_FALSE(Contains(text, "*z*"));
}

TEST(MarkdownTest, LongTablesAreCutAndCounted) {
  Record record = OneResult();
  record.results.resize(1000, record.results[0]);
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "\n800 more rows are left out here.\n"));
  EXPECT_LT(std::ranges::count(text, '\n'), 250);
}

TEST(MarkdownTest, RandomRecordsKeepTheStructure) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 200; ++i) {
    const Record record = RandomRecord(random, i % 2 == 1);
    EXPECT_EQ(ValidUtf8(Rendered(record)), RenderMarkdown({&record, 1}));
  }
}

}  // namespace
}  // namespace verbscope
