// Random work over a bad channel in virtual time. Whatever the channel does, memory and completions
// are those of a plain execution in posting order (random_party.h); with faults injected, every
// request is still answered for exactly once and no byte changes that was not granted.
//
// VERBSCOPE_SEED repeats a run, VERBSCOPE_STEPS sets its length (a step: one post, receive, poll,
// or packet or timer).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "transports/soft/engine/random_party.h"

namespace verbscope::soft::testing {
namespace {

constexpr uint64_t kStepsPerWorld = 10'000;
constexpr uint64_t kStepsWithoutEnd = 2'000'000;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

// How bad the channel is. Where retries are for ever (rxe 6.1), as bad as can be.
ChannelOptions RandomChannel(std::mt19937_64& random, bool endless_retries) {
  const uint32_t worst = endless_retries ? 120 : 12;
  const auto up_to = [&random](uint32_t most) {
    return static_cast<uint32_t>(random() % (most + 1));
  };
  ChannelOptions channel;
  if (random() % 4 == 0) return channel;
  channel.lost_per_mille = up_to(worst);
  channel.doubled_per_mille = up_to(worst);
  channel.delayed_per_mille = up_to(worst);
  channel.refused_per_mille = up_to(100);
  if (random() % 2 == 0) channel.room = 1 + random() % 40;
  return channel;
}

ConnectOptions RandomOptions(std::mt19937_64& random) {
  static constexpr std::array<uint32_t, 3> kWindows = {128, 20, 3};
  ConnectOptions options;
  options.profile = random() % 2 == 0 ? Profile::kIbta : Profile::kRxe61;
  options.channel = RandomChannel(random, options.profile == Profile::kRxe61);
  options.seed = random();
  options.window_packets = kWindows[random() % kWindows.size()];
  options.mtu = static_cast<ibv_mtu>(IBV_MTU_256 + random() % 5);
  options.psn = (0xfffff0 + random() % 64) & 0xffffff;
  options.timeout = 5;  // 131 us
  options.acks_unasked = random() % 2 == 0;
  if (options.acks_unasked) options.timeout = 13;
  options.rd_atomic = static_cast<uint8_t>(1 + random() % 8);
  options.cap.max_send_wr = static_cast<uint32_t>(2 + random() % 40);
  options.signal_all = random() % 4 == 0;
  options.use_srq = random() % 2 == 0;
  return options;
}

// Some connections between two engines, driven at random.
class RandomWorld {
 public:
  RandomWorld(std::mt19937_64& random, uint32_t faulty_per_mille)
      : options_(RandomOptions(random)),
        world_({.profile = options_.profile, .window_packets = options_.window_packets},
               options_.channel, options_.seed) {
    world_.keep_log = false;
    const size_t pairs = 1 + random() % 4;
    for (size_t i = 0; i < 2 * pairs; ++i) {
      parties_.push_back(std::make_unique<RandomParty>(i % 2 == 0 ? world_.a : world_.b, options_,
                                                       faulty_per_mille));
    }
    for (size_t i = 0; i < parties_.size(); ++i) {
      parties_[i]->endpoint.Connect(Peer(i).endpoint, options_);
    }
  }

  void Drive(uint64_t steps) {
    for (uint64_t i = 0; i < steps; ++i, ++steps_) {
      const size_t at = world_.random() % parties_.size();
      const uint64_t choice = world_.random() % 100;
      if (choice < 15) {
        parties_[at]->Post(Peer(at));
      } else if (choice < 30) {
        parties_[at]->Receive();
      } else if (choice < 45) {
        parties_[at]->Poll();
      } else {
        world_.Step();
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

  // Until every request is answered for.
  void Finish() {
    for (size_t i = 0; i < parties_.size(); ++i) {
      while (parties_[i]->full() && steps_ < kStepsWithoutEnd) StepAndServe();
      parties_[i]->PostClosing(Peer(i));
    }
    const auto idle = [](const auto& party) { return party->Idle(); };
    while (!std::ranges::all_of(parties_, idle) && steps_ < kStepsWithoutEnd &&
           !::testing::Test::HasFatalFailure()) {
      StepAndServe();
    }
    for (const auto& party : parties_) {
      EXPECT_TRUE(party->Idle()) << "work is stuck";
      party->ExpectMemoryIsTheModel();
      party->ExpectOnlyGrantedBytesChanged();
    }
  }

  // The connections broken and nothing of them left on the way.
  void Break() {
    for (int i = 0; i < 2000; ++i, ++steps_) world_.Step();
    for (const auto& party : parties_) party->Break();
    while (world_.OnTheWay(0) + world_.OnTheWay(1) > 0) world_.Step();
    for (const auto& party : parties_) {
      EXPECT_EQ(party->endpoint.state(), IBV_QPS_ERR);
      for (int i = 0; i < 200; ++i) party->Poll();
      EXPECT_TRUE(party->SendsAnswered());
      EXPECT_TRUE(party->AllReceivesBack());
      party->ExpectOnlyGrantedBytesChanged();
    }
    for (size_t i = 0; i < parties_.size(); ++i) parties_[i]->Reconnect(Peer(i), options_);
  }

  uint64_t steps() const { return steps_; }

 private:
  RandomParty& Peer(size_t index) { return *parties_[index ^ 1]; }
  void StepAndServe() {
    world_.Step();
    ++steps_;
    for (const auto& party : parties_) {
      party->Poll();
      if (party->wants_receives()) party->Receive();
    }
  }

  const ConnectOptions options_;
  World world_;
  std::vector<std::unique_ptr<RandomParty>> parties_;
  uint64_t steps_ = 0;
};

class EnginePropertyTest : public ::testing::Test {
 protected:
  void SetUp() override { RecordProperty("seed", std::to_string(seed_)); }
  void TearDown() override {
    if (HasFailure())
      std::fprintf(stderr, "VERBSCOPE_SEED=%llu\n", static_cast<unsigned long long>(seed_));
  }

  const uint64_t seed_ = FromEnvironment("VERBSCOPE_SEED", 1);
  const uint64_t steps_ = FromEnvironment("VERBSCOPE_STEPS", 4'000'000);
  std::mt19937_64 random_{seed_};
};

TEST_F(EnginePropertyTest, ABadChannelChangesNothingButTime) {
  for (uint64_t done = 0; done < steps_ && !HasFailure();) {
    RandomWorld world(random_, /*faulty_per_mille=*/0);
    world.Drive(kStepsPerWorld);
    world.Finish();
    done += world.steps();
  }
}

TEST_F(EnginePropertyTest, FaultsAreAnsweredForOnceAndChangeNothingElse) {
  for (uint64_t done = 0; done < steps_ && !HasFailure();) {
    RandomWorld world(random_, /*faulty_per_mille=*/5);
    for (int round = 0; round < 10 && !HasFailure(); ++round) {
      world.Drive(1000);
      world.Break();
    }
    done += world.steps();
  }
}

}  // namespace
}  // namespace verbscope::soft::testing
