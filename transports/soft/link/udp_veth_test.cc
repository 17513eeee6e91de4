// Packets between two network namespaces: over an interface that is not the loopback one, with an
// MTU of 1500 and neighbours that have to be found first.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "transports/soft/link/udp_test_support.h"

namespace verbscope::soft {
namespace {

FileDescriptor ThisNetwork() {
  return FileDescriptor(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
}

// Runs ip(8) in a namespace.
bool Ip(const FileDescriptor& network, const std::string& arguments) {
  std::istringstream words("ip " + arguments);
  std::vector<std::string> parts;
  for (std::string word; words >> word;) parts.push_back(word);
  std::vector<char*> argv;
  for (std::string& part : parts) argv.push_back(part.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setns(network.get(), CLONE_NEWNET) == 0) ::execvp("ip", argv.data());
    ::_exit(127);
  }
  int status = -1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

// Two namespaces, joined by a pair of interfaces. Sockets stay in that they were made in.
class UdpVethTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!kInOwnNetwork) GTEST_SKIP() << "no own network namespace";
    here_ = ThisNetwork();
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
    there_ = ThisNetwork();
    // A process number names the namespace that its process is in: now the other one.
    const std::string there = std::to_string(::getpid());
    const bool made = Ip(here_, "link add va type veth peer name vb netns " + there);
    if (!made) {
      Enter(here_);
      GTEST_SKIP() << "no ip(8), or no veth interfaces in this kernel";
    }
    EXPECT_TRUE(Ip(here_, "addr add 10.91.0.1/24 dev va"));
    EXPECT_TRUE(Ip(here_, "addr add fd91::1/64 dev va nodad"));
    EXPECT_TRUE(Ip(here_, "link set va up"));
    EXPECT_TRUE(Ip(there_, "addr add 10.91.0.2/24 dev vb"));
    EXPECT_TRUE(Ip(there_, "addr add fd91::2/64 dev vb nodad"));
    EXPECT_TRUE(Ip(there_, "link set vb up"));
    b_ = std::make_unique<UdpPeer>(Address(2));
    Enter(here_);
    a_ = std::make_unique<UdpPeer>(Address(1));
    to_b_ = a_->ConnectTo(*b_);
    Enter(there_);
    to_a_ = b_->ConnectTo(*a_);
    Enter(here_);
  }
  void TearDown() override {
    if (a_ != nullptr) Ip(here_, "link del va");
    if (here_) Enter(here_);
  }

  static LocalAddress Address(uint8_t last) {
    if (GetParam()) return LocalAddress::Ipv4(10, 91, 0, last);
    LocalAddress address;
    address.gid = {0xfd, 0x91};
    address.gid[15] = last;
    return address;
  }
  static void Enter(const FileDescriptor& network) {
    EXPECT_EQ(::setns(network.get(), CLONE_NEWNET), 0);
  }

  FileDescriptor here_;
  FileDescriptor there_;
  std::unique_ptr<UdpPeer> a_;
  std::unique_ptr<UdpPeer> b_;
  PathId to_b_ = kNoPath;
  PathId to_a_ = kNoPath;
};

INSTANTIATE_TEST_SUITE_P(Families, UdpVethTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "IPv4" : "IPv6"; });

TEST_P(UdpVethTest, BurstsArriveFullyProven) {
  EXPECT_EQ(a_->link->Report(to_b_).netdev, "va");
  EXPECT_EQ(a_->link->Report(to_b_).interface_mtu_bytes, 1500U);
  EXPECT_TRUE(a_->link->Report(to_b_).bursts);
  ASSERT_TRUE(a_->SendAndFlush(to_b_, SendHeader(0, 0)));  // finds the neighbour
  ASSERT_TRUE(b_->PollFor(1));
  constexpr uint32_t kPackets = 128;
  for (uint32_t i = 1; i <= kPackets; ++i) {
    ASSERT_TRUE(a_->SendOne(to_b_, SendHeader(i, 1024), Pattern(1024, i)));
  }
  a_->Flush();
  EXPECT_GT(a_->link->counts().bursts, 0U);
  ASSERT_TRUE(b_->PollFor(1 + kPackets)) << b_->received.packets.size();
  for (uint32_t i = 1; i <= kPackets; ++i) {
    ASSERT_EQ(b_->received.packets[i].header.psn, i);
    ASSERT_EQ(b_->received.packets[i].payload, Pattern(1024, i));
  }
  EXPECT_EQ(b_->link->proof(to_a_), IcrcProof::kFull);
  EXPECT_EQ(b_->counters.icrc_errors, 0U);
  ASSERT_TRUE(b_->SendAndFlush(to_a_, SendHeader(7, 4), Pattern(4, 7)));
  EXPECT_TRUE(a_->PollFor(1));
}

TEST_P(UdpVethTest, PacketsBeyondTheMtuAreCountedAndNotFragmented) {
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(a_->SendOne(to_b_, SendHeader(i, 2048), Pattern(2048, i)));
  }
  a_->SendAndFlush(to_b_, SendHeader(9, 1024), Pattern(1024, 9));
  EXPECT_EQ(a_->counters.send_err, 3U);
  EXPECT_EQ(a_->link->counts().last_send_errno, EMSGSIZE);
  ASSERT_TRUE(b_->PollFor(1));
  EXPECT_EQ(b_->received.packets[0].header.psn, 9U);
}

// An adapter may number the IPv4 IDs of a burst as it likes.
TEST_P(UdpVethTest, BurstsOnIpv4OnlyWhereTheKernelTakesThemApart) {
  if (!Ip(here_, "link add dx type ifb") && !Ip(here_, "link add dx type dummy")) {
    GTEST_SKIP() << "neither ifb nor dummy interfaces in this kernel";
  }
  EXPECT_TRUE(
      Ip(here_, GetParam() ? "addr add 10.92.0.1/24 dev dx" : "addr add fd92::1/64 dev dx nodad"));
  EXPECT_TRUE(Ip(here_, "link set dx up"));
  LocalAddress local = Address(1);
  LocalAddress peer = Address(2);
  local.gid[GetParam() ? 13 : 1] = peer.gid[GetParam() ? 13 : 1] = GetParam() ? 92 : 0x92;
  for (const UdpGso gso : {UdpGso::kAuto, UdpGso::kOn, UdpGso::kOff}) {
    UdpPeer link(local, gso);
    const UdpPathReport report = link.link->Report(link.ConnectTo(peer));
    EXPECT_EQ(report.netdev, "dx");
    EXPECT_EQ(report.bursts, gso == UdpGso::kOn || (gso == UdpGso::kAuto && !GetParam()));
  }
  EXPECT_TRUE(Ip(here_, "link del dx"));
}

// A host that is not there delays nothing: its packets wait for its address, not in the batch.
TEST_P(UdpVethTest, AbsentNeighbourDoesNotHoldUpOthers) {
  const PathId nobody = a_->ConnectTo(Address(77), /*port=*/0xc222);
  for (uint32_t i = 0; i < 300; ++i) {
    EXPECT_TRUE(a_->SendOne(nobody, SendHeader(i, 1024), Pattern(1024, i)));
  }
  a_->Flush();
  ASSERT_TRUE(a_->SendAndFlush(to_b_, SendHeader(5, 64), Pattern(64, 5)));
  EXPECT_TRUE(b_->PollFor(1));
}

// Packets for a neighbour that is still being looked for fill the socket's buffer.
TEST_P(UdpVethTest, FullSocketKeepsPacketsUntilThereIsRoom) {
  if (!GetParam()) GTEST_SKIP() << "the same for both families";
  // More than the buffer: else the kernel drops the oldest instead.
  std::ofstream limit("/proc/sys/net/ipv4/neigh/va/unres_qlen_bytes");
  limit << 100'000'000 << std::flush;
  if (!limit) GTEST_SKIP() << "no access to /proc/sys";
  a_.reset();
  UdpPeer small({Address(1)}, UdpGso::kAuto, /*buffer_bytes=*/1);
  const PathId path = small.ConnectTo(Address(77));
  uint32_t sent = 0;
  while (sent < 10000 && small.SendOne(path, SendHeader(sent, 1024), Pattern(1024, 1))) ++sent;
  small.Flush();
  ASSERT_LT(sent, 10000U);
  EXPECT_FALSE(small.link->CanSend(path));
  EXPECT_GT(small.link->counts().blocked, 0U);
  {
    DeviceLockHolder hold(small.lock);
    ASSERT_TRUE(small.link->PrepareSleep());
  }
  pollfd waiting = {.fd = small.link->wait_fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
  ASSERT_TRUE(Ip(here_, "neigh replace 10.91.0.77 lladdr 02:00:00:00:00:77 dev va"));
  EXPECT_EQ(::poll(&waiting, 1, Soon().PollTimeoutMs()), 1);
  {
    DeviceLockHolder hold(small.lock);
    small.link->Awake();
  }
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
  EXPECT_TRUE(small.PollUntil([&] { return small.link->CanSend(path); }));
  EXPECT_EQ(small.counters.send_err, 0U);
  Ip(here_, "link del va");
}

}  // namespace
}  // namespace verbscope::soft
