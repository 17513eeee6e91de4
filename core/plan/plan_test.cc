#include "core/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;

Plan With(const std::function<void(Plan&)>& change) {
  Plan plan;
  change(plan);
  return plan;
}

// The message of Validate, or "" when the plan is fine.
std::string Complaint(const std::function<void(Plan&)>& change) {
  const Status status = Validate(With(change));
  if (status) return "";
  EXPECT_EQ(status.error().error_class, ErrorClass::kUsage);
  return status.error().message;
}

TEST(ValidateTest, TheDefaultPlanIsFine) { EXPECT_TRUE(Validate(Plan{}).has_value()); }

// One row per number: the lowest and highest values pass, their neighbours outside do not.
TEST(ValidateTest, EveryNumberHasItsRange) {
  struct Row {
    const char* field;
    uint32_t Plan::*member;
    uint32_t low;
    uint32_t high;
  };
  const Row rows[] = {
      {"qps", &Plan::qps, 1, kMaxQps},
      {"tx_depth", &Plan::tx_depth, 1, kMaxDepth},
      {"rx_depth", &Plan::rx_depth, 1, kMaxDepth},
      {"timeout_code", &Plan::timeout_code, 1, 31},
      {"retry_count", &Plan::retry_count, 0, 7},
      {"rnr_timer_code", &Plan::rnr_timer_code, 0, 31},
      {"rnr_retry", &Plan::rnr_retry, 0, 7},
      {"rd_atomic", &Plan::rd_atomic, 0, 255},
      {"service_level", &Plan::service_level, 0, 15},
      {"traffic_class", &Plan::traffic_class, 0, 255},
      {"flow_label", &Plan::flow_label, 0, (1u << 20) - 1},
      {"pkey_index", &Plan::pkey_index, 0, 65535},
      {"hop_limit", &Plan::hop_limit, 1, 255},
      {"repeat", &Plan::repeat, 1, kMaxRepeat},
  };
  for (const Row& row : rows) {
    const auto complaint = [&row](uint32_t value) {
      return Complaint([&](Plan& plan) { plan.*row.member = value; });
    };
    EXPECT_EQ(complaint(row.low), "") << row.field;
    EXPECT_EQ(complaint(row.high), "") << row.field;
    EXPECT_THAT(complaint(row.high + 1), HasSubstr(row.field));
    EXPECT_THAT(complaint(row.high + 1), HasSubstr(std::to_string(row.high + 1)));
    if (row.low == 0) continue;
    EXPECT_THAT(complaint(row.low - 1), HasSubstr(row.field));
  }
}

TEST(ValidateTest, TimeoutZeroBelongsToRnrTestOnly) {
  EXPECT_THAT(Complaint([](Plan& p) { p.timeout_code = 0; }), HasSubstr("--timeout"));
  EXPECT_EQ(Complaint([](Plan& p) {
              p.timeout_code = 0;
              p.command = "rnr-test";
            }),
            "");
}

// A list longer than what may be in flight could never be posted.
TEST(ValidateTest, PostListStaysWithinTheMessagesInFlight) {
  const auto complaint = [](uint32_t depth, uint32_t list, uint32_t period) {
    return Complaint([=](Plan& p) {
      p.tx_depth = depth;
      p.post_list = list;
      p.signal_every = period;
    });
  };
  EXPECT_EQ(complaint(16, 16, kMaxSignalEvery), "");
  EXPECT_EQ(complaint(16, 1, 0), "");
  EXPECT_THAT(complaint(16, 17, 0), HasSubstr("post_list"));
  EXPECT_THAT(complaint(16, 0, 0), HasSubstr("post_list"));
  EXPECT_THAT(complaint(16, 1, kMaxSignalEvery + 1), HasSubstr("signal_every"));
}

TEST(ValidateTest, LengthsAndTimes) {
  EXPECT_THAT(Complaint([](Plan& p) { p.iterations = 0; }), HasSubstr("iterations"));
  EXPECT_EQ(Complaint([](Plan& p) { p.iterations = kMaxIterations; }), "");
  EXPECT_THAT(Complaint([](Plan& p) { p.iterations = kMaxIterations + 1; }), HasSubstr("-n"));
  EXPECT_EQ(Complaint([](Plan& p) { p.warmup_iterations = 0; }), "");
  EXPECT_THAT(Complaint([](Plan& p) { p.warmup_iterations = kMaxIterations + 1; }),
              HasSubstr("warmup_iterations"));
  EXPECT_THAT(Complaint([](Plan& p) { p.duration_ns = 0; }), HasSubstr("duration_ns"));
  EXPECT_THAT(Complaint([](Plan& p) { p.duration_ns = -1; }), HasSubstr("-1ns"));
  EXPECT_EQ(Complaint([](Plan& p) { p.duration_ns = kMaxDurationNs; }), "");
  EXPECT_THAT(Complaint([](Plan& p) { p.duration_ns = kMaxDurationNs + 1; }), HasSubstr("-D"));
  EXPECT_EQ(Complaint([](Plan& p) { p.warmup_ns = 0; }), "");
  EXPECT_THAT(Complaint([](Plan& p) { p.warmup_ns = -1; }), HasSubstr("warmup_ns"));
  EXPECT_THAT(Complaint([](Plan& p) { p.interval_ns = kMinIntervalNs - 1; }),
              HasSubstr("interval_ns"));
  EXPECT_THAT(Complaint([](Plan& p) { p.deadline_ns = -1; }), HasSubstr("deadline_ns"));
  EXPECT_EQ(Complaint([](Plan& p) { p.deadline_ns = 1; }), "");
}

TEST(ValidateTest, SizesAreSomeDistinctAndWithinAnRcMessage) {
  EXPECT_THAT(Complaint([](Plan& p) { p.sizes_bytes.clear(); }), HasSubstr("sizes_bytes"));
  EXPECT_EQ(Complaint([](Plan& p) { p.sizes_bytes = {kMaxMessageBytes, 0}; }), "");
  EXPECT_THAT(Complaint([](Plan& p) { p.sizes_bytes = {kMaxMessageBytes + 1}; }),
              HasSubstr("2147483649"));
  EXPECT_THAT(Complaint([](Plan& p) { p.sizes_bytes = {1, 2, 1}; }), HasSubstr("1 twice"));
  EXPECT_THAT(Complaint([](Plan& p) {
                p.sizes_bytes.clear();
                for (uint64_t i = 0; i <= kMaxSizes; ++i) p.sizes_bytes.push_back(i);
              }),
              HasSubstr("257"));
}

TEST(ValidateTest, MtuInlineCommandAndChanges) {
  for (const uint32_t mtu : {0u, 256u, 512u, 1024u, 2048u, 4096u}) {
    EXPECT_EQ(Complaint([mtu](Plan& p) { p.mtu_bytes = mtu; }), "");
  }
  for (const uint32_t mtu : {1u, 1500u, 4097u, 8192u}) {
    EXPECT_THAT(Complaint([mtu](Plan& p) { p.mtu_bytes = mtu; }), HasSubstr("mtu_bytes"));
  }
  EXPECT_EQ(Complaint([](Plan& p) { p.inline_mode = {InlineKind::kBytes, 1}; }), "");
  EXPECT_THAT(Complaint([](Plan& p) {
                p.inline_mode = {InlineKind::kBytes, 0};
              }),
              HasSubstr("inline"));
  EXPECT_THAT(Complaint([](Plan& p) {
                p.inline_mode = {InlineKind::kOff, 1};
              }),
              HasSubstr("inline"));
  for (const char* command : {"", "Send-Lat", "send lat", "send\nlat", "../x"}) {
    EXPECT_THAT(Complaint([command](Plan& p) { p.command = command; }), HasSubstr("command"));
  }
  EXPECT_NE(Complaint([](Plan& p) { p.command = std::string(33, 'a'); }), "");
  EXPECT_NE(Complaint([](Plan& p) { p.changes.resize(kMaxChanges + 1); }), "");
  EXPECT_NE(Complaint([](Plan& p) {
              p.changes.push_back({"a", "b", "c", std::string(kMaxChangeTextBytes + 1, 'd')});
            }),
            "");
}

TEST(PlannedTest, CountsSizesRepeatsAndWarmUps) {
  Plan plan;
  EXPECT_EQ(PlannedNs(plan), 2'200'000'000);
  plan.sizes_bytes = {1, 2, 4};
  plan.repeat = 5;
  EXPECT_EQ(PlannedNs(plan), 15 * int64_t{2'200'000'000});
  EXPECT_EQ(EffectiveDeadlineNs(plan), 15 * int64_t{2'200'000'000} + 30 * kSecond);
}

TEST(PlannedTest, IterationsCountAsUnknown) {
  Plan plan;
  plan.iterations = 1'000'000;
  EXPECT_EQ(PlannedNs(plan), 200'000'000);
  plan.warmup_iterations = 10;
  EXPECT_EQ(PlannedNs(plan), 0);
  EXPECT_EQ(EffectiveDeadlineNs(plan), 30 * kSecond);
}

TEST(PlannedTest, AGivenDeadlineIsTakenAsItIs) {
  EXPECT_EQ(EffectiveDeadlineNs(With([](Plan& p) { p.deadline_ns = 7; })), 7);
}

TEST(PlannedTest, TheLongestPlanSaturatesInsteadOfWrapping) {
  Plan plan;
  plan.duration_ns = kMaxDurationNs;
  plan.repeat = kMaxRepeat;
  plan.sizes_bytes.assign(kMaxSizes, 1);
  EXPECT_EQ(PlannedNs(plan), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(EffectiveDeadlineNs(plan), std::numeric_limits<int64_t>::max());
}

TEST(MemoryTest, GrowsWithSizeDepthAndQps) {
  const auto bytes = [](const std::function<void(Plan&)>& change) {
    return EstimatedMemoryBytes(With(change));
  };
  const uint64_t small = EstimatedMemoryBytes(Plan{});
  constexpr uint64_t kBuffers = 2 * 4096;  // one of each kind, however many QPs
  EXPECT_GE(small, 2 * 4096 + 513 * 192);  // two pages and the queues, at the very least
  EXPECT_LT(small, 1u << 20);
  EXPECT_EQ(bytes([](Plan& p) { p.qps = 8; }) - kBuffers, 8 * (small - kBuffers));
  EXPECT_EQ(bytes([](Plan& p) {
              p.sizes_bytes = {1, 1 << 20, 2};
            }) - small,
            2 * ((1u << 20) - 4096));
  EXPECT_GT(bytes([](Plan& p) { p.tx_depth = 4096; }), small);
  EXPECT_GT(bytes([](Plan& p) { p.rx_depth = 4096; }), small);
  EXPECT_EQ(bytes([](Plan& p) {
              p.sizes_bytes = {std::numeric_limits<uint64_t>::max() - 1};
              p.qps = 4;
            }),
            std::numeric_limits<uint64_t>::max());
}

TEST(BoundTest, APlanWithinTheLimitsComesBackUnchanged) {
  const Plan plan;
  const auto bounded = Bound(plan, ServerLimits{});
  ASSERT_TRUE(bounded.has_value()) << bounded.error().message;
  EXPECT_EQ(*bounded, plan);
}

TEST(BoundTest, DepthsAreLoweredToTheDeviceAndSaidSo) {
  Plan plan;
  plan.rx_depth = 512;
  plan.signal_every = 33;
  ServerLimits limits;
  limits.max_qp_wr = 32;
  const auto bounded = Bound(plan, limits);
  ASSERT_TRUE(bounded.has_value()) << bounded.error().message;
  EXPECT_EQ(bounded->rx_depth, 32u);
  EXPECT_EQ(bounded->signal_every, 16u);
  ASSERT_THAT(bounded->changes, SizeIs(2));
  EXPECT_EQ(bounded->changes[0].field, "rx_depth");
  EXPECT_EQ(bounded->changes[0].asked, "512");
  EXPECT_EQ(bounded->changes[0].used, "32");
  EXPECT_THAT(bounded->changes[0].why, HasSubstr("at most 32 work requests"));
  EXPECT_TRUE(Validate(*bounded).has_value());
}

TEST(BoundTest, LongDeadlinesAndFineIntervalsAreAdjustedAndSaidSo) {
  Plan plan;
  plan.duration_ns = 500 * kSecond;
  plan.interval_ns = kMinIntervalNs;
  plan.deadline_ns = 10'000 * kSecond;
  const auto bounded = Bound(plan, ServerLimits{});
  ASSERT_TRUE(bounded.has_value()) << bounded.error().message;
  EXPECT_EQ(bounded->deadline_ns, 630 * kSecond);
  EXPECT_EQ(bounded->interval_ns, 123'000'000);
  EXPECT_LE(bounded->duration_ns / bounded->interval_ns, kMaxIntervals);
  ASSERT_THAT(bounded->changes, SizeIs(2));
  EXPECT_EQ(bounded->changes[0].field, "deadline_ns");
  EXPECT_EQ(bounded->changes[1].field, "interval_ns");
}

struct Refusal {
  const char* what;
  std::function<void(Plan&)> change;
  std::function<void(ServerLimits&)> limit;
  const char* named;
};

TEST(BoundTest, WhatWouldChangeTheMeasurementIsRefusedAsSetup) {
  const Refusal rows[] = {
      {"size",
       [](Plan& p) {
         p.sizes_bytes = {64, 4096};
       },
       [](ServerLimits& l) { l.max_message_bytes = 4095; }, "4095 bytes"},
      {"duration", [](Plan& p) { p.duration_ns = 600 * kSecond; }, [](ServerLimits&) {},
       "at most 10m"},
      {"memory", [](Plan& p) { p.sizes_bytes = {1 << 30}; }, [](ServerLimits&) {},
       "at most 1073741824 bytes"},
      {"qps", [](Plan& p) { p.qps = 2; }, [](ServerLimits&) {}, "something else"},
      {"receives", [](Plan& p) { p.rx_depth = 1; }, [](ServerLimits&) {}, "something else"},
      {"results", [](Plan& p) { p.repeat = kMaxResults + 1; }, [](ServerLimits&) {},
       "at most 2000"},
      {"command", [](Plan& p) { p.command = "format-disk"; }, [](ServerLimits&) {}, "send-lat"},
      {"one-sided", [](Plan& p) { p.command = "verb-cost"; }, [](ServerLimits&) {}, "send-lat"},
      {"device", [](Plan&) {}, [](ServerLimits& l) { l.max_qp_wr = 0; }, "max_qp_wr"},
      {"range", [](Plan& p) { p.qps = 0; }, [](ServerLimits&) {}, ""},
  };
  for (const Refusal& row : rows) {
    ServerLimits limits;
    row.limit(limits);
    const auto bounded = Bound(With(row.change), limits);
    ASSERT_FALSE(bounded.has_value()) << row.what;
    EXPECT_EQ(bounded.error().error_class, ErrorClass::kSetup) << row.what;
    EXPECT_THAT(bounded.error().message, HasSubstr("plan refused")) << row.what;
    EXPECT_THAT(bounded.error().cause, HasSubstr(row.named)) << row.what;
  }
}

TEST(BoundTest, AFloodOfForeignChangesCannotGrow) {
  Plan plan;
  plan.changes.resize(kMaxChanges);
  ServerLimits limits;
  limits.max_qp_wr = 1;
  EXPECT_FALSE(Bound(plan, limits).has_value());
}

}  // namespace
}  // namespace verbscope
