#include "core/plan/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace verbscope {
namespace {

using nlohmann::json;
using testing::HasSubstr;

uint32_t Pick(std::mt19937_64& random, uint32_t low, uint32_t high) {
  return std::uniform_int_distribution<uint32_t>(low, high)(random);
}

Plan RandomPlan(std::mt19937_64& random) {
  Plan plan;
  plan.command = Pick(random, 0, 1) ? "write-bw" : "rnr-test";
  plan.sizes_bytes.clear();
  for (uint32_t i = 0, n = Pick(random, 1, 5); i < n; ++i) {
    plan.sizes_bytes.push_back(uint64_t{i} * 1000 + Pick(random, 0, 999));
  }
  if (Pick(random, 0, 1)) plan.iterations = 1 + random() % kMaxIterations;
  plan.duration_ns = 1 + static_cast<int64_t>(random() % 1'000'000'000'000);
  if (Pick(random, 0, 1)) plan.warmup_iterations = random() % 1000;
  plan.warmup_ns = Pick(random, 0, 1'000'000'000);
  plan.qps = Pick(random, 1, kMaxQps);
  plan.tx_depth = Pick(random, 1, kMaxDepth);
  plan.rx_depth = Pick(random, 1, kMaxDepth);
  plan.post_list = Pick(random, 1, plan.tx_depth);
  plan.signal_every = Pick(random, 0, kMaxSignalEvery);
  plan.inline_mode.kind = static_cast<InlineKind>(Pick(random, 0, 2));
  if (plan.inline_mode.kind == InlineKind::kBytes) plan.inline_mode.bytes = Pick(random, 1, 1024);
  plan.imm = Pick(random, 0, 1);
  plan.bidirectional = Pick(random, 0, 1);
  plan.verify = Pick(random, 0, 1);
  plan.atomic_op = static_cast<AtomicOp>(Pick(random, 0, 1));
  if (Pick(random, 0, 1)) plan.rate_per_s = Pick(random, 1, 1'000'000'000) * 0.3;
  plan.arrival = static_cast<Arrival>(Pick(random, 0, 1));
  plan.quick = Pick(random, 0, 1);
  for (uint32_t code = 0; code < 32; ++code) {
    if (Pick(random, 0, 7) == 0) plan.timer_codes.push_back(code);
  }
  plan.mtu_bytes = 256u << Pick(random, 0, 4);
  plan.timeout_code = Pick(random, 1, 31);
  plan.retry_count = Pick(random, 0, 7);
  plan.rnr_timer_code = Pick(random, 0, 31);
  plan.rnr_retry = Pick(random, 0, 7);
  plan.rd_atomic = Pick(random, 0, 255);
  plan.service_level = Pick(random, 0, 15);
  plan.traffic_class = Pick(random, 0, 255);
  plan.flow_label = Pick(random, 0, (1 << 20) - 1);
  plan.pkey_index = Pick(random, 0, 65535);
  plan.hop_limit = Pick(random, 1, 255);
  plan.repeat = Pick(random, 1, kMaxRepeat);
  plan.extend_to_ns = Pick(random, 0, 1'000'000'000);
  plan.interval_ns = kMinIntervalNs + Pick(random, 0, 1'000'000'000);
  plan.deadline_ns = Pick(random, 0, 1'000'000'000);
  for (uint32_t i = 0, n = Pick(random, 0, 3); i < n; ++i) {
    plan.changes.push_back({"tx_depth", std::to_string(random()), "\"quoted\"\n", "caf\xC3\xA9"});
  }
  return plan;
}

TEST(PlanJsonTest, RandomPlansComeBackIdentical) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 2'000; ++i) {
    const Plan plan = RandomPlan(random);
    ASSERT_TRUE(Validate(plan).has_value()) << Validate(plan).error().message;
    const std::string text = ToJson(plan).dump();
    const auto back = PlanFromJson(json::parse(text, nullptr, false));
    ASSERT_TRUE(back.has_value()) << back.error().message << text;
    ASSERT_EQ(*back, plan) << text;
  }
}

// Reports carry the plan: these keys are a contract with scripts.
TEST(PlanJsonTest, KeysAreTheDocumentedOnes) {
  const char* keys[] = {
      "command",           "sizes_bytes",  "iterations",    "duration_ns",
      "warmup_iterations", "warmup_ns",    "qps",           "tx_depth",
      "rx_depth",          "post_list",    "signal_every",  "inline",
      "mtu_bytes",         "timeout_code", "retry_count",   "rnr_timer_code",
      "rnr_retry",         "rd_atomic",    "service_level", "traffic_class",
      "flow_label",        "pkey_index",   "hop_limit",     "repeat",
      "interval_ns",       "deadline_ns",  "changes",       "imm",
      "bidirectional",     "verify",       "atomic_op",     "rate_per_s",
      "arrival",           "quick",        "timer_codes",   "cqs",
      "cq_depths",         "modes",        "rates_per_s",   "busy_shares_percent",
      "moderations",       "p99_limit_ns", "extend_to_ns",
  };
  const json plan = ToJson(Plan{});
  for (const char* key : keys) EXPECT_TRUE(plan.contains(key)) << key;
  EXPECT_EQ(plan.size(), std::size(keys));
  EXPECT_TRUE(plan["iterations"].is_null());
  EXPECT_TRUE(plan["warmup_iterations"].is_null());
  EXPECT_EQ(plan["inline"], "auto");
}

TEST(PlanJsonTest, UnknownMembersAreIgnoredAndAbsentOnesKeepTheirDefaults) {
  json text = {{"command", "send-bw"}, {"sizes_bytes", {8}}, {"from_the_future", {1, 2}}};
  const auto plan = PlanFromJson(text);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  Plan expected;
  expected.command = "send-bw";
  expected.sizes_bytes = {8};
  EXPECT_EQ(*plan, expected);
}

TEST(PlanJsonTest, WrongTypesAndRangesAreErrorsThatNameTheMember) {
  struct Row {
    const char* key;
    json value;
  };
  const Row rows[] = {
      {"command", 5},
      {"command", "rm -rf"},
      {"sizes_bytes", "64"},
      {"sizes_bytes", json::array()},
      {"sizes_bytes", {1.5}},
      {"sizes_bytes", {-1}},
      {"sizes_bytes", {nullptr}},
      {"iterations", "10"},
      {"iterations", 0},
      {"iterations", -1},
      {"duration_ns", 1e30},
      {"duration_ns", 2.5},
      {"duration_ns", nullptr},
      {"duration_ns", -5},
      {"qps", true},
      {"qps", 4294967297},
      {"qps", -1},
      {"qps", 18446744073709551615u},
      {"inline", 64},
      {"inline", "always"},
      {"mtu_bytes", 1500},
      {"hop_limit", 0},
      {"changes", json::object()},
      {"changes", {1}},
      {"changes", {{{"field", "a"}}}},
  };
  for (const Row& row : rows) {
    json text = ToJson(Plan{});
    text[row.key] = row.value;
    const auto plan = PlanFromJson(text);
    ASSERT_FALSE(plan.has_value()) << text.dump();
    EXPECT_THAT(plan.error().message, HasSubstr(row.key)) << text.dump();
    EXPECT_EQ(plan.error().error_class, ErrorClass::kSetup);
  }
}

TEST(PlanJsonTest, WhatIsNoObjectIsRefused) {
  for (const json& text : {json(), json(1), json("plan"), json::array(), json::object(),
                           json(json::value_t::discarded)}) {
    EXPECT_FALSE(PlanFromJson(text).has_value());
  }
  EXPECT_THAT(PlanFromJson(json::object()).error().message, HasSubstr("plan.command is missing"));
}

TEST(PlanJsonTest, TooManySizesOrChangesAreRefusedBeforeTheyAreCopied) {
  json text = ToJson(Plan{});
  text["sizes_bytes"] = json(std::vector<int>(kMaxSizes + 1, 1));
  EXPECT_THAT(PlanFromJson(text).error().message, HasSubstr("sizes_bytes has too many"));
  text = ToJson(Plan{});
  text["changes"] = json(std::vector<json>(kMaxChanges + 1, json::object()));
  EXPECT_THAT(PlanFromJson(text).error().message, HasSubstr("changes has too many"));
}

TEST(PeerSettingsJsonTest, ComesBackIdenticalAndHoldsOnlyWhatWasAsked) {
  for (const char* text :
       {"device=rxe0", "wait=hybrid:20us", "cpu=1+3,numa=0",
        "device=a,ib-port=1,gid-index=0,cpu=0,numa=0,wait=busy:pause,comp-vector=3"}) {
    const auto settings = ParsePeerSettings(text);
    ASSERT_TRUE(settings.has_value());
    const auto back = PeerSettingsFromJson(ToJson(*settings));
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(*back, *settings);
  }
  EXPECT_EQ(ToJson(PeerSettings{}), json::object());
  EXPECT_EQ(*PeerSettingsFromJson(json::object()), PeerSettings{});
}

TEST(PeerSettingsJsonTest, HostileSettingsAreRefused) {
  const json rows[] = {
      {{"device", "../../etc"}},
      {{"device", "soft:pcap=/x"}},
      {{"device", 1}},
      {{"ib_port", 0}},
      {{"ib_port", 1e9}},
      {{"gid_index", -1}},
      {{"cpus", json::array()}},
      {{"cpus", {4096}}},
      {{"cpus", {"0"}}},
      {{"cpus", "0-3"}},
      {{"numa_node", -1}},
      {{"wait", "sleep"}},
      {{"wait", "hybrid:1h"}},
      {{"wait", 1}},
      {{"comp_vector", 4096}},
      json(std::vector<int>{1}),
      json(nullptr),
  };
  for (const json& row : rows) {
    const auto settings = PeerSettingsFromJson(row);
    ASSERT_FALSE(settings.has_value()) << row.dump();
    EXPECT_EQ(settings.error().error_class, ErrorClass::kSetup) << row.dump();
  }
  EXPECT_FALSE(PeerSettingsFromJson({{"cpus", std::vector<int>(5000, 1)}}).has_value());
}

}  // namespace
}  // namespace verbscope
