#include "core/record/record_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "core/record/random_record.h"

namespace verbscope {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using testing::HasSubstr;

json Parsed(const ordered_json& document) {
  return json::parse(document.dump(), nullptr, /*allow_exceptions=*/false);
}

TEST(RecordJsonTest, RandomRecordsComeBackAsTheSameDocument) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 300; ++i) {
    const ordered_json document = ToJson(RandomRecord(random));
    const auto back = RecordFromJson(Parsed(document));
    ASSERT_TRUE(back.has_value()) << back.error().message;
    ASSERT_EQ(ToJson(*back).dump(), document.dump());
  }
}

TEST(RecordJsonTest, HostileTextsMakeValidDocumentsThatReadBackPrintable) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 100; ++i) {
    const Record record = RandomRecord(random, /*hostile=*/true);
    const auto back = RecordFromJson(Parsed(ToJson(record)));
    ASSERT_TRUE(back.has_value()) << back.error().message;
    for (const std::string& notice : back->notices) EXPECT_EQ(Printable(notice), notice);
    EXPECT_EQ(Printable(back->local.os), back->local.os);
    const std::string message = back->error ? back->error->message : "";
    EXPECT_EQ(Printable(message), message);
    ASSERT_EQ(back->argv.size(), record.argv.size());
    for (size_t j = 0; j < record.argv.size(); ++j) {
      EXPECT_EQ(back->argv[j], ValidUtf8(record.argv[j]));  // arguments stay as they were given
    }
  }
}

// Scripts depend on these keys being there in every document, whatever the command and outcome.
TEST(RecordJsonTest, TheEmptyRecordHasTheWholeEnvelope) {
  const ordered_json document = ToJson(Record{});
  for (const char* key : {"schema_version", "tool", "command", "argv", "started_at", "wall_s",
                          "verdict", "exit_code", "loopback", "path_mtu_bytes", "plan", "local",
                          "remote", "results", "checks", "gates", "notices", "error"}) {
    EXPECT_TRUE(document.contains(key)) << key;
  }
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["plan"].dump(), R"({"changes":[]})");
  EXPECT_TRUE(document["remote"].is_null());
  EXPECT_TRUE(document["error"].is_null());
  EXPECT_TRUE(document["path_mtu_bytes"].is_null());
  EXPECT_TRUE(document["results"].is_array());
  EXPECT_FALSE(document.contains("devices"));
  EXPECT_TRUE(document["local"]["jitter_floor"].is_null());
}

TEST(RecordJsonTest, DevicesAppearInTheirCommandOnlyAndEvenWhenThereAreNone) {
  Record record;
  record.command = "devices";
  EXPECT_EQ(ToJson(record)["devices"].dump(), "[]");
}

TEST(RecordJsonTest, WhatIsNotKnownIsNull) {
  Record record;
  record.wall_s = std::numeric_limits<double>::quiet_NaN();
  record.local.device.emplace().name = "x";
  Result& result = record.results.emplace_back();
  result.metrics.bandwidth.emplace().gbit_per_s = std::numeric_limits<double>::infinity();
  result.metrics.latency.emplace().percentiles = {{"99.9", std::nullopt, std::nullopt}};
  const ordered_json document = ToJson(record);
  EXPECT_TRUE(document["wall_s"].is_null());
  EXPECT_TRUE(document["local"]["device"]["firmware"].is_null());
  EXPECT_TRUE(document["local"]["device"]["numa_node"].is_null());
  const ordered_json& metrics = document["results"][0]["metrics"];
  EXPECT_TRUE(metrics["bandwidth"]["gbit_per_s"].is_null());
  EXPECT_TRUE(metrics["latency"]["min_ns"].is_null());
  EXPECT_TRUE(metrics["latency"]["percentiles_ns"]["99.9"].is_null());
  EXPECT_TRUE(metrics["latency"]["interval95_ns"]["99.9"].is_null());
  EXPECT_TRUE(metrics["counters"].is_object());
}

TEST(RecordJsonTest, PointHoldsNoMembersThatDoNotApply) {
  Record record;
  Point& point = record.results.emplace_back().point;
  point.op = "send";
  point.size_bytes = 64;
  point.wait = "busy";
  EXPECT_EQ(ToJson(record)["results"][0]["point"].dump(),
            R"({"op":"send","size_bytes":64,"qps":1,"wait":"busy"})");
}

TEST(RecordJsonTest, ErrorKeepsItsClassSideAndNumbers) {
  Error error = CallError(ErrorClass::kSetup, "ibv_create_cq", "cqe=9", 12);
  error.side = Side::kPeer;
  error.status = "RETRY_EXC_ERR";
  const ordered_json document = ToJson(error);
  EXPECT_EQ(document["class"], "setup");
  EXPECT_EQ(document["side"], "peer");
  EXPECT_EQ(document["errno"], 12);
  EXPECT_TRUE(document["cause"].is_null());
  const auto back = ErrorFromJson(Parsed(document));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->error_class, ErrorClass::kSetup);
  EXPECT_EQ(back->side, Side::kPeer);
  EXPECT_EQ(back->message, error.message);
  EXPECT_EQ(back->status, "RETRY_EXC_ERR");
  EXPECT_EQ(back->errno_value, 12);
}

TEST(RecordJsonTest, WrongMembersAreErrorsOfClassUsageThatNameThem) {
  struct Row {
    const char* pointer;
    json value;
    const char* named;
  };
  const Row rows[] = {
      {"/schema_version", 2, "schema_version"},
      {"/schema_version", "1", "schema_version"},
      {"/tool", nullptr, "tool"},
      {"/tool/name", 1, "tool.name"},
      {"/argv", "x", "argv"},
      {"/argv", {1}, "argv"},
      {"/wall_s", "1", "wall_s"},
      {"/verdict", "maybe", "verdict"},
      {"/exit_code", 1.5, "exit_code"},
      {"/plan", nullptr, "plan"},
      {"/plan", {{"command", 7}}, "plan.command"},
      {"/local", nullptr, "local"},
      {"/local/pinned_cpus", {"a"}, "pinned_cpus"},
      {"/local/device", 3, "device"},
      {"/results", json::object(), "results"},
      {"/results", {1}, "result"},
      {"/results", {json::object()}, "side"},
      {"/notices", {1}, "notices"},
      {"/error", "bad", "error"},
      {"/loopback", 1, "loopback"},
  };
  const json good = Parsed(ToJson(Record{}));
  ASSERT_TRUE(RecordFromJson(good).has_value());
  for (const Row& row : rows) {
    json document = good;
    document[json::json_pointer(row.pointer)] = row.value;
    const auto record = RecordFromJson(document);
    ASSERT_FALSE(record.has_value()) << row.pointer;
    EXPECT_THAT(record.error().message, HasSubstr(row.named)) << row.pointer;
    EXPECT_EQ(record.error().error_class, ErrorClass::kUsage) << row.pointer;
  }
}

TEST(RecordJsonTest, EveryRequiredMemberIsMissed) {
  const json good = Parsed(ToJson(Record{}));
  for (const char* key : {"schema_version", "tool", "command", "argv", "started_at", "verdict",
                          "exit_code", "plan", "local", "results", "checks", "gates", "notices"}) {
    json document = good;
    document.erase(key);
    const auto record = RecordFromJson(document);
    ASSERT_FALSE(record.has_value()) << key;
    EXPECT_THAT(record.error().message, HasSubstr(key));
  }
  EXPECT_FALSE(RecordFromJson(json(3)).has_value());
  EXPECT_FALSE(RecordFromJson(json(json::value_t::discarded)).has_value());
}

// A foreign side may send anything of the right shape or not: no input may do more than fail.
TEST(RecordJsonTest, RandomlyDamagedDocumentsNeverDoMoreThanFail) {
  std::mt19937_64 random(6);
  const json junk[] = {nullptr, true, -1, 1e300, "text", json::array({1, 2}), json::object()};
  for (int i = 0; i < 300; ++i) {
    json document = Parsed(ToJson(RandomRecord(random))).flatten();
    for (int j = 0; j < 2; ++j) {
      auto member = document.begin();
      std::advance(member, static_cast<std::ptrdiff_t>(random() % document.size()));
      const json& replacement = junk[random() % std::size(junk)];
      *member = replacement.is_structured() ? json(7) : replacement;
    }
    const auto record = RecordFromJson(document.unflatten());
    EXPECT_TRUE(record.has_value() || !record.error().message.empty());
  }
}

}  // namespace
}  // namespace verbscope
