// A peer in another process that is killed at a random moment: the survivor hears of it in its
// completions and loses nothing of its own, however often it happens.
//
// The peer is this program again with --child, made by posix_spawn, so it shares no memory and no
// threads with the test. VERBSCOPE_KILLS sets how often it is killed.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "core/base/file_descriptor.h"
#include "transports/soft/device/device_fixture.h"
#include "transports/soft/device/link_blob.h"
#include "transports/soft/link/rendezvous_messages.h"

extern char** environ;

namespace verbscope::soft {
namespace {

constexpr char kChildArgument[] = "--child";
constexpr int kChildSocket = 3;
constexpr ConnectOptions kConnect = {.timeout = 13, .retry_cnt = 4, .rnr_retry = 7};

// What an end tells the other one: enough to connect to it and to use its memory.
struct Card {
  uint32_t qpn = 0;
  uint32_t rkey = 0;
  uint64_t address = 0;
  uint32_t blob_bytes = 0;
  std::array<std::byte, 128> blob = {};
};

Card CardOf(End& end) {
  Card card;
  card.qpn = end.qp->qp_num;
  card.rkey = end.mr->rkey;
  card.address = end.address();
  const std::vector<std::byte> blob = end.device->PeerBlob(end.qp.get());
  card.blob_bytes = static_cast<uint32_t>(std::min(blob.size(), card.blob.size()));
  std::copy_n(blob.begin(), card.blob_bytes, card.blob.begin());
  return card;
}

bool SendCard(int socket, const Card& card) {
  return ::send(socket, &card, sizeof(card), MSG_NOSIGNAL) == sizeof(card);
}

std::optional<Card> ReceiveCard(int socket) {
  pollfd waiting = {.fd = socket, .events = POLLIN, .revents = 0};
  Card card;
  if (::poll(&waiting, 1, 20000) != 1) return std::nullopt;
  if (::recv(socket, &card, sizeof(card), MSG_WAITALL) != sizeof(card)) return std::nullopt;
  return card;
}

Status ConnectTo(End& end, const Card& peer) {
  if (Status status = ToInit(end, kConnect); !status) return status;
  const std::span<const std::byte> blob(peer.blob.data(), peer.blob_bytes);
  if (Status status = end.device->AcceptPeerBlob(end.qp.get(), blob); !status) return status;
  ibv_qp named = {};
  named.qp_num = peer.qpn;
  ibv_qp_attr attributes = RtrAttributes(*end.device, named, kConnect);
  Status status = end.device->ModifyQp(end.qp.get(), attributes, kRtrMask, "INIT to RTR");
  return status ? ToRts(end, kConnect) : status;
}

SendWork WorkTo(const End& end, const Card& peer, uint64_t id) {
  SendWork work = Send(end, id, static_cast<uint32_t>(64 + id * 997 % 20000));
  constexpr std::array<ibv_wr_opcode, 3> kOpcodes = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
                                                     IBV_WR_RDMA_READ};
  work.wr.opcode = kOpcodes[id % kOpcodes.size()];
  work.wr.wr.rdma.remote_addr = peer.address;
  work.wr.wr.rdma.rkey = peer.rkey;
  return work;
}

// Both ends: work in both directions, for ever or until something fails or `enough` completions.
// The status that ended it.
ibv_wc_status Exchange(End& end, const Card& peer, uint64_t enough) {
  for (uint64_t i = 0; i < 32; ++i) PostReceive(end, i, 32768);
  uint64_t posted = 0;
  uint64_t done = 0;
  const Deadline deadline = Deadline::After(std::chrono::seconds(60));
  std::array<ibv_wc, 16> wcs;
  while (done < enough && !deadline.Passed()) {
    while (posted - done < 8 && Post(end, WorkTo(end, peer, posted)) == 0) ++posted;
    for (ibv_cq* cq : {end.send_cq, end.recv_cq}) {
      const int got = ibv_poll_cq(cq, static_cast<int>(wcs.size()), wcs.data());
      for (const ibv_wc& wc : std::span(wcs).first(static_cast<size_t>(std::max(got, 0)))) {
        if (wc.status != IBV_WC_SUCCESS) return wc.status;
        if (cq == end.send_cq) {
          ++done;
        } else {
          PostReceive(end, wc.wr_id, 32768);
        }
      }
    }
  }
  return done >= enough ? IBV_WC_SUCCESS : IBV_WC_GENERAL_ERR;
}

End MakeEndFor(Device& device) { return MakeEnd(device, {.cqe = 256}); }

// The other process. It is killed, or finds that its parent has gone.
void RunChild() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto device = OpenDevice({});
  End end = MakeEndFor(*device);
  if (!SendCard(kChildSocket, CardOf(end))) return;
  const std::optional<Card> peer = ReceiveCard(kChildSocket);
  if (!peer || !ConnectTo(end, *peer)) return;
  if (::send(kChildSocket, "r", 1, MSG_NOSIGNAL) != 1) return;
  Exchange(end, *peer, UINT64_MAX);
}

class Child {
 public:
  Child() {
    int sockets[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    socket_.Reset(sockets[0]);
    const FileDescriptor theirs(sockets[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), kChildSocket);
    char program[] = "/proc/self/exe";
    char argument[sizeof(kChildArgument)];
    std::memcpy(argument, kChildArgument, sizeof(argument));
    char* const arguments[] = {program, argument, nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program, &actions, nullptr, arguments, environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int socket() const { return socket_.get(); }
  void Kill() {
    if (pid_ <= 0) return;
    EXPECT_EQ(::kill(pid_, SIGKILL), 0);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
  }
  bool WaitReady() const {
    pollfd waiting = {.fd = socket(), .events = POLLIN, .revents = 0};
    char ready = 0;
    return ::poll(&waiting, 1, 20000) == 1 && ::recv(socket(), &ready, 1, 0) == 1;
  }

 private:
  pid_t pid_ = -1;
  FileDescriptor socket_;
};

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
    const Status connected = ConnectTo(end, *peer);
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
  ASSERT_TRUE(ConnectTo(end, *peer));
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
  ASSERT_TRUE(ConnectTo(end, *peer));
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
  if (argc == 2 && std::string_view(argv[1]) == verbscope::soft::kChildArgument) {
    verbscope::soft::RunChild();
    ::_exit(0);  // without the exit handlers of the tests
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
