// A lossy wire under real work: every packet of both devices may be dropped, reordered, duplicated
// or corrupted, and 10^5 messages of all kinds and sizes must arrive exactly once, in order, with
// every byte right; in memory and over UDP, where a packet can also be lost by itself and a corrupt
// one is one that the ICRC refuses. VERBSCOPE_SEED and VERBSCOPE_MESSAGES change the run. Budget:
// 60 s for each link.
#include <gtest/gtest.h>

#include <string>

#include "tests/soft/mixed_traffic.h"

namespace verbscope::soft {
namespace {

SoftOptions Lossy(LinkKind link, uint64_t seed) {
  SoftOptions options;
  options.link = link;
  // Without a limit of retries: over UDP a thread is often preempted in a system call, with the
  // device's lock, and on a busy machine for longer than any retries of 1 ms take. Whether the
  // traffic stands still is for RunMixedTraffic to notice.
  if (link == LinkKind::kUdp) options.profile = Profile::kRxe61;
  options.fault.drop = 0.05;
  options.fault.reorder = 0.10;
  options.fault.duplicate = 0.02;
  options.fault.corrupt = 0.02;
  options.fault.seed = seed;
  return options;
}

class FaultSoak : public testing::TestWithParam<LinkKind> {};

INSTANTIATE_TEST_SUITE_P(Links, FaultSoak, testing::Values(LinkKind::kMemory, LinkKind::kUdp),
                         [](const auto& p) { return std::string(Name(p.param)); });

TEST_P(FaultSoak, EveryMessageArrivesOnceInOrderAndWhole) {
  const uint64_t seed = Setting("VERBSCOPE_SEED", 20'260'101);
  const uint64_t messages = Setting("VERBSCOPE_MESSAGES", 100'000);
  RecordProperty("seed", std::to_string(seed));
  NoTeardownFailures report;
  const std::unique_ptr<SoftDevice> left = OpenDevice(Lossy(GetParam(), seed));
  const std::unique_ptr<SoftDevice> right = OpenDevice(Lossy(GetParam(), seed + 1));
  left->set_teardown_report(&report);
  right->set_teardown_report(&report);
  const EndOptions memory{.signal_all = true, .bytes = MixedTrafficBytes()};
  End a = MakeEnd(*left, memory);
  End b = MakeEnd(*right, memory);
  // 1 ms: longer than a packet is held back. RNR cannot happen: receives are always posted.
  ASSERT_TRUE(Connect(a, b, {.mtu = IBV_MTU_1024, .timeout = 8, .retry_cnt = 7, .rd_atomic = 8}));
  RunMixedTraffic(a, b, seed, messages);
  for (Device* device : {static_cast<Device*>(left.get()), static_cast<Device*>(right.get())}) {
    for (const char* fault : {"dropped", "reordered", "duplicated", "corrupted", "icrc_errors"}) {
      EXPECT_GT(Counter(*device, fault), messages / 1000) << fault;
    }
  }
}

}  // namespace
}  // namespace verbscope::soft
