#include "reporters/json.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "core/record/random_record.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

using nlohmann::json;

constexpr char kRecords[] = "testdata/records";

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The documents come from tests/json/make_records.py, which knows nothing of this code. With
// VERBSCOPE_UPDATE_GOLDEN set, and run from the top of the tree, it takes over the layout.
TEST(RenderJsonTest, DocumentsComeBackByteForByte) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRecords)) {
    if (entry.path().extension() != ".json") continue;
    const std::string text = Read(entry.path());
    const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
    const auto record = RecordFromJson(document);
    ASSERT_TRUE(record.has_value()) << entry.path() << ": " << record.error().message;
    const std::string rendered = RenderJson(*record);
    EXPECT_EQ(json::parse(rendered, nullptr, false), document) << entry.path();
    if (std::getenv("VERBSCOPE_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(entry.path()) << rendered;
    } else {
      EXPECT_EQ(rendered, text) << entry.path();
    }
    ++count;
  }
  EXPECT_GE(count, 8);
}

TEST(RenderJsonTest, RandomRecordsKeepEveryMember) {
  std::mt19937_64 random(10);
  for (int i = 0; i < 100; ++i) {
    const Record record = RandomRecord(random, /*hostile=*/i % 2 == 1);
    const std::string text = RenderJson(record);
    const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
    ASSERT_FALSE(parsed.is_discarded()) << text;
    ASSERT_EQ(parsed, json::parse(ToJson(record).dump(), nullptr, false));
    EXPECT_EQ(text.back(), '\n');
  }
}

TEST(RenderJsonTest, ABucketIsALineAndAPointToo) {
  std::mt19937_64 random(11);
  Record record;
  Result& result = record.results.emplace_back();
  result.point.op = "send";
  result.point.wait = "busy";
  result.metrics.latency = RandomLatency(random, 1'000, 1'500);
  const std::string text = RenderJson(record);
  const HistogramBucket& bucket = result.metrics.latency->buckets[1];
  const std::string line = " [" + std::to_string(bucket.from_ns) + ", " +
                           std::to_string(bucket.to_ns) + ", " + std::to_string(bucket.count) +
                           "],\n";
  EXPECT_NE(text.find(line), std::string::npos) << text;
  EXPECT_NE(text.find(R"("point": {"op": "send", "size_bytes": 0, "qps": 1, "wait": "busy"},)"),
            std::string::npos);
}

TEST(RenderJsonTest, QuotesBackslashesAndControlBytesAreEscaped) {
  Record record;
  record.local.host = "a\"b\\c\n\x01";
  record.local.kernel = "\xFF";
  const std::string text = RenderJson(record);
  EXPECT_NE(text.find(R"("a\"b\\c\n\u0001")"), std::string::npos);
  EXPECT_NE(text.find("\"\xEF\xBF\xBD\""), std::string::npos);
}

}  // namespace
}  // namespace verbscope
