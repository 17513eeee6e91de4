// The accidents themselves: FaultSink and FaultReceiver around a link that remembers.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "transports/soft/link/fault_receiver.h"
#include "transports/soft/link/fault_sink.h"
#include "transports/soft/link/link_test_support.h"

namespace verbscope::soft {
namespace {

class FakeLink final : public PacketSink, public RawPacketSink, public PathFlows {
 public:
  bool Send(PathId path, const Header& header, PayloadPieces payload) override {
    if (!CanSend(path)) return false;
    --room;
    sent.push_back({path, header, JoinPieces(payload)});
    return true;
  }
  bool CanSend(PathId path) const override { return room > 0 && path != blocked; }
  bool SendRaw(PathId path, std::span<const std::byte> packet) override {
    if (!CanSend(path)) return false;
    --room;
    raw.emplace_back(packet.begin(), packet.end());
    return true;
  }
  const Flow* SendFlow(PathId) const override { return &flow; }
  const Flow* ReceiveFlow(PathId) const override { return &flow; }

  std::vector<uint32_t> Psns() const {
    std::vector<uint32_t> psns;
    for (const ReceivedPacket& packet : sent) psns.push_back(packet.header.psn);
    return psns;
  }

  Flow flow = TestFlow(1, 2);
  size_t room = 1'000'000;
  PathId blocked = kNoPath;
  std::vector<ReceivedPacket> sent;
  std::vector<std::vector<std::byte>> raw;
};

FaultOptions OneRule(FaultAction action, uint64_t nth) {
  FaultRule rule;
  rule.action = action;
  rule.nth = nth;
  rule.delay = std::chrono::microseconds(10);
  FaultOptions options;
  options.rules.push_back(rule);
  return options;
}

struct Sender {
  explicit Sender(const FaultOptions& options) : policy(options), sink(policy, link, link, link) {}
  bool Send(uint32_t psn, size_t bytes = 0, PathId path = 0) {
    const auto data = Pattern(bytes, psn);
    const std::span<const std::byte> pieces[] = {data};
    return sink.Send(path, SendHeader(psn, bytes), pieces);
  }
  FakeLink link;
  FaultPolicy policy;
  FaultSink sink;
};

using Psns = std::vector<uint32_t>;

TEST(FaultSink, Drops) {
  Sender s(OneRule(FaultAction::kDrop, 2));
  for (uint32_t i = 1; i <= 3; ++i) EXPECT_TRUE(s.Send(i));
  EXPECT_EQ(s.link.Psns(), (Psns{1, 3}));
  EXPECT_EQ(s.policy.counts().dropped, 1U);
}

TEST(FaultSink, Duplicates) {
  Sender s(OneRule(FaultAction::kDuplicate, 2));
  for (uint32_t i = 1; i <= 3; ++i) EXPECT_TRUE(s.Send(i, 100));
  EXPECT_EQ(s.link.Psns(), (Psns{1, 2, 2, 3}));
  EXPECT_EQ(s.link.sent[2].payload, Pattern(100, 2));
}

TEST(FaultSink, DuplicateWithoutRoomGoesLater) {
  Sender s(OneRule(FaultAction::kDuplicate, 1));
  s.link.room = 1;
  EXPECT_TRUE(s.Send(1, 5));
  EXPECT_EQ(s.link.Psns(), (Psns{1}));
  ASSERT_TRUE(s.sink.NextRelease());
  s.link.room = 5;
  s.sink.Tick(1);
  EXPECT_EQ(s.link.Psns(), (Psns{1, 1}));
  EXPECT_FALSE(s.sink.NextRelease());
}

TEST(FaultSink, ReorderedPacketIsOvertaken) {
  Sender s(OneRule(FaultAction::kReorder, 2));
  for (uint32_t i = 1; i <= 10; ++i) EXPECT_TRUE(s.Send(i, 8));
  const Psns psns = s.link.Psns();
  ASSERT_EQ(psns.size(), 10U);
  const auto place = std::find(psns.begin(), psns.end(), 2U) - psns.begin();
  EXPECT_GE(place, 2);
  EXPECT_LE(place, 1 + static_cast<ptrdiff_t>(kMaxOvertakers));
  EXPECT_EQ(s.link.sent[static_cast<size_t>(place)].payload, Pattern(8, 2));
  EXPECT_FALSE(s.sink.NextRelease());
}

TEST(FaultSink, ReorderedLastPacketIsNotLost) {
  Sender s(OneRule(FaultAction::kReorder, 1));
  s.sink.Tick(1000);
  EXPECT_TRUE(s.Send(1));
  EXPECT_TRUE(s.Send(7, 0, /*path=*/5));  // another path overtakes nobody
  EXPECT_EQ(s.sink.NextRelease(), 1000 + kReorderWait_ns);
  s.sink.Tick(*s.sink.NextRelease() - 1);
  EXPECT_EQ(s.link.Psns(), (Psns{7}));
  s.sink.Tick(*s.sink.NextRelease());
  EXPECT_EQ(s.link.Psns(), (Psns{7, 1}));
}

TEST(FaultSink, Delays) {
  Sender s(OneRule(FaultAction::kDelay, 1));
  s.sink.Tick(5000);
  EXPECT_TRUE(s.Send(1, 300));
  EXPECT_TRUE(s.Send(2));
  EXPECT_EQ(s.sink.NextRelease(), 15000U);
  s.sink.Tick(14999);
  EXPECT_EQ(s.link.Psns(), (Psns{2}));
  s.sink.Tick(15000);
  EXPECT_EQ(s.link.Psns(), (Psns{2, 1}));
  EXPECT_EQ(s.link.sent[1].payload, Pattern(300, 1));
}

TEST(FaultSink, ADelayCountsFromNowAndNotFromTheLastTick) {
  Sender s(OneRule(FaultAction::kDelay, 1));
  s.policy.SetClock([] { return uint64_t{90'000}; });
  s.sink.Tick(5000);
  EXPECT_TRUE(s.Send(1));
  EXPECT_EQ(s.sink.NextRelease(), 100'000U);
}

TEST(FaultSink, DelayOfAllKeepsTheOrder) {
  FaultOptions options;
  options.delay = std::chrono::microseconds(1);
  Sender s(options);
  for (uint32_t i = 1; i <= 50; ++i) {
    s.sink.Tick(i * 100);
    EXPECT_TRUE(s.Send(i));
  }
  s.sink.Tick(1'000'000);
  Psns expected;
  for (uint32_t i = 1; i <= 50; ++i) expected.push_back(i);
  EXPECT_EQ(s.link.Psns(), expected);
  EXPECT_EQ(s.policy.counts().delayed, 50U);
}

TEST(FaultSink, CorruptionIsAlwaysCaughtByTheIcrc) {
  FaultOptions options;
  options.corrupt = 1;
  Sender s(options);
  std::set<size_t> bits;
  for (uint32_t i = 0; i < 2000; ++i) {
    EXPECT_TRUE(s.Send(i, i % 40));
    std::vector<std::byte> intact;
    const auto data = Pattern(i % 40, i);
    const std::span<const std::byte> pieces[] = {data};
    BuildTransport(s.link.flow, SendHeader(i, i % 40), pieces, intact);
    const std::vector<std::byte>& damaged = s.link.raw.back();
    ASSERT_EQ(damaged.size(), intact.size());
    int flips = 0;
    for (size_t b = 0; b < intact.size(); ++b) {
      flips += std::popcount(std::to_integer<unsigned>(damaged[b] ^ intact[b]));
      if (damaged[b] != intact[b]) bits.insert(b);
    }
    EXPECT_EQ(flips, 1);
    EXPECT_FALSE(VerifyTransport(s.link.flow, damaged));
  }
  EXPECT_TRUE(s.link.sent.empty());
  EXPECT_GT(bits.size(), 40U);  // everywhere
  EXPECT_EQ(s.policy.counts().corrupted, 2000U);
}

TEST(FaultSink, CorruptedAndDelayedIsCorruptedWhenItGoes) {
  FaultOptions options;
  options.corrupt = 1;
  options.delay = std::chrono::microseconds(1);
  Sender s(options);
  EXPECT_TRUE(s.Send(1, 10));
  EXPECT_TRUE(s.link.raw.empty());
  s.sink.Tick(1000);
  ASSERT_EQ(s.link.raw.size(), 1U);
  EXPECT_FALSE(VerifyTransport(s.link.flow, s.link.raw[0]));
}

TEST(FaultSink, NothingIsCountedWithoutRoom) {
  Sender s(OneRule(FaultAction::kDrop, 1));
  s.link.room = 0;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(s.Send(1));
  EXPECT_FALSE(s.sink.CanSend(0));
  s.link.room = 1;
  EXPECT_TRUE(s.Send(1));
  EXPECT_EQ(s.policy.counts().dropped, 1U);
}

TEST(FaultSink, HoldsALimitedNumber) {
  FaultOptions options;
  options.delay = std::chrono::seconds(1);
  Sender s(options);
  uint32_t sent = 0;
  while (s.Send(sent)) ++sent;
  EXPECT_EQ(sent, HeldPackets::kMax);
  s.sink.Tick(2'000'000'000);
  EXPECT_EQ(s.link.sent.size(), HeldPackets::kMax);
  EXPECT_TRUE(s.sink.CanSend(0));
}

TEST(FaultSink, FullPathDoesNotBlockOthers) {
  FaultOptions options;
  options.delay = std::chrono::microseconds(1);
  Sender s(options);
  for (uint32_t i = 0; i < 6; ++i) EXPECT_TRUE(s.Send(i, 0, /*path=*/i % 2));
  s.link.blocked = 0;
  s.sink.Tick(1000);
  EXPECT_EQ(s.link.Psns(), (Psns{1, 3, 5}));
  EXPECT_TRUE(s.sink.NextRelease());
  s.link.blocked = kNoPath;
  s.sink.Tick(1001);
  EXPECT_EQ(s.link.Psns(), (Psns{1, 3, 5, 0, 2, 4}));
}

TEST(FaultSink, AStallRefusesEverythingUntilItsEndAndKeepsTheOrder) {
  Sender s(OneRule(FaultAction::kStall, 2));
  s.sink.Tick(5000);
  EXPECT_TRUE(s.Send(1, 30));
  EXPECT_TRUE(s.Send(2, 40));
  EXPECT_EQ(s.sink.NextRelease(), 15'000U);
  for (const PathId path : {PathId{0}, PathId{5}}) {
    EXPECT_FALSE(s.sink.CanSend(path));
    EXPECT_FALSE(s.Send(3, 0, path));
  }
  s.sink.Tick(14'999);
  EXPECT_FALSE(s.Send(3));
  EXPECT_EQ(s.link.Psns(), (Psns{1}));
  s.sink.Tick(15'000);
  EXPECT_EQ(s.link.Psns(), (Psns{1, 2}));
  EXPECT_EQ(s.link.sent[1].payload, Pattern(40, 2));
  EXPECT_FALSE(s.sink.NextRelease());
  EXPECT_TRUE(s.Send(3));
  EXPECT_EQ(s.link.Psns(), (Psns{1, 2, 3}));
  EXPECT_EQ(s.policy.counts().stalled, 1U);
}

TEST(FaultSink, AStallLastsUntilItsPacketFindsRoom) {
  Sender s(OneRule(FaultAction::kStall, 1));
  EXPECT_TRUE(s.Send(1));
  s.link.blocked = 0;
  s.sink.Tick(10'000);
  EXPECT_FALSE(s.sink.CanSend(5)) << "the link is one";
  EXPECT_EQ(s.sink.NextRelease(), 10'000U);
  s.link.blocked = kNoPath;
  s.sink.Tick(10'001);
  EXPECT_TRUE(s.Send(2));
  EXPECT_EQ(s.link.Psns(), (Psns{1, 2}));
}

TEST(FaultSink, ADelayGoesOnInAStallAndNothingOvertakes) {
  FaultOptions options = OneRule(FaultAction::kStall, 3);  // of 10 us
  options.delay = std::chrono::microseconds(4);
  Sender s(options);
  for (uint32_t i = 1; i <= 3; ++i) {
    s.sink.Tick(i * 1000);
    EXPECT_TRUE(s.Send(i));
  }
  s.sink.Tick(12'999);
  EXPECT_TRUE(s.link.sent.empty()) << "not those before the stall either";
  s.sink.Tick(13'000);
  EXPECT_EQ(s.link.Psns(), (Psns{1, 2, 3}));
  EXPECT_TRUE(s.Send(4));
  EXPECT_EQ(s.sink.NextRelease(), 17'000U);
}

TEST(FaultSink, ADelayLongerThanTheStallHoldsUpNobodyElse) {
  FaultOptions options = OneRule(FaultAction::kStall, 2);
  options.delay = std::chrono::microseconds(100);
  Sender s(options);
  EXPECT_TRUE(s.Send(1));
  EXPECT_TRUE(s.Send(2));
  s.sink.Tick(10'000);
  EXPECT_TRUE(s.Send(3));
  s.sink.Tick(100'000);
  EXPECT_EQ(s.link.Psns(), (Psns{1, 2}));
  s.sink.Tick(110'000);
  EXPECT_EQ(s.link.Psns(), (Psns{1, 2, 3}));
}

TEST(FaultSink, WholeRunsRepeat) {
  FaultOptions options;
  options.drop = options.duplicate = options.reorder = options.corrupt = 0.05;
  options.seed = 9;
  Sender a(options);
  Sender b(options);
  for (uint32_t i = 0; i < 5000; ++i) {
    for (Sender* s : {&a, &b}) {
      s->sink.Tick(i * 1000);
      s->Send(i, i % 300);
    }
  }
  EXPECT_EQ(a.link.Psns(), b.link.Psns());
  EXPECT_EQ(a.link.raw, b.link.raw);
  EXPECT_EQ(a.policy.counts(), b.policy.counts());
}

struct Receiver {
  explicit Receiver(const FaultOptions& options)
      : policy(options), receiver(policy, engine, counters) {}
  void Receive(uint32_t psn, PathId path = 0) {
    const auto data = Pattern(20, psn);
    receiver.Receive(path, SendHeader(psn, 20), data);
  }
  Psns Got() const {
    Psns psns;
    for (const ReceivedPacket& packet : engine.packets) {
      psns.push_back(packet.header.psn);
      EXPECT_EQ(packet.payload, Pattern(20, packet.header.psn));
    }
    return psns;
  }
  RecordingReceiver engine;
  Counters counters;
  FaultPolicy policy;
  FaultReceiver receiver;
};

TEST(FaultReceiver, DoesWhatRulesSay) {
  const auto run = [](FaultAction action) {
    Receiver r(OneRule(action, 2));
    for (uint32_t i = 1; i <= 4; ++i) r.Receive(i);
    EXPECT_EQ(r.counters.icrc_errors, action == FaultAction::kCorrupt ? 1U : 0U);
    r.receiver.Tick(kReorderWait_ns);
    EXPECT_FALSE(r.receiver.NextRelease());
    return r.Got();
  };
  EXPECT_EQ(run(FaultAction::kDrop), (Psns{1, 3, 4}));
  EXPECT_EQ(run(FaultAction::kCorrupt), (Psns{1, 3, 4}));
  EXPECT_EQ(run(FaultAction::kDuplicate), (Psns{1, 2, 2, 3, 4}));
  EXPECT_EQ(run(FaultAction::kDelay), (Psns{1, 3, 4, 2}));
  const Psns reordered = run(FaultAction::kReorder);
  EXPECT_EQ(reordered.size(), 4U);
  EXPECT_NE(reordered, (Psns{1, 2, 3, 4}));
}

TEST(FaultReceiver, KnowsNoChances) {
  FaultOptions options;
  options.drop = 1;
  options.delay = std::chrono::seconds(1);
  Receiver r(options);
  r.Receive(1);
  EXPECT_EQ(r.Got(), (Psns{1}));
}

TEST(FaultReceiver, ReorderedPacketWaitsForItsOwnPath) {
  Receiver r(OneRule(FaultAction::kReorder, 1));
  r.Receive(1, /*path=*/1);
  for (uint32_t i = 2; i < 10; ++i) r.Receive(i, /*path=*/2);
  EXPECT_EQ(r.Got().size(), 8U);
  for (uint32_t i = 10; i < 14; ++i) r.Receive(i, /*path=*/1);
  EXPECT_EQ(r.Got().size(), 13U);
}

TEST(FaultReceiver, AStallKeepsWhatComesForItsEnd) {
  Receiver r(OneRule(FaultAction::kStall, 2));
  r.receiver.Tick(5000);
  for (uint32_t i = 1; i <= 10'000; ++i) r.Receive(i, /*path=*/i % 3);
  EXPECT_EQ(r.receiver.NextRelease(), 15'000U);
  r.receiver.Tick(14'999);
  EXPECT_EQ(r.Got(), (Psns{1}));
  r.receiver.Tick(15'000);
  EXPECT_FALSE(r.receiver.NextRelease());
  r.Receive(10'001);
  const Psns got = r.Got();
  ASSERT_EQ(got.size(), 10'001U);
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
  EXPECT_EQ(r.policy.counts().stalled, 1U);
}

TEST(FaultReceiver, WhatWasKeptIsJudgedAfterTheStallAndMayBeginTheNext) {
  FaultOptions options = OneRule(FaultAction::kStall, 0);
  options.rules[0].hits = 2;
  FaultRule drop;
  drop.nth = 3;
  options.rules.push_back(drop);
  Receiver r(options);
  for (uint32_t i = 1; i <= 4; ++i) r.Receive(i);
  r.receiver.Tick(10'000);
  EXPECT_EQ(r.Got(), (Psns{1}));
  EXPECT_EQ(r.receiver.NextRelease(), 20'000U) << "the second packet stalls too";
  r.Receive(5);
  r.receiver.Tick(20'000);
  EXPECT_EQ(r.Got(), (Psns{1, 2, 4, 5}));
  EXPECT_FALSE(r.receiver.NextRelease());
}

// The whole way: what one side damages, the other side's link finds.
TEST(Faults, CorruptedPacketsDoNotArriveThroughTheLink) {
  TestPeer a;
  TestPeer b;
  const PathId path = a.ConnectTo(b);
  b.link->Serve();
  FaultOptions options;
  options.corrupt = 0.5;
  FaultPolicy policy(options);
  FaultSink sink(policy, *a.link, *a.link, *a.link);
  for (uint32_t i = 0; i < 1000; ++i) {
    const auto data = Pattern(i * 4, i);
    const std::span<const std::byte> pieces[] = {data};
    DeviceLockHolder hold(a.lock);
    ASSERT_TRUE(sink.Send(path, SendHeader(i, data.size()), pieces));
    a.link->Flush();
    b.link->Poll(b.received, 10);
  }
  EXPECT_GT(policy.counts().corrupted, 400U);
  EXPECT_EQ(b.counters.icrc_errors, policy.counts().corrupted);
  EXPECT_EQ(b.received.packets.size(), 1000 - policy.counts().corrupted);
}

}  // namespace
}  // namespace verbscope::soft
