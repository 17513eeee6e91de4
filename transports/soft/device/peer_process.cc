#include "transports/soft/device/peer_process.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <string_view>
#include <vector>

#include "transports/soft/options/parse.h"

extern char** environ;

namespace verbscope::soft {
namespace {

constexpr char kChildArgument[] = "--child";
constexpr int kChildSocket = 3;

// The other process. It is killed, or finds that its parent has gone.
void RunChild(std::string_view device_string) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Expected<SoftOptions> options = ParseDeviceString(device_string, {});
  if (!options) return;
  const auto device = OpenDevice(*options);
  if (device == nullptr) return;
  End end = MakeEndFor(*device);
  if (!SendCard(kChildSocket, CardOf(end))) return;
  const std::optional<Card> peer = ReceiveCard(kChildSocket);
  if (!peer || !ConnectTo(end, *peer, kSteady)) return;
  if (::send(kChildSocket, "r", 1, MSG_NOSIGNAL) != 1) return;
  Exchange(end, *peer, UINT64_MAX);
}

}  // namespace

Card CardOf(End& end) {
  Card card;
  card.qpn = end.qp->qp_num;
  card.rkey = end.mr->rkey;
  card.address = end.address();
  card.gid = end.device->info().ports.front().gids.back().raw;
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

Status ConnectTo(End& end, const Card& peer, const ConnectOptions& options) {
  if (Status status = ToInit(end, options); !status) return status;
  const std::span<const std::byte> blob(peer.blob.data(), peer.blob_bytes);
  if (Status status = end.device->AcceptPeerBlob(end.qp.get(), blob); !status) return status;
  ibv_qp named = {};
  named.qp_num = peer.qpn;
  ibv_qp_attr attributes = RtrAttributes(*end.device, named, options);
  attributes.ah_attr.grh.dgid = peer.gid;
  Status status = end.device->ModifyQp(end.qp.get(), attributes, kRtrMask, "INIT to RTR");
  return status ? ToRts(end, options) : status;
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

ibv_wc_status Exchange(End& end, const Card& peer, uint64_t enough, const std::atomic<bool>* stop) {
  for (uint64_t i = 0; i < 32; ++i) PostReceive(end, i, 32768);
  uint64_t posted = 0;
  uint64_t done = 0;
  const Deadline deadline = Deadline::After(std::chrono::seconds(60));
  std::array<ibv_wc, 16> wcs;
  while (done < enough && !deadline.Passed()) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return IBV_WC_SUCCESS;
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

Child::Child(const std::string& device_string) {
  int sockets[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  socket_.Reset(sockets[0]);
  const FileDescriptor theirs(sockets[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), kChildSocket);
  std::string program = "/proc/self/exe";
  std::string argument = kChildArgument;
  std::string device = device_string;
  char* const arguments[] = {program.data(), argument.data(), device.data(), nullptr};
  EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ), 0);
  ::posix_spawn_file_actions_destroy(&actions);
}

void Child::Kill() {
  if (pid_ <= 0) return;
  EXPECT_EQ(::kill(pid_, SIGKILL), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
}

bool Child::WaitReady() const {
  pollfd waiting = {.fd = socket(), .events = POLLIN, .revents = 0};
  char ready = 0;
  return ::poll(&waiting, 1, 20000) == 1 && ::recv(socket(), &ready, 1, 0) == 1;
}

bool RunAsPeer(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != kChildArgument) return false;
  RunChild(argv[2]);
  ::_exit(0);  // without the exit handlers of the tests
}

}  // namespace verbscope::soft
