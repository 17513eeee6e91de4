// The tables, plots and sentences of event-vs-poll.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/record/record.h"
#include "reporters/text.h"
#include "reporters/text_plot.h"

namespace verbscope {
namespace {

ModeRow Row(const std::string& load, const std::string& mode, std::optional<double> offered,
            int64_t p50_ns, double utilization) {
  ModeRow row;
  row.load = load;
  row.mode = mode;
  row.offered_per_s = offered;
  row.achieved_per_s = offered.value_or(480'000);
  row.samples = 2'400;
  row.p50_ns = p50_ns;
  row.p99_ns = 2 * p50_ns;
  row.max_ns = 9 * p50_ns;
  row.utilization = utilization;
  row.us_per_message = 1.5;
  return row;
}

Record ModesRecord() {
  Record record;
  record.command = "event-vs-poll";
  record.verdict = "pass";
  record.exit_code = 0;
  record.local.role = "requester";
  record.local.host = "node-a";
  record.local.jitter_floor = JitterFloor{.seconds = 0.5,
                                          .max_gap_ns = 38'400,
                                          .gaps_over_1us_per_s = 250,
                                          .gaps_over_10us_per_s = 2,
                                          .gaps_over_100us_per_s = 0,
                                          .lost_share = 0.004};
  ModeSummary modes;
  modes.rows = {Row("closed loop", "busy", {}, 1'050, 1), Row("1,000/s", "busy", 1'000, 1'900, 1),
                Row("1,000/s", "event", 1'000, 8'000, 0.05),
                Row("10,000/s", "busy", 10'000, 1'900, 1),
                Row("10,000/s", "event", 10'000, 7'500, 0.3)};
  modes.rows[2].p50_more_ns = Difference{.value = 6'100, .low = 5'900, .high = 6'300};
  modes.rows[2].cpu_saved_percent = Difference{.value = 95, .low = 94, .high = 96};
  modes.rows[2].completions_per_event = 1;
  modes.rows[4].lost_wakeups = 1;
  modes.unsuited = {"solicited, streaming: only what a peer sends can be solicited"};
  modes.sentences = {"up to 10,000/s event costs +6.1 us p50 and saves 95 % CPU"};
  modes.advice = {"lowest latency: busy (p50 1.1 us in a closed loop)"};
  record.modes = modes;
  return record;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TextModesTest, EachLoadIsATableWithARowPerMode) {
  const std::string text = RenderText(ModesRecord());
  EXPECT_TRUE(
      Contains(text, "closed loop\n                        p50      p99    p99.9      max"));
  EXPECT_TRUE(
      Contains(text, "  busy             1.050 us 2.100 us     -    9.450 us    480,000  100.0"))
      << text;
  EXPECT_TRUE(Contains(text, "against busy: p50 +6.100 us [+5.900 us, +6.300 us], saves 95 %"))
      << text;
  EXPECT_TRUE(Contains(text, "1.00 completions per event"));
  EXPECT_TRUE(Contains(text, "1 lost wake-up"));
}

TEST(TextModesTest, WhatCostsMoreIsNotSaidToSave) {
  Record record = ModesRecord();
  record.modes->rows[2].cpu_saved_percent = Difference{.value = -20, .low = -25, .high = -15};
  const std::string text = RenderText(record);
  EXPECT_TRUE(Contains(text, "takes 20 % more")) << text;
  EXPECT_TRUE(Contains(text, "[15 %, 25 %]")) << text;
}

TEST(TextModesTest, FloorSentencesAndWhatWasLeftOutFollow) {
  const std::string text = RenderText(ModesRecord());
  EXPECT_TRUE(Contains(text, "requester: longest gap 38.40 us, 2.0 gaps/s over 10 us"));
  EXPECT_TRUE(Contains(text, "left out\n  - solicited, streaming: only what"));
  EXPECT_TRUE(Contains(text, "where they cross\n  - up to 10,000/s event costs"));
  EXPECT_TRUE(Contains(text, "which to use\n  - lowest latency: busy"));
}

TEST(TextModesTest, NoLineIsWiderThanTheTerminal) {
  for (const int width : {60, 80, 120}) {
    const std::string text = RenderText(ModesRecord(), {.width = width});
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      // Tables have a width of their own.
      EXPECT_LE(end - begin, std::max<size_t>(static_cast<size_t>(width), 80))
          << text.substr(begin, end - begin);
      begin = end + 1;
    }
  }
}

Plot PlotOf(std::vector<PlotSeries> series, bool log_y) {
  Plot plot;
  plot.title = "title";
  plot.x_label = "per second";
  plot.log_y = log_y;
  plot.x_text = plot.y_text = [](double value) { return std::to_string(std::lround(value)); };
  plot.series = std::move(series);
  return plot;
}

std::string Drawn(const Plot& plot) {
  Canvas canvas({.unicode = false});
  DrawPlot(plot, canvas);
  return canvas.Take();
}

TEST(TextPlotTest, EndsOfBothAxesAreLabelledAndPointsStandAtTheirPlaces) {
  const std::string text =
      Drawn(PlotOf({{"one", {{10, 1}, {1'000, 100}}}, {"two", {{10, 100}}}}, true));
  EXPECT_TRUE(Contains(text, "        100 |B")) << text;
  EXPECT_TRUE(Contains(text, "          1 |A")) << text;
  EXPECT_TRUE(Contains(text, "10 ")) << text;
  EXPECT_TRUE(Contains(text, " 1000\n")) << text;
  EXPECT_TRUE(Contains(text, "A one, B two; * several")) << text;
  // The last column of the first line is A's second point.
  const size_t line = text.find("100 |B");
  EXPECT_EQ(text[text.find('\n', line) - 1], 'A') << text;
}

TEST(TextPlotTest, PointsOfSeveralAtOnePlaceAreAStar) {
  EXPECT_TRUE(Contains(Drawn(PlotOf({{"one", {{1, 5}, {2, 5}}}, {"two", {{1, 5}}}}, false)), "|*"));
}

TEST(TextPlotTest, OnePlaceIsNoPlot) {
  EXPECT_EQ(Drawn(PlotOf({{"one", {{10, 1}}}}, true)), "");
  EXPECT_EQ(Drawn(PlotOf({}, true)), "");
}

}  // namespace
}  // namespace verbscope
