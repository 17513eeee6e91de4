#include "reporters/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "core/record/random_record.h"
#include "core/record/record_json.h"
#include "reporters/text_canvas.h"

namespace verbscope {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Record Load(const std::string& name) {
  const std::string text = Read("testdata/records/" + name + ".json");
  auto record = RecordFromJson(nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false));
  EXPECT_TRUE(record.has_value()) << name;
  return record ? *record : Record{};
}

TextOptions Ascii() {
  TextOptions options;
  options.unicode = false;
  return options;
}

struct Golden {
  const char* record;
  const char* report;
  TextOptions options;
};

// To accept a new look, from the top of the tree: VERBSCOPE_UPDATE_GOLDEN=1 and the test's binary.
TEST(RenderTextTest, ReportsLookAsAgreed) {
  const Golden rows[] = {
      {"send-lat", "send-lat", {}},
      {"send-lat", "send-lat.ascii", Ascii()},
      {"send-lat", "send-lat.color", {true, true, 80, false}},
      {"send-lat", "send-lat.wide", {true, false, 120, true}},
      {"sweep", "sweep", {}},
      {"sweep", "sweep.verbose", {true, false, 80, true}},
      {"write-bw", "write-bw", {}},
      {"few-samples", "few-samples", Ascii()},
      {"broken-run", "broken-run", {}},
      {"no-device", "no-device", {}},
      {"check", "check", {}},
      {"devices", "devices", {}},
  };
  for (const Golden& row : rows) {
    const Record record = Load(row.record);
    const std::string text = record.command == "devices" ? RenderDevices(record, row.options)
                                                         : RenderText(record, row.options);
    const std::string path = std::string("testdata/reports/") + row.report + ".txt";
    if (std::getenv("VERBSCOPE_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(path) << text;
    } else {
      EXPECT_EQ(text, Read(path)) << path;
    }
  }
}

TEST(RenderTextTest, HostileRecordsReachTheTerminalAsPlainLinesWithinTheWidth) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 200; ++i) {
    const Record record = RandomRecord(random, /*hostile=*/true);
    TextOptions options;
    options.unicode = random() % 2 == 0;
    options.verbose = random() % 2 == 0;
    options.width = 60 + static_cast<int>(random() % 60);
    for (const std::string& text : {RenderText(record, options), RenderDevices(record, options)}) {
      std::stringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        ASSERT_EQ(ValidUtf8(line), line);
        ASSERT_EQ(Printable(line), line) << i;  // nothing is hidden, nothing was removed
        const int limit = options.width >= 80 ? options.width : 200;  // a table needs 80 columns
        ASSERT_LE(Columns(line), static_cast<size_t>(limit)) << line;
        if (options.unicode) continue;
        for (const char c : line) ASSERT_TRUE(c >= ' ' && c <= '~') << line;
      }
    }
  }
}

TEST(RenderTextTest, SoftwareDevicesAreNamedAsSuch) {
  constexpr char kRemark[] = "software device: this result is no statement about hardware";
  EXPECT_THAT(RenderText(Load("sweep")), HasSubstr(kRemark));
  EXPECT_THAT(RenderText(Load("send-lat")), Not(HasSubstr(kRemark)));
  Record record = Load("send-lat");
  record.remote->device->kind = "software";
  EXPECT_THAT(RenderText(record), HasSubstr(kRemark));
}

TEST(RenderTextTest, TooFewSamplesAreADashAndSayWhatItWouldTake) {
  const std::string text = RenderText(Load("few-samples"), {true, false, 200, false});
  EXPECT_THAT(text, HasSubstr("p99.9        -     -"));
  EXPECT_THAT(text, HasSubstr("'-' is too few samples: p99.9 needs 1,000, p99.99 needs 10,000; "
                              "for an interval p99 needs 368, p99.9 needs 3,688, p99.99 needs"));
  EXPECT_THAT(RenderText(Load("send-lat"), {true, false, 200, false}),
              HasSubstr("'-' is too few samples: for an interval p99.99 needs 36,887"));
  Record record = Load("send-lat");
  record.results[0].metrics.latency->percentiles.pop_back();
  EXPECT_THAT(RenderText(record), Not(HasSubstr("too few")));
}

TEST(RenderTextTest, EventsAndLostWakeUpsAreShownWhereTheyMatter) {
  EXPECT_THAT(RenderText(Load("few-samples"), {true, false, 120, false}), HasSubstr("150 events"));
  EXPECT_THAT(RenderText(Load("few-samples"), {true, false, 120, false}),
              HasSubstr("1 lost wake-up\n"));
  EXPECT_THAT(RenderText(Load("send-lat")), Not(HasSubstr("wake-ups")));
  Record record = Load("send-lat");
  record.results[0].metrics.cpu->lost_wakeups = 2;
  EXPECT_THAT(RenderText(record), HasSubstr("2 lost wake-ups"));
}

TEST(RenderTextTest, ATableSaysWhatTheWaitingCostInAll) {
  Record record = Load("few-samples");
  record.results.push_back(record.results[0]);
  record.results[1].point.size_bytes = 128;
  record.results[1].metrics.cpu->utilization = 0.5;
  EXPECT_THAT(RenderText(record, {true, false, 120, false}),
              HasSubstr("300 events, 6 empty wake-ups, 2 lost wake-ups in all; "
                        "31.0 to 50.0 % of one CPU"));
  EXPECT_THAT(RenderText(Load("sweep")), Not(HasSubstr("wake-up")));
}

TEST(RenderTextTest, TheOtherSidesCpuAccountIsShownWhereItSaysSomething) {
  Record record = Load("send-lat");
  Result other;
  other.point = record.results[0].point;
  other.side = "responder";
  other.metrics.cpu.emplace();
  record.results.push_back(other);
  EXPECT_THAT(RenderText(record), Not(HasSubstr("seen by the responder")));
  EXPECT_THAT(RenderText(record, {true, false, 80, true}), HasSubstr("seen by the responder"));
  record.results[1].metrics.cpu->lost_wakeups = 1;
  EXPECT_THAT(RenderText(record), HasSubstr("seen by the responder"));
}

TEST(RenderTextTest, IncompleteResultsAreMarkedInBlockAndTable) {
  EXPECT_THAT(RenderText(Load("broken-run")), HasSubstr("INCOMPLETE"));
  Record record = Load("sweep");
  EXPECT_THAT(RenderText(record), Not(HasSubstr("incomplete")));
  record.results[2].complete = false;
  EXPECT_THAT(RenderText(record), HasSubstr("4096*"));
  EXPECT_THAT(RenderText(record), HasSubstr("* incomplete"));
}

// Half of a round trip is not the time one way, and a report must never let it look so.
TEST(RenderTextTest, EveryDefinitionIsSpelledOut) {
  Record record = Load("send-lat");
  LatencyMetrics& latency = *record.results[0].metrics.latency;
  const TextOptions wide = {true, false, 200, false};
  EXPECT_THAT(RenderText(record, wide),
              HasSubstr("half round trip: time from posting a SEND to the arrival of its answer, "
                        "divided by two; not a one-way latency; ended by: receive completion"));
  latency.definition = "round_trip";
  latency.ended_by = "send_completion";
  record.results[0].point.op = "read";
  EXPECT_THAT(RenderText(record, wide),
              HasSubstr("round trip: time from posting a READ to its completion, one full "
                        "operation; ended by: send completion"));
  latency.definition = "response_time";
  EXPECT_THAT(RenderText(record, wide), HasSubstr("response time: time from when a READ was due"));
}

TEST(RenderTextTest, RunsOfOneSizeAreATableByRun) {
  Record record = Load("send-lat");
  record.results.push_back(record.results[0]);
  record.results[1].run = 1;
  const std::string text = RenderText(record);
  EXPECT_THAT(text, HasSubstr("    run "));
  EXPECT_THAT(text, HasSubstr("\n      0  "));
  EXPECT_THAT(text, HasSubstr("\n      1  "));
}

TEST(RenderTextTest, OneHostIsDescribedOnce) {
  EXPECT_THAT(RenderText(Load("sweep")),
              HasSubstr("remote   same host, responder, pinned to CPU 2"));
  Record record = Load("sweep");
  record.loopback = false;
  EXPECT_THAT(RenderText(record), Not(HasSubstr("same host")));
}

TEST(RenderTextTest, VerboseShowsEverySizeInFull) {
  const std::string brief = RenderText(Load("sweep"));
  const std::string verbose = RenderText(Load("sweep"), {true, false, 80, true});
  EXPECT_THAT(brief, Not(HasSubstr("minimum")));
  EXPECT_THAT(verbose, HasSubstr("write 1 byte,"));
  EXPECT_THAT(verbose, HasSubstr("write 1,048,576 bytes,"));
  EXPECT_THAT(verbose, HasSubstr("minimum"));
}

TEST(RenderTextTest, RatesAreInGigabitsAndMebibytes) {
  const std::string text = RenderText(Load("write-bw"));
  EXPECT_THAT(text, HasSubstr("Gb/s"));
  EXPECT_THAT(text, HasSubstr("MiB/s"));
  EXPECT_THAT(text, HasSubstr("48.759"));  // 65536 * 186000 * 8 / 2 s / 10^9
  EXPECT_THAT(text, HasSubstr("5812.5"));  // 65536 * 186000 / 2 s / 2^20
}

TEST(RenderDevicesTest, NoDevicesAreNoText) { EXPECT_EQ(RenderDevices(Record{}), ""); }

}  // namespace
}  // namespace verbscope
