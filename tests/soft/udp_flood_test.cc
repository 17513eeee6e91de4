// A flood on the RoCE port while two devices exchange verified messages: another process sends
// whatever it can, as fast as it can, to the addresses of both. Nothing of it may reach a message;
// the run is only slower, and the flood is counted.
//
// The flooder is this program again with --flood. VERBSCOPE_SEED and VERBSCOPE_MESSAGES change the
// run. Budget: 30 s.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/base/file_descriptor.h"
#include "tests/soft/mixed_traffic.h"
#include "transports/soft/link/local_address.h"
#include "transports/soft/wire/frame.h"
#include "transports/soft/wire/header.h"

extern char** environ;

namespace verbscope::soft {
namespace {

constexpr char kFloodArgument[] = "--flood";
constexpr int kFloodSocket = 3;
constexpr uint32_t kNobodysQpn = 0xfffffe;

// As fast as it can, but for a device that a sanitizer makes slower than its flood: the kernel
// would drop nearly all packets, or they would wait in the receive buffer for longer than any
// number of retries takes. The timeout is an exponent, as the verbs have it.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kPauseMs = 5;
constexpr uint8_t kTimeout = 17;
#else
constexpr int kPauseMs = 0;
constexpr uint8_t kTimeout = 12;
#endif

// Addresses that no other test uses at the same time: 1 and 2 of the devices, 3 of a stranger.
LocalAddress Address(pid_t process, uint8_t last) {
  const auto id = static_cast<uint32_t>(process);
  return LocalAddress::Ipv4(127, static_cast<uint8_t>(64 + id / 256 % 128),
                            static_cast<uint8_t>(id % 256), last);
}

// The flooder: from a stranger's address, and from the address of the other device, as any program
// of this host may.
class Flooder {
 public:
  Flooder(const LocalAddress& from, const LocalAddress& to)
      : from_(from), to_(to), address_(to.Socket(kRoceUdpPort)) {
    socket_.Reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const SocketAddress own = from.Socket(0);
    if (::bind(socket_.get(), own.generic(), own.size) != 0) ::_exit(1);
    sockaddr_in bound = {};
    socklen_t size = sizeof(bound);
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    source_port_ = ntohs(bound.sin_port);
  }

  // A pool of packets, made once: to send them again is as fast as this can be.
  void Fill(std::mt19937& random) {
    for (size_t i = 0; i < kPool; i += 4) {
      pool_.push_back(Bytes(random, random() % 1500));
      pool_.push_back(Bytes(random, random() % 16));
      pool_.push_back(Packet(random));
      pool_.push_back(Damaged(random));
    }
    for (size_t i = 0; i < kPool; ++i) {
      pieces_[i] = {.iov_base = pool_[i].data(), .iov_len = pool_[i].size()};
      msghdr& message = messages_[i].msg_hdr;
      message.msg_name = const_cast<sockaddr*>(address_.generic());
      message.msg_namelen = address_.size;
      message.msg_iov = &pieces_[i];
      message.msg_iovlen = 1;
    }
  }
  uint64_t Send() {
    const int sent = ::sendmmsg(socket_.get(), messages_.data(), kPool, MSG_DONTWAIT);
    return static_cast<uint64_t>(std::max(sent, 0));
  }

 private:
  static std::vector<std::byte> Bytes(std::mt19937& random, size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }
  // Right in every bit, for a QP that does not exist.
  std::vector<std::byte> Packet(std::mt19937& random) const {
    Flow flow;
    flow.source = from_.gid;
    flow.destination = to_.gid;
    flow.source_port = source_port_;
    Header header;
    header.opcode = Opcode::kSendOnly;
    header.dest_qpn = kNobodysQpn;
    header.psn = random() & 0xffffff;
    const std::vector<std::byte> payload = Bytes(random, 64);
    const std::span<const std::byte> pieces[] = {payload};
    std::vector<std::byte> packet;
    BuildTransport(flow, header, pieces, packet);
    return packet;
  }
  // The same for the QPs that are likely to exist, with a wrong bit.
  std::vector<std::byte> Damaged(std::mt19937& random) const {
    std::vector<std::byte> packet = Packet(random);
    packet[5] = std::byte{0};
    packet[6] = std::byte{0};
    packet[7] = static_cast<std::byte>(16 + random() % 16);
    packet[kBthBytes + random() % 64] ^= std::byte{1};
    return packet;
  }

  const LocalAddress from_;
  const LocalAddress to_;
  const SocketAddress address_;
  FileDescriptor socket_;
  uint16_t source_port_ = 0;
  static constexpr size_t kPool = 64;
  std::vector<std::vector<std::byte>> pool_;
  std::array<iovec, kPool> pieces_ = {};
  std::array<mmsghdr, kPool> messages_ = {};
};

// The other process: until it is told to stop, or its parent has gone. Says how many it sent.
void RunFlood(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const LocalAddress a = Address(parent, 1);
  const LocalAddress b = Address(parent, 2);
  const LocalAddress stranger = Address(parent, 3);
  std::array<Flooder, 4> flooders = {Flooder(stranger, a), Flooder(stranger, b), Flooder(b, a),
                                     Flooder(a, b)};
  std::mt19937 random(7);
  for (Flooder& flooder : flooders) flooder.Fill(random);
  uint64_t sent = 0;
  pollfd stop = {.fd = kFloodSocket, .events = POLLIN, .revents = 0};
  for (uint64_t round = 0;; ++round) {
    for (Flooder& flooder : flooders) sent += flooder.Send();
    if (round == 0) static_cast<void>(::send(kFloodSocket, "r", 1, MSG_NOSIGNAL));
    if (::poll(&stop, 1, kPauseMs) != 0) break;
  }
  static_cast<void>(::send(kFloodSocket, &sent, sizeof(sent), MSG_NOSIGNAL));
}

class Flood {
 public:
  Flood() {
    int sockets[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    socket_.Reset(sockets[0]);
    const FileDescriptor theirs(sockets[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), kFloodSocket);
    std::string program = "/proc/self/exe";
    std::string argument = kFloodArgument;
    std::string process = std::to_string(::getpid());
    char* const arguments[] = {program.data(), argument.data(), process.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    char ready = 0;
    EXPECT_TRUE(Receive(&ready, 1)) << "the flood does not begin";
  }
  ~Flood() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  // Ends it. How many packets it has sent.
  uint64_t Stop() {
    uint64_t sent = 0;
    EXPECT_EQ(::send(socket_.get(), "s", 1, MSG_NOSIGNAL), 1);
    EXPECT_TRUE(Receive(&sent, sizeof(sent)));
    return sent;
  }

 private:
  bool Receive(void* to, size_t bytes) const {
    pollfd waiting = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, 20000) == 1 &&
           ::recv(socket_.get(), to, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
  }
  pid_t pid_ = -1;
  FileDescriptor socket_;
};

struct Counted {
  uint64_t bad = 0;      // packets that were looked at and dropped
  uint64_t dropped = 0;  // by the kernel, of the flood and of ours
};

Counted CountsOf(Device& device) {
  Counted counted;
  for (const auto& [name, value] : device.ReadCounters(1)) {
    if (name == "unknown_source" || name == "icrc_errors" || name == "malformed_pkts" ||
        name == "unknown_qpn") {
      counted.bad += value;
    } else if (name == "udp_receive_drops") {
      counted.dropped += value;
    }
  }
  return counted;
}

std::unique_ptr<SoftDevice> OpenAt(uint8_t last) {
  SoftOptions options;
  options.link = LinkKind::kUdp;
  options.profile = Profile::kRxe61;  // retries without limit: the machine may be busy beside that
  const LocalAddress address = Address(::getpid(), last);
  std::memcpy(options.address.emplace().raw, address.gid.data(), sizeof(ibv_gid));
  return OpenDevice(options);
}

TEST(UdpFlood, MessagesArriveWholeAndTheFloodIsCounted) {
  const uint64_t seed = Setting("VERBSCOPE_SEED", 20'260'102);
  NoTeardownFailures report;
  const std::unique_ptr<SoftDevice> left = OpenAt(1);
  const std::unique_ptr<SoftDevice> right = OpenAt(2);
  ASSERT_TRUE(left != nullptr && right != nullptr);
  left->set_teardown_report(&report);
  right->set_teardown_report(&report);
  const EndOptions memory{.signal_all = true, .bytes = MixedTrafficBytes()};
  End a = MakeEnd(*left, memory);
  End b = MakeEnd(*right, memory);
  ASSERT_TRUE(
      Connect(a, b, {.mtu = IBV_MTU_1024, .timeout = kTimeout, .retry_cnt = 7, .rd_atomic = 8}));

  Flood flood;
  RunMixedTraffic(a, b, seed, Setting("VERBSCOPE_MESSAGES", 50'000));
  const uint64_t sent = flood.Stop();

  // What is still in the sockets is looked at as well.
  Counted all;
  ibv_wc wc = {};
  EXPECT_TRUE(AwaitUntil([&] {
    EXPECT_EQ(ibv_poll_cq(a.recv_cq, 1, &wc), 0);
    EXPECT_EQ(ibv_poll_cq(b.recv_cq, 1, &wc), 0);
    const Counted l = CountsOf(*left);
    const Counted r = CountsOf(*right);
    all = {.bad = l.bad + r.bad, .dropped = l.dropped + r.dropped};
    return all.bad + all.dropped >= sent;
  })) << all.bad
      << " counted and " << all.dropped << " dropped of " << sent;
  EXPECT_LE(all.bad, sent);
  RecordProperty("flood", std::to_string(sent));
  RecordProperty("dropped", std::to_string(all.dropped));
  for (Device* device : {static_cast<Device*>(left.get()), static_cast<Device*>(right.get())}) {
    for (const char* kind : {"unknown_source", "icrc_errors", "malformed_pkts", "unknown_qpn"}) {
      EXPECT_GT(Counter(*device, kind), 0U) << kind;
    }
    const std::vector<std::string> notices = device->ReportLink().notices;
    ASSERT_FALSE(notices.empty());
    EXPECT_NE(notices[0].find("came from an address that is no peer's"), notices[0].npos);
  }
}

// A device that was left alone has nothing to say.
TEST(UdpFlood, WithoutItThereIsNoNotice) {
  const std::unique_ptr<SoftDevice> left = OpenAt(1);
  const std::unique_ptr<SoftDevice> right = OpenAt(2);
  ASSERT_TRUE(left != nullptr && right != nullptr);
  const EndOptions memory{.signal_all = true, .bytes = MixedTrafficBytes()};
  End a = MakeEnd(*left, memory);
  End b = MakeEnd(*right, memory);
  ASSERT_TRUE(Connect(a, b, {.retry_cnt = 7, .rd_atomic = 8}));
  RunMixedTraffic(a, b, /*seed=*/1, /*messages=*/1000);
  EXPECT_EQ(Counter(*left, "unknown_source") + Counter(*right, "unknown_source"), 0U);
  if (Counter(*left, "udp_receive_drops") == 0) {
    EXPECT_TRUE(left->ReportLink().notices.empty());
  }
}

}  // namespace
}  // namespace verbscope::soft

int main(int argc, char** argv) {
  using namespace verbscope::soft;
  if (argc == 3 && std::string_view(argv[1]) == kFloodArgument) {
    RunFlood(static_cast<pid_t>(std::atol(argv[2])));
    ::_exit(0);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
