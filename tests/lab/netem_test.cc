// Verified work over a cable that the kernel's netem spoils, as VERBSCOPE_IMPAIRMENT says: between
// soft devices in two namespaces, and between the soft device and rxe. Every message must arrive
// exactly once, in order, with every byte right. Runs in the lab (rxe_interop_suite.py, which sets
// netem up); VERBSCOPE_SEED and VERBSCOPE_MESSAGES change a run.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/lab/interop_pair.h"
#include "tests/soft/mixed_traffic.h"

namespace verbscope::soft {
namespace {

constexpr uint8_t kTimeout = 8;  // 1 ms; rxe waits whole jiffies, 4 to 8 ms

class Netem : public testing::Test {
 protected:
  void Run(Party one, Party two) {
    const uint64_t messages = Setting("VERBSCOPE_MESSAGES", 20'000);
    ASSERT_TRUE(one.device != nullptr && two.device != nullptr);
    one.device->set_teardown_report(&report_);
    two.device->set_teardown_report(&report_);
    const uint64_t seed = Setting("VERBSCOPE_SEED", 20'260'202);
    const EndOptions memory{.signal_all = true, .bytes = MixedTrafficBytes()};
    End a = MakeEnd(*one.device, memory);
    End b = MakeEnd(*two.device, memory);
    ASSERT_TRUE(ConnectParties(
        one, a, two, b, {.timeout = kTimeout, .retry_cnt = 7, .rnr_retry = 7, .rd_atomic = 8}));
    RunMixedTraffic(a, b, seed, messages);
    ExpectSpoiled(*one.device, messages);
  }

  // A cable that did not do what it was told would prove nothing.
  static void ExpectSpoiled(Device& soft, uint64_t messages) {
    const char* impairment = std::getenv("VERBSCOPE_IMPAIRMENT");
    ASSERT_NE(impairment, nullptr);
    std::string said = "#";
    for (const auto& [name, value] : soft.ReadCounters(1)) {
      if (value > 0) said += " " + name + " " + std::to_string(value);
    }
    std::puts(said.c_str());
    const uint64_t few = messages / 1000;
    const std::string_view what = impairment;
    if (what == "reorder") {
      EXPECT_GT(Counter(soft, "out_of_seq_request"), few);
    } else if (what == "duplicate") {
      EXPECT_GT(Counter(soft, "duplicate_request"), few);
      EXPECT_GT(Counter(soft, "unexpected_response"), few);
    } else {
      EXPECT_GT(Counter(soft, "completer_retry_err"), few);
    }
  }

 private:
  NoTeardownFailures report_;
};

TEST_F(Netem, MixedTrafficOfTwoSoftDevices) {
  Run(OpenSoft("left", "10.9.1.1", Tireless()), OpenSoft("right", "10.9.1.2", Tireless()));
}

TEST_F(Netem, MixedTrafficWithRxe) {
  Run(OpenSoft("peer", "10.9.0.2", Tireless()), OpenRxe("10.9.0.1"));
}

}  // namespace
}  // namespace verbscope::soft
