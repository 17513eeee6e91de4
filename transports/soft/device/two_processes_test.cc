// A peer in another process that is killed at a random moment: the survivor hears of it in its
// completions and loses nothing of its own, however often it happens. VERBSCOPE_KILLS sets how
// often.
#include <dirent.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "transports/soft/device/link_blob.h"
#include "transports/soft/device/peer_process.h"
#include "transports/soft/link/rendezvous_messages.h"

namespace verbscope::soft {
namespace {

// What a leak of this process would add to.
struct Footprint {
  size_t descriptors = 0;
  size_t threads = 0;
  size_t shared_mappings = 0;
  bool Within(const Footprint& other) const {
    return descriptors <= other.descriptors && threads <= other.threads &&
           shared_mappings <= other.shared_mappings;
  }
};

size_t EntriesOf(const char* folder) {
  size_t count = 0;
  DIR* dir = ::opendir(folder);
  while (dir != nullptr && ::readdir(dir) != nullptr) ++count;
  ::closedir(dir);
  return count;
}

size_t LinesWith(const char* path, std::string_view text) {
  std::ifstream file(path);
  size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find(text) != std::string::npos) ++count;
  }
  return count;
}

Footprint Measure() {
  return {.descriptors = EntriesOf("/proc/self/fd"),
          .threads = EntriesOf("/proc/self/task"),
          .shared_mappings = LinesWith("/proc/self/maps", "memfd:")};
}

std::ostream& operator<<(std::ostream& out, const Footprint& footprint) {
  return out << footprint.descriptors << " descriptors, " << footprint.threads << " threads, "
             << footprint.shared_mappings << " shared mappings";
}

int Rounds() {
  const char* text = std::getenv("VERBSCOPE_KILLS");
  return text != nullptr ? std::atoi(text) : 100;
}

class TwoProcessesTest : public testing::Test {
 protected:
  enum Moment { kAfterSpawn, kAfterItsCard, kAfterOurCard, kWhenReady, kInTraffic };

  // One peer that dies at `moment`, in traffic after `completions`.
  void KillOne(SoftDevice& device, Moment moment, uint64_t completions) {
    Child child;
    if (moment == kAfterSpawn) return;
    const std::optional<Card> peer = ReceiveCard(child.socket());
    ASSERT_TRUE(peer);
    if (moment == kAfterItsCard) child.Kill();
    End end = MakeEndFor(device);
    const Status connected = ConnectTo(end, *peer, kImpatient);
    if (moment == kAfterItsCard) {
      ASSERT_FALSE(connected);
      EXPECT_EQ(connected.error().error_class, ErrorClass::kSetup);
      ExpectSocketGone(*peer);
      return;
    }
    ASSERT_TRUE(connected) << connected.error().ToText();
    ASSERT_TRUE(SendCard(child.socket(), CardOf(end)));
    if (moment >= kWhenReady) {
      ASSERT_TRUE(child.WaitReady());
    }
    if (moment == kInTraffic) {
      EXPECT_EQ(Exchange(end, *peer, completions), IBV_WC_SUCCESS);
    }
    child.Kill();
    ExpectSocketGone(*peer);
    const ibv_wc_status end_status = Exchange(end, *peer, UINT64_MAX);
    EXPECT_TRUE(end_status == IBV_WC_RETRY_EXC_ERR || end_status == IBV_WC_WR_FLUSH_ERR)
        << end_status;
    EXPECT_EQ(StateOf(end), IBV_QPS_ERR);
  }
  static void ExpectSocketGone(const Card& peer) {
    const auto links = ParseLinkBlob(std::span(peer.blob.data(), peer.blob_bytes));
    ASSERT_TRUE(links);
    const auto there = ParseBlob(links->memory);
    ASSERT_TRUE(there);
    EXPECT_EQ(LinesWith("/proc/net/unix", SocketName(there->nonce)), 0U);
  }
};

TEST_F(TwoProcessesTest, APeerThatIsKilledLeavesNothingBehind) {
  NoTeardownFailures report;
  const auto device = OpenDevice({});
  device->set_teardown_report(&report);
  KillOne(*device, kInTraffic, 10);
  // The helper lets go of what belonged to the dead.
  Footprint before = Measure();
  AwaitUntil([&] { return (before = Measure()).shared_mappings == 0; });
  std::minstd_rand random(7);
  for (int i = 0; i < Rounds() && !HasFailure(); ++i) {
    // Most of them in the middle of traffic.
    const auto moment = static_cast<Moment>(std::min<uint64_t>(random() % 12, kInTraffic));
    KillOne(*device, moment, random() % 300);
  }
  EXPECT_TRUE(AwaitUntil([&] { return Measure().Within(before); }))
      << "before: " << before << "; after: " << Measure();
  // And the device is as good as ever.
  Child child;
  const std::optional<Card> peer = ReceiveCard(child.socket());
  ASSERT_TRUE(peer);
  End end = MakeEndFor(*device);
  ASSERT_TRUE(ConnectTo(end, *peer, kImpatient));
  ASSERT_TRUE(SendCard(child.socket(), CardOf(end)));
  ASSERT_TRUE(child.WaitReady());
  EXPECT_EQ(Exchange(end, *peer, 500), IBV_WC_SUCCESS);
}

TEST_F(TwoProcessesTest, ASleeperIsWokenByTheEndOfItsPeer) {
  const auto device = OpenDevice({});
  Child child;
  const std::optional<Card> peer = ReceiveCard(child.socket());
  ASSERT_TRUE(peer);
  End end = MakeEnd(*device, {.cqe = 256, .channel = true, .one_cq = true});
  ASSERT_TRUE(ConnectTo(end, *peer, kImpatient));
  ASSERT_TRUE(SendCard(child.socket(), CardOf(end)));
  ASSERT_TRUE(child.WaitReady());
  child.Kill();
  ASSERT_EQ(ibv_req_notify_cq(end.send_cq, 0), 0);
  ASSERT_EQ(Post(end, WorkTo(end, *peer, 1)), 0);
  ibv_wc wc = {};
  while (ibv_poll_cq(end.send_cq, 1, &wc) != 1) {
    const Expected<ibv_cq*> event = device->GetCqEvent(end.channel.get());
    ASSERT_TRUE(event && *event != nullptr);
    device->AckCqEvents(*event, 1);
  }
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
}

}  // namespace
}  // namespace verbscope::soft

int main(int argc, char** argv) {
  if (verbscope::soft::RunAsPeer(argc, argv)) return 0;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
