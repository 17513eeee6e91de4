// Peers over UDP that are killed: nobody tells the survivor, so its requests must end by
// themselves, and the address must be good for the next process. Also where several processes share
// it: those that live go on as if nothing had happened.
#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "transports/soft/device/peer_process.h"
#include "transports/soft/options/parse.h"

namespace verbscope::soft {
namespace {

// An address that no other test uses at the same time.
std::string OwnAddress() {
  const auto process = static_cast<unsigned>(::getpid());
  return fmt::format("127.{}.{}.7", 64 + process / 256 % 128, process % 256);
}

std::unique_ptr<SoftDevice> OpenByString(const std::string& text) {
  const Expected<SoftOptions> options = ParseDeviceString(text, {});
  EXPECT_TRUE(options) << options.error().ToText();
  return options ? OpenDevice(*options) : nullptr;
}

class UdpProcessesTest : public testing::Test {
 protected:
  // Both ends in RTS, the child sending.
  static void Introduce(Child& child, End& end, Card& peer, const ConnectOptions& options) {
    const std::optional<Card> card = ReceiveCard(child.socket());
    ASSERT_TRUE(card) << "the other process did not open its device";
    peer = *card;
    const Status connected = ConnectTo(end, peer, options);
    ASSERT_TRUE(connected) << connected.error().ToText();
    ASSERT_TRUE(SendCard(child.socket(), CardOf(end)));
    ASSERT_TRUE(child.WaitReady());
  }
  static void ExpectGivesUp(End& end, const Card& peer) {
    const ibv_wc_status status = Exchange(end, peer, UINT64_MAX);
    EXPECT_TRUE(status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_WR_FLUSH_ERR) << status;
    EXPECT_EQ(StateOf(end), IBV_QPS_ERR);
  }
};

TEST_F(UdpProcessesTest, APeerThatIsKilledEndsInRetryExceededAndItsAddressIsFree) {
  NoTeardownFailures report;
  const auto device = OpenByString("soft:link=udp");
  ASSERT_NE(device, nullptr);
  device->set_teardown_report(&report);
  const std::string theirs = "soft:link=udp,addr=" + OwnAddress();
  // Each takes the address of the one before.
  for (const uint64_t completions : {0, 1, 50, 1000}) {
    SCOPED_TRACE(completions);
    Child child(theirs);
    End end = MakeEndFor(*device);
    Card peer;
    ASSERT_NO_FATAL_FAILURE(Introduce(child, end, peer, kPatient));
    if (completions > 0) {
      EXPECT_EQ(Exchange(end, peer, completions), IBV_WC_SUCCESS);
    }
    child.Kill();
    ExpectGivesUp(end, peer);
  }
  EXPECT_GT(Counter(*device, "retry_exceeded_err"), 0U);
}

TEST_F(UdpProcessesTest, ASleeperHearsOfThePeersDeath) {
  const auto device = OpenByString("soft:link=udp");
  ASSERT_NE(device, nullptr);
  Child child("soft:link=udp");
  End end = MakeEnd(*device, {.cqe = 256, .channel = true, .one_cq = true});
  Card peer;
  ASSERT_NO_FATAL_FAILURE(Introduce(child, end, peer, kPatient));
  child.Kill();
  ASSERT_EQ(Post(end, WorkTo(end, peer, 1)), 0);
  ibv_wc wc = {};
  for (;;) {
    ASSERT_EQ(ibv_req_notify_cq(end.send_cq, 0), 0);
    if (ibv_poll_cq(end.send_cq, 1, &wc) == 1) break;
    ASSERT_TRUE(Readable(end.channel->fd, std::chrono::seconds(20)));
    const Expected<ibv_cq*> event = device->GetCqEvent(end.channel.get());
    ASSERT_TRUE(event && *event != nullptr);
    device->AckCqEvents(*event, 1);
  }
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
}

// Three processes with one address. One dies; the parameter says whether it is the one that lets
// others in.
class SharedAddressTest : public UdpProcessesTest, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(, SharedAddressTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "TheKeeper" : "AMember"; });

TEST_P(SharedAddressTest, OneIsKilledAndTheOthersGoOn) {
  NoTeardownFailures report;
  const std::string shared = "soft:link=udp,addr=" + OwnAddress();
  std::unique_ptr<SoftDevice> device;
  if (!GetParam()) device = OpenByString(shared);  // the first is the keeper
  Child victim(shared);
  const std::optional<Card> victim_card = ReceiveCard(victim.socket());
  ASSERT_TRUE(victim_card);
  if (GetParam()) device = OpenByString(shared);
  ASSERT_NE(device, nullptr);
  device->set_teardown_report(&report);
  Child other(shared);
  End to_other = MakeEndFor(*device);
  Card other_card;
  ASSERT_NO_FATAL_FAILURE(Introduce(other, to_other, other_card, kSteady));
  End to_victim = MakeEndFor(*device);
  ASSERT_TRUE(ConnectTo(to_victim, *victim_card, kPatient));
  ASSERT_TRUE(SendCard(victim.socket(), CardOf(to_victim)));
  ASSERT_TRUE(victim.WaitReady());

  std::atomic<bool> stop = false;
  ibv_wc_status undisturbed = IBV_WC_GENERAL_ERR;
  std::thread traffic([&] { undisturbed = Exchange(to_other, other_card, UINT64_MAX, &stop); });
  EXPECT_EQ(Exchange(to_victim, *victim_card, 200), IBV_WC_SUCCESS);
  victim.Kill();
  ExpectGivesUp(to_victim, *victim_card);

  // The next to come finds a place, while the others still work.
  Child next(shared);
  End to_next = MakeEndFor(*device);
  Card next_card;
  EXPECT_NO_FATAL_FAILURE(Introduce(next, to_next, next_card, kSteady));
  if (!HasFatalFailure()) {
    EXPECT_EQ(Exchange(to_next, next_card, 200), IBV_WC_SUCCESS);
  }
  stop = true;
  traffic.join();
  EXPECT_EQ(undisturbed, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace verbscope::soft

int main(int argc, char** argv) {
  if (verbscope::soft::RunAsPeer(argc, argv)) return 0;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
