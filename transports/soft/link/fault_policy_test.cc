#include "transports/soft/link/fault_policy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transports/soft/link/link_test_support.h"

namespace verbscope::soft {
namespace {

using enum FaultAction;
constexpr FaultDirection kOut = FaultDirection::kSend;
constexpr FaultDirection kIn = FaultDirection::kReceive;

FaultRule Rule(FaultAction action) {
  FaultRule rule;
  rule.action = action;
  return rule;
}

FaultOptions Options(std::vector<FaultRule> rules) {
  FaultOptions options;
  options.rules = std::move(rules);
  return options;
}

std::optional<FaultAction> Judge(FaultPolicy& policy, uint32_t psn, FaultDirection direction = kOut,
                                 size_t bytes = 0) {
  return policy.Judge(direction, 0, SendHeader(psn, bytes), bytes).action;
}

TEST(FaultPolicy, DoesNothingByDefault) {
  FaultPolicy policy{FaultOptions{}};
  for (uint32_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(Judge(policy, i), std::nullopt);
    EXPECT_EQ(Judge(policy, i, kIn), std::nullopt);
  }
  EXPECT_EQ(policy.counts(), FaultCounts{});
}

TEST(FaultPolicy, SameSeedSameAccidents) {
  FaultOptions options;
  options.drop = 0.1;
  options.duplicate = 0.1;
  options.reorder = 0.1;
  options.corrupt = 0.1;
  options.seed = 42;
  FaultPolicy a(options);
  FaultPolicy b(options);
  options.seed = 43;
  FaultPolicy other(options);
  int different = 0;
  for (uint32_t i = 0; i < 10000; ++i) {
    const auto action = Judge(a, i);
    EXPECT_EQ(action, Judge(b, i));
    different += action != Judge(other, i) ? 1 : 0;
    EXPECT_EQ(Judge(a, i, kIn), std::nullopt);  // chances are for sent packets
  }
  EXPECT_GT(different, 1000);
  EXPECT_EQ(a.counts(), b.counts());
  // About a tenth each; less for the later ones, because a packet has one accident only.
  EXPECT_NEAR(static_cast<double>(a.counts().dropped), 1000, 150);
  EXPECT_NEAR(static_cast<double>(a.counts().corrupted), 900, 150);
  EXPECT_NEAR(static_cast<double>(a.counts().duplicated), 810, 150);
  EXPECT_NEAR(static_cast<double>(a.counts().reordered), 729, 150);
}

TEST(FaultPolicy, CertainChanceHitsAlways) {
  FaultOptions options;
  options.drop = 1;
  FaultPolicy policy(options);
  for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(Judge(policy, i), kDrop);
}

TEST(FaultPolicy, RuleHitsTheNthMatch) {
  FaultRule rule = Rule(kDrop);
  rule.nth = 3;
  rule.min_bytes = 10;
  FaultPolicy policy(Options({rule}));
  std::string hits;
  for (uint32_t i = 0; i < 8; ++i) hits += Judge(policy, i, kOut, i % 2 == 0 ? 10 : 9) ? 'x' : '.';
  EXPECT_EQ(hits, "....x...");
  EXPECT_EQ(policy.counts().dropped, 1U);
}

TEST(FaultPolicy, RuleHitsAtMostSoOften) {
  FaultRule rule = Rule(kDuplicate);
  rule.hits = 2;
  FaultPolicy policy(Options({rule}));
  EXPECT_EQ(Judge(policy, 1), kDuplicate);
  EXPECT_EQ(Judge(policy, 2), kDuplicate);
  EXPECT_EQ(Judge(policy, 3), std::nullopt);
}

TEST(FaultPolicy, RuleHitsTheNthTransmissionOfAPsn) {
  FaultRule rule = Rule(kDrop);
  rule.transmission = 2;
  FaultPolicy policy(Options({rule}));
  EXPECT_EQ(Judge(policy, 5), std::nullopt);
  EXPECT_EQ(Judge(policy, 6), std::nullopt);
  EXPECT_EQ(Judge(policy, 5), kDrop);
  EXPECT_EQ(Judge(policy, 5), std::nullopt);
  EXPECT_EQ(Judge(policy, 6), kDrop);
  // Other direction, path, QP, and responses have their own counts.
  EXPECT_EQ(Judge(policy, 5, kIn), std::nullopt);
  EXPECT_EQ(policy.Judge(kOut, 1, SendHeader(5, 0), 0).action, std::nullopt);
  EXPECT_EQ(policy.Judge(kOut, 0, SendHeader(5, 0, 99), 0).action, std::nullopt);
  Header ack = SendHeader(5, 0);
  ack.opcode = Opcode::kAck;
  EXPECT_EQ(policy.Judge(kOut, 0, ack, 0).action, std::nullopt);
  EXPECT_EQ(policy.Judge(kOut, 0, ack, 0).action, kDrop);
}

TEST(FaultPolicy, ForgetsTransmissionsOfOldPsns) {
  FaultRule rule = Rule(kDrop);
  rule.transmission = 2;
  FaultPolicy policy(Options({rule}));
  // PSNs wrap; the newest are known, one that comes around again is new.
  for (uint32_t i = 0; i < 300000; ++i) ASSERT_EQ(Judge(policy, 0xfffff0 + i), std::nullopt);
  EXPECT_EQ(Judge(policy, 0xfffff0 + 299999), kDrop);
  EXPECT_EQ(Judge(policy, 0xfffff0 + 299000), kDrop);
  EXPECT_EQ(Judge(policy, 5), std::nullopt);
}

TEST(FaultPolicy, FirstRuleWinsAndTheOthersCountOn) {
  FaultRule second = Rule(kCorrupt);
  second.nth = 3;
  FaultRule first = Rule(kDrop);
  first.nth = 1;
  FaultPolicy policy(Options({first, second}));
  EXPECT_EQ(Judge(policy, 1), kDrop);
  EXPECT_EQ(Judge(policy, 2), std::nullopt);
  EXPECT_EQ(Judge(policy, 3), kCorrupt);
}

TEST(FaultPolicy, RuleMeansItsDirection) {
  FaultRule send = Rule(kDrop);
  send.direction = FaultDirection::kSend;
  FaultRule receive = Rule(kDuplicate);
  receive.direction = FaultDirection::kReceive;
  FaultPolicy policy(Options({send, receive}));
  EXPECT_EQ(Judge(policy, 1, kOut), kDrop);
  EXPECT_EQ(Judge(policy, 1, kIn), kDuplicate);
  FaultRule both = Rule(kDrop);
  both.nth = 2;  // counted together
  FaultPolicy together(Options({both}));
  EXPECT_EQ(Judge(together, 1, kOut), std::nullopt);
  EXPECT_EQ(Judge(together, 1, kIn), kDrop);
}

TEST(FaultPolicy, DelayOfAllPacketsAndOfOne) {
  FaultRule rule = Rule(kDelay);
  rule.nth = 2;
  rule.delay = std::chrono::microseconds(7);
  FaultOptions options = Options({rule, [] {
                                    FaultRule drop = Rule(kDrop);
                                    drop.nth = 3;
                                    return drop;
                                  }()});
  options.delay = std::chrono::microseconds(5);
  FaultPolicy policy(options);
  const FaultVerdict plain = policy.Judge(kOut, 0, SendHeader(1, 0), 0);
  EXPECT_EQ(plain.action, kDelay);
  EXPECT_EQ(plain.delay_ns, 5000U);
  EXPECT_EQ(policy.Judge(kOut, 0, SendHeader(2, 0), 0).delay_ns, 7000U);
  EXPECT_EQ(Judge(policy, 3), kDrop);
  EXPECT_EQ(policy.Judge(kIn, 0, SendHeader(1, 0), 0).delay_ns, 0U);
  EXPECT_EQ(policy.counts().delayed, 2U);
}

TEST(FaultPolicy, AStallHasItsTimeBesideTheDelayOfAllPackets) {
  FaultRule rule = Rule(kStall);
  rule.nth = 2;
  rule.delay = std::chrono::milliseconds(3);
  FaultOptions options = Options({rule});
  options.delay = std::chrono::microseconds(5);
  FaultPolicy policy(options);
  EXPECT_EQ(policy.Judge(kOut, 0, SendHeader(1, 0), 0).stall_ns, 0U);
  const FaultVerdict stall = policy.Judge(kOut, 0, SendHeader(2, 0), 0);
  EXPECT_EQ(stall.action, kStall);
  EXPECT_EQ(stall.stall_ns, 3'000'000U);
  EXPECT_EQ(stall.delay_ns, 5000U);
  EXPECT_EQ(policy.counts().stalled, 1U);
}

TEST(FaultPolicy, KnowsTheClassesOfPackets) {
  const auto header = [](Opcode opcode, uint8_t syndrome = 0) {
    Header h;
    h.opcode = opcode;
    h.syndrome = syndrome;
    return h;
  };
  struct Case {
    Header header;
    FaultClass own;
    bool request;
  };
  const Case cases[] = {
      {header(Opcode::kSendMiddle), FaultClass::kSend, true},
      {header(Opcode::kSendOnlyInvalidate), FaultClass::kSend, true},
      {header(Opcode::kWriteLastImm), FaultClass::kWrite, true},
      {header(Opcode::kReadRequest), FaultClass::kRead, true},
      {header(Opcode::kFetchAdd), FaultClass::kAtomic, true},
      {header(Opcode::kCompareSwap), FaultClass::kAtomic, true},
      {header(Opcode::kAck, kSyndromeAck), FaultClass::kAck, false},
      {header(Opcode::kAck, kSyndromeRnr | 12), FaultClass::kNak, false},
      {header(Opcode::kAck, kNakSequence), FaultClass::kNak, false},
      {header(Opcode::kReadResponseMiddle), FaultClass::kReadResponse, false},
      {header(Opcode::kReadResponseOnly), FaultClass::kReadResponse, false},
      {header(Opcode::kAtomicAck), FaultClass::kAtomicAck, false},
  };
  constexpr FaultClass kOwn[] = {
      FaultClass::kSend, FaultClass::kWrite, FaultClass::kRead,         FaultClass::kAtomic,
      FaultClass::kAck,  FaultClass::kNak,   FaultClass::kReadResponse, FaultClass::kAtomicAck};
  for (const Case& c : cases) {
    for (const FaultClass own : kOwn) {
      EXPECT_EQ(Matches(own, c.header), own == c.own) << Info(c.header.opcode).name;
    }
    EXPECT_TRUE(Matches(FaultClass::kAny, c.header));
    EXPECT_EQ(Matches(FaultClass::kRequest, c.header), c.request);
  }
}

TEST(FaultPolicy, CountsHaveNames) {
  std::string names;
  ForEach(FaultCounts{.dropped = 1,
                      .duplicated = 2,
                      .reordered = 3,
                      .delayed = 4,
                      .corrupted = 5,
                      .stalled = 6},
          [&names](std::string_view name, uint64_t value) {
            names += std::string(name) + "=" + std::to_string(value) + " ";
          });
  EXPECT_EQ(names, "dropped=1 duplicated=2 reordered=3 delayed=4 corrupted=5 stalled=6 ");
}

}  // namespace
}  // namespace verbscope::soft
