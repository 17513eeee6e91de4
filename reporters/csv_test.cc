#include "reporters/csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/record/random_record.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

using Table = std::vector<std::vector<std::string>>;

// RFC 4180, strict: CR LF after every line, quotes only around whole fields.
Table Parse(const std::string& text) {
  Table table(1);
  std::string field;
  size_t i = 0;
  while (i < text.size()) {
    if (text[i] == '"') {
      for (++i; i < text.size(); ++i) {
        if (text[i] != '"') {
          field += text[i];
        } else if (i + 1 < text.size() && text[i + 1] == '"') {
          field += text[i++];
        } else {
          ++i;
          break;
        }
      }
      EXPECT_TRUE(i < text.size() && (text[i] == ',' || text[i] == '\r')) << "at " << i;
    }
    while (i < text.size() && text[i] != ',' && text[i] != '\r') {
      EXPECT_NE(text[i], '"');
      EXPECT_NE(text[i], '\n');
      field += text[i++];
    }
    table.back().push_back(field);
    field.clear();
    if (i < text.size() && text[i] == '\r') {
      EXPECT_EQ(text.substr(i, 2), "\r\n");
      ++i;
      table.emplace_back();
    }
    ++i;
  }
  table.pop_back();
  return table;
}

std::string Cell(const Table& table, size_t row, const std::string& column) {
  const auto& head = table.at(0);
  const auto found = std::ranges::find(head, column);
  if (found == head.end()) return "no column " + column;
  return table.at(row).at(static_cast<size_t>(found - head.begin()));
}

Record OneResult() {
  Record record;
  record.command = "send-lat";
  record.started_at = "2026-11-29T12:00:00Z";
  record.verdict = "pass";
  record.exit_code = 0;
  Result& result = record.results.emplace_back();
  result.point.op = "send";
  result.point.size_bytes = 64;
  LatencyMetrics& latency = result.metrics.latency.emplace();
  latency.definition = "half_round_trip";
  latency.samples = 1000;
  latency.min_ns = 101;
  latency.mean_ns = 250.125;
  latency.percentiles = {
      {.percent = "50", .value_ns = 240, .interval = Interval95{239, 242}, .effective_samples = 17},
      {.percent = "99.99", .value_ns = {}, .interval = {}}};
  result.metrics.counters = {{"rx;err=1", -3}, {"out_of_sequence", 2}};
  return record;
}

TEST(CsvTest, AColumnForEachFigureAndEmptyForWhatIsUnknown) {
  const Record record = OneResult();
  const Table table = Parse(RenderCsv({&record, 1}));
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0][0], "record");
  const auto cell = [&table](const std::string& column) { return Cell(table, 1, column); };
  EXPECT_EQ(cell("record"), "0");
  EXPECT_EQ(cell("verdict"), "pass");
  EXPECT_EQ(cell("size_bytes"), "64");
  EXPECT_EQ(cell("complete"), "true");
  EXPECT_EQ(cell("samples"), "1000");
  EXPECT_EQ(cell("mean_ns"), "250.125");
  EXPECT_EQ(cell("p50_ns"), "240");
  EXPECT_EQ(cell("p50_low95_ns"), "239");
  EXPECT_EQ(cell("p50_high95_ns"), "242");
  EXPECT_EQ(cell("p50_effective_samples"), "17");
  EXPECT_EQ(cell("p99.99_ns"), "");
  EXPECT_EQ(cell("max_ns"), "");
  EXPECT_EQ(cell("cqs"), "");
  EXPECT_EQ(cell("gbit_per_s"), "");
  EXPECT_EQ(cell("counters"), "out_of_sequence=2;rx_err_1=-3");
}

TEST(CsvTest, ARowForEachResultOfEachRecord) {
  const std::vector<Record> records = {OneResult(), Record(), OneResult()};
  const Table table = Parse(RenderCsv(records));
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(Cell(table, 1, "record"), "0");
  EXPECT_EQ(Cell(table, 2, "record"), "2");
}

TEST(CsvTest, NamesWithCommasQuotesAndLineEndsAreOneField) {
  Record record = OneResult();
  record.local.host = "a,\"b\"\r\nc, ";
  const Table table = Parse(RenderCsv({&record, 1}));
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(Cell(table, 1, "local_host"), Printable(record.local.host));
}

TEST(CsvTest, TheHeadIsTheSameWhateverTheRecordAndEveryRowHasAllColumns) {
  std::mt19937_64 random(3);
  const std::string head = RenderCsv({});
  for (int i = 0; i < 200; ++i) {
    const Record record = RandomRecord(random, /*hostile=*/i % 2 == 1);
    const std::string text = RenderCsv({&record, 1});
    EXPECT_TRUE(text.starts_with(head));
    const Table table = Parse(text);
    ASSERT_EQ(table.size(), 1 + record.results.size());
    for (const auto& row : table) ASSERT_EQ(row.size(), table[0].size());
    EXPECT_EQ(ValidUtf8(text), text);
    for (size_t row = 1; row < table.size(); ++row) {
      const auto& latency = record.results[row - 1].metrics.latency;
      EXPECT_EQ(Cell(table, row, "samples"), latency ? std::to_string(latency->samples) : "");
    }
  }
}

}  // namespace
}  // namespace verbscope
