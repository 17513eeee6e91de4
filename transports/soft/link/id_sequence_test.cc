#include "transports/soft/link/id_sequence.h"

#include <gtest/gtest.h>

#include <random>

namespace verbscope::soft {
namespace {

constexpr uint64_t kMs = 1'000'000;

// A sender that counts, and what its receiver makes of it.
struct Counter {
  bool Next(uint16_t step = 1) { return Send(id = static_cast<uint16_t>(id + step)); }
  bool Send(uint16_t any) { return sequence.Accept(any, /*dont_fragment=*/true, now_ns); }
  void Learn() {
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(Next());
  }

  IdSequence sequence;
  uint16_t id = 0xfff8;  // wraps while it learns
  uint64_t now_ns = 5 * kMs;
};

TEST(IdSequence, TakesEverythingUntilItHasSeenSomeoneCount) {
  Counter counter;
  std::mt19937 random(1);
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(counter.Send(static_cast<uint16_t>(random())));
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(counter.Next());
  EXPECT_TRUE(counter.Send(30'000));
}

TEST(IdSequence, RefusesIdsFromElsewhere) {
  Counter counter;
  counter.Learn();
  std::mt19937 random(2);
  int taken = 0;
  constexpr int kDamaged = 100'000;
  for (int i = 0; i < kDamaged; ++i) {
    taken += counter.Send(static_cast<uint16_t>(random())) ? 1 : 0;
    for (int good = 0; good < 3; ++good) ASSERT_TRUE(counter.Next());
  }
  // (128 + 512 + 1) of 65536 are not told apart.
  EXPECT_NEAR(taken, kDamaged * 641.0 / 65536, 150);
}

// One counter for each queue of an adapter, and one path for all its QPs.
TEST(IdSequence, TwoCountersThatTakeTurnsAreBothHeardSoon) {
  Counter counter;
  counter.Learn();
  uint16_t other = 30'000;
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    refused += counter.Next() ? 0 : 1;
    refused += counter.Send(++other) ? 0 : 1;
  }
  EXPECT_LE(refused, 12);
}

TEST(IdSequence, RefusesTheOtherFragmentBit) {
  Counter counter;
  counter.Learn();
  EXPECT_FALSE(
      counter.sequence.Accept(static_cast<uint16_t>(counter.id + 1), false, counter.now_ns));
  EXPECT_TRUE(counter.Next());
}

TEST(IdSequence, LossAndLatenessAreNoDamage) {
  Counter counter;
  counter.Learn();
  EXPECT_TRUE(counter.Next(/*step=*/100));
  EXPECT_TRUE(counter.Send(static_cast<uint16_t>(counter.id - 60)));
  EXPECT_TRUE(counter.Send(counter.id));  // doubled on the way
  EXPECT_TRUE(counter.Next());
}

// Linux moves the counter on by up to one per millisecond in which nobody used it.
TEST(IdSequence, AfterAPauseTheCounterMayBeFarther) {
  Counter counter;
  counter.Learn();
  EXPECT_FALSE(counter.Next(/*step=*/1000));
  counter.now_ns += 1000 * kMs;
  EXPECT_TRUE(counter.Next(/*step=*/1000));
  EXPECT_TRUE(counter.Next());
}

TEST(IdSequence, AJumpCostsOnePacket) {
  Counter counter;
  counter.Learn();
  EXPECT_FALSE(counter.Next(/*step=*/20'000));
  EXPECT_TRUE(counter.Next());
  EXPECT_TRUE(counter.Next());
  EXPECT_FALSE(counter.Send(7)) << "and it goes on to judge";
}

TEST(IdSequence, WhoJumpsOftenIsNotJudged) {
  Counter counter;
  counter.Learn();
  int lost = 0;
  for (int i = 0; i < 1000; ++i) {
    lost += counter.Next(/*step=*/20'000) ? 0 : 1;
    lost += counter.Next() ? 0 : 1;
  }
  EXPECT_EQ(lost, 4);
}

TEST(IdSequence, WhoStopsCountingIsNotJudged) {
  Counter counter;
  counter.Learn();
  std::mt19937 random(3);
  int lost = 0;
  for (int i = 0; i < 1000; ++i) lost += counter.Send(static_cast<uint16_t>(random())) ? 0 : 1;
  EXPECT_LT(lost, 50);
}

}  // namespace
}  // namespace verbscope::soft
