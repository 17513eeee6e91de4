// Several members within one process: real sockets on loopback addresses, port 4791.
#include "transports/soft/link/port_sharing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "transports/soft/link/port_sharing_test_support.h"

namespace verbscope::soft {
namespace {

size_t OpenFds() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

class PortSharingTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      [[maybe_unused]] static const bool moved = MoveToOwnNetwork();
      address = Ipv6Loopback();
      const Expected<BoundSocket> probe = BindAlone(address);
      if (!probe) GTEST_SKIP() << "no ::1 for this test: " << probe.error().ToText();
    } else {
      address = FreshLoopback();
    }
  }
  LocalAddress address;
};

INSTANTIATE_TEST_SUITE_P(Families, PortSharingTest, ::testing::Values(false, true),
                         [](const auto& instance) {
                           return std::string(instance.param ? "Ipv6" : "Ipv4");
                         });

TEST_P(PortSharingTest, PacketsGoToTheOwnerOfTheirQpn) {
  Sharers sharers(address);
  std::set<uint8_t> tags;
  for (int i = 0; i < 6; ++i) {
    PortSharing* member = sharers.Join();
    ASSERT_NE(member, nullptr);
    EXPECT_NE(member->tag(), 0);
    EXPECT_TRUE(tags.insert(member->tag()).second);
    EXPECT_TRUE(member->Mine(uint32_t{member->tag()} << 16 | 77));
    EXPECT_FALSE(member->Mine((member->tag() + 1U) << 16 | 77));
    EXPECT_FALSE(member->Mine(1));
    sharers.ExpectExactDelivery();
  }
  EXPECT_EQ(sharers.members[0]->counts().admitted, 5U);
}

TEST_P(PortSharingTest, MembersLeaveInAnyOrder) {
  // Positions of those who leave, of five: the keeper, the middle, the last, all but one.
  const std::vector<std::vector<size_t>> orders = {
      {0}, {2}, {4}, {0, 0, 0, 0}, {4, 3, 2, 1}, {2, 0, 1}, {1, 3, 0, 0}};
  for (const std::vector<size_t>& order : orders) {
    Sharers sharers(address);
    for (int i = 0; i < 5; ++i) ASSERT_NE(sharers.Join(), nullptr);
    for (const size_t leaver : order) {
      sharers.Leave(leaver);
      sharers.ExpectExactDelivery();  // at once: nobody has been served yet
      ASSERT_TRUE(sharers.Settle());
      sharers.ExpectExactDelivery();
    }
    for (int i = 0; i < 3; ++i) ASSERT_NE(sharers.Join(), nullptr);
    sharers.ExpectExactDelivery();
  }
}

TEST_P(PortSharingTest, WhoLeavesLeavesNothingBehind) {
  Sharers sharers(address);
  ASSERT_NE(sharers.Join(), nullptr);
  ASSERT_NE(sharers.Join(), nullptr);
  ASSERT_NE(sharers.Join(), nullptr);
  const size_t fds = OpenFds();
  std::set<uint8_t> tags;
  for (int i = 0; i < 30; ++i) {
    sharers.Leave(2);
    PortSharing* member = sharers.Join();
    ASSERT_NE(member, nullptr);
    EXPECT_TRUE(tags.insert(member->tag()).second) << "a tag comes back too soon";
  }
  EXPECT_TRUE(sharers.ServeUntil([&] { return OpenFds() <= fds; })) << OpenFds() << " of " << fds;
  sharers.members.clear();
  const Expected<BoundSocket> alone = BindAlone(address);
  EXPECT_TRUE(alone) << alone.error().ToText();
}

TEST_P(PortSharingTest, PacketsForNobodyComeToOneMember) {
  Sharers sharers(address);
  for (int i = 0; i < 3; ++i) ASSERT_NE(sharers.Join(), nullptr);
  for (const uint32_t qpn : {1U, 0xff0001U, 0x000010U}) {
    SendTo(address, qpn);
    EXPECT_TRUE(Readable(sharers.members[0]->fd(), TestDeadline()));
    EXPECT_TRUE(ReceiveNow(sharers.members[0]->fd()));
  }
  for (const auto& member : sharers.members) EXPECT_FALSE(ReceiveNow(member->fd()));
}

TEST(PortSharing, NextOwnerOfASocketSeesNoPacketOfTheLast) {
  const LocalAddress address = FreshLoopback();
  Sharers sharers(address);
  ASSERT_NE(sharers.Join(), nullptr);
  ASSERT_NE(sharers.Join(), nullptr);
  const uint32_t old_qpn = uint32_t{sharers.members[1]->tag()} << 16 | 5;
  SendTo(address, old_qpn);  // stays in the queue
  sharers.Leave(1);
  SendTo(address, old_qpn);  // comes after death, before anybody knows
  PortSharing* next = sharers.Join();
  ASSERT_NE(next, nullptr);
  EXPECT_FALSE(next->Mine(old_qpn));
  SendTo(address, old_qpn);  // now nobody's
  EXPECT_TRUE(ReceiveNow(sharers.members[0]->fd()));
  EXPECT_FALSE(ReceiveNow(next->fd()));
  sharers.ExpectExactDelivery();
}

TEST(PortSharing, KeeperThatDoesNotServeGivesAnErrorInTime) {
  const LocalAddress address = FreshLoopback();
  Sharers sharers(address);
  ASSERT_NE(sharers.Join(), nullptr);
  const auto start = std::chrono::steady_clock::now();
  const auto joined = PortSharing::Join(address, Deadline::After(std::chrono::milliseconds(50)));
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().error_class, ErrorClass::kDeadline);
  EXPECT_NE(joined.error().message.find(std::to_string(::getpid())), std::string::npos)
      << joined.error().ToText();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  ASSERT_NE(sharers.Join(), nullptr);  // the one who gave up is in nobody's way
  sharers.ExpectExactDelivery();
}

TEST(PortSharing, AddressOfAnotherHostIsNamedAsSuch) {
  const Expected<LocalAddress> address = ParseLocalAddress("203.0.113.77");
  ASSERT_TRUE(address);
  const auto joined = PortSharing::Join(*address, TestDeadline());
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().errno_value, EADDRNOTAVAIL);
  EXPECT_NE(joined.error().next_step.find("127.0.0.1"), std::string::npos);
}

TEST(PortSharing, AnotherProgramOnThePortIsAnError) {
  const LocalAddress address = FreshLoopback();
  const Expected<BoundSocket> other = BindAlone(address);
  ASSERT_TRUE(other);
  const auto joined = PortSharing::Join(address, Deadline::After(std::chrono::milliseconds(50)));
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().errno_value, EADDRINUSE) << joined.error().ToText();
  EXPECT_NE(joined.error().cause.find("another program"), std::string::npos);
}

// A program that joins the kernel's group by itself makes the order unknown to us.
TEST(PortSharing, StrangerInTheGroupKeepsNewcomersOut) {
  const LocalAddress address = FreshLoopback();
  Sharers sharers(address);
  ASSERT_NE(sharers.Join(), nullptr);
  {
    const Expected<FileDescriptor> stranger = BindShared(address);
    ASSERT_TRUE(stranger);
    std::atomic<bool> done = false;
    std::thread joiner([&] {
      EXPECT_FALSE(PortSharing::Join(address, Deadline::After(std::chrono::milliseconds(50))));
      done = true;
    });
    EXPECT_TRUE(sharers.ServeUntil([&] { return done.load(); }));
    joiner.join();
  }
  ASSERT_NE(sharers.Join(), nullptr);
  sharers.ExpectExactDelivery();
}

class MalformedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 3; ++i) ASSERT_NE(sharers.Join(), nullptr);
  }
  FileDescriptor Connect() {
    auto socket = ConnectAbstract(KeeperName(::geteuid(), address), TestDeadline());
    EXPECT_TRUE(socket) << socket.error().ToText();
    return socket ? std::move(*socket) : FileDescriptor();
  }
  // Whether the keeper ends the connection after `bytes`.
  bool Ends(std::span<const std::byte> bytes, std::span<const int> fds = {}) {
    const FileDescriptor socket = Connect();
    EXPECT_TRUE(SendRecord(socket.get(), bytes, fds));
    return sharers.ServeUntil(
        [&] { return ReceiveRecord(socket.get()).kind == Record::Kind::kEnd; });
  }
  bool Ends(const SharingMessage& message, std::span<const int> fds = {}) {
    return Ends(EncodeSharingMessage(message), fds);
  }

  const LocalAddress address = FreshLoopback();
  Sharers sharers{address};
};

TEST_F(MalformedTest, ChangesNothing) {
  using Kind = SharingMessage::Kind;
  const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<int> one = {null.get()};
  const std::vector<int> two = {null.get(), null.get()};
  EXPECT_TRUE(Ends(std::vector<std::byte>(1)));
  EXPECT_TRUE(Ends(std::vector<std::byte>(32)));
  EXPECT_TRUE(Ends(std::vector<std::byte>(1000)));  // cut off
  EXPECT_TRUE(Ends({.kind = Kind::kHello}));        // no life
  EXPECT_TRUE(Ends({.kind = Kind::kHello}, one));   // a life that is no pipe
  EXPECT_TRUE(Ends({.kind = Kind::kHello}, two));
  EXPECT_TRUE(Ends({.kind = Kind::kHello, .index = 1, .slots = 3, .id = 42}));  // not its id
  EXPECT_TRUE(Ends({.kind = Kind::kHello, .index = 90, .slots = 99, .id = 42}));
  EXPECT_TRUE(Ends({.kind = Kind::kEntry, .index = 0, .tag = 9, .id = 42}, two));
  EXPECT_TRUE(Ends({.kind = Kind::kWelcome, .index = 0, .tag = 9, .id = 42}));
  EXPECT_TRUE(Ends({.kind = Kind::kWant, .index = 0}));
  EXPECT_TRUE(Ends({.kind = Kind::kRefused, .errno_value = 1}));
  EXPECT_GE(sharers.members[0]->counts().refused, 10U);
  sharers.ExpectExactDelivery();
  ASSERT_NE(sharers.Join(), nullptr);
  sharers.ExpectExactDelivery();
}

TEST_F(MalformedTest, EndsConnectionsThatSayNothingBeyondALimit) {
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(Connect());
  EXPECT_TRUE(sharers.ServeUntil([&] { return sharers.members[0]->counts().refused >= 36; }));
  silent.clear();
  ASSERT_NE(sharers.Join(), nullptr);
  sharers.ExpectExactDelivery();
}

}  // namespace
}  // namespace verbscope::soft
