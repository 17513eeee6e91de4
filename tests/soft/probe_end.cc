#include "tests/soft/probe_end.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <vector>

namespace verbscope::soft {
namespace {

void Must(const Status& status) {
  if (!status) Die(status.error().ToText());
}

// What one side tells the other, over a socket pair.
struct Card {
  uint32_t qpn = 0;
  ibv_gid gid = {};
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint32_t blob_bytes = 0;
  std::array<std::byte, 256> blob;
};

}  // namespace

void Pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof(set), &set);
}

pid_t Fork() {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before
  return 0;
}

void Die(const std::string& what) {
  std::fprintf(stderr, "speed_probe: %s\n", what.c_str());
  ::_exit(1);
}

void Check(const ibv_wc& wc) {
  if (wc.status != IBV_WC_SUCCESS) Die("completion status " + std::to_string(wc.status));
}

uint64_t CounterOf(SoftDevice& device, std::string_view name) {
  for (const auto& [counter, value] : device.ReadCounters(1)) {
    if (counter == name) return value;
  }
  Die("no counter " + std::string(name));
}

void End::Open(const SoftOptions& options, uint32_t size, int socket, bool events) {
  bytes = size;
  device = Must(SoftDevice::Open(options, ""));
  pd = Must(device->AllocatePd());
  buffer = Must(device->AllocateBuffer({.bytes = size_t{2} * std::max(size, 64U)}));
  mr = Must(device->RegisterMemory(pd.get(), buffer->bytes(),
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  send_cq = Must(device->CreateCq({.cqe = kDepth}));
  if (events) channel = Must(device->CreateCompChannel());
  recv_cq = Must(device->CreateCq({.cqe = kReceives, .channel = channel.get()}));
  const bool sends_inline = size > 0 && size <= 64;
  send_flags = sends_inline ? IBV_SEND_INLINE : 0;
  verbscope::QpOptions queues{.pd = pd.get(),
                              .send_cq = send_cq.get(),
                              .recv_cq = recv_cq.get(),
                              .max_send_wr = kDepth,
                              .max_recv_wr = kReceives,
                              .max_inline_bytes = sends_inline ? size : 0};
  qp = Must(device->CreateQp(queues)).qp;
  Connect(socket);
}

void End::Connect(int socket) {
  Card mine;
  mine.qpn = qp->qp_num;
  mine.gid = device->info().ports[0].gids.back().raw;
  mine.address = Sge(true).addr;
  mine.rkey = mr->rkey;
  const std::vector<std::byte> blob = device->PeerBlob(qp.get());
  mine.blob_bytes = static_cast<uint32_t>(blob.size());
  std::copy(blob.begin(), blob.end(), mine.blob.begin());
  Card peer;
  if (::write(socket, &mine, sizeof(mine)) != sizeof(mine) ||
      ::read(socket, &peer, sizeof(peer)) != sizeof(peer)) {
    Die("the other side is gone");
  }
  remote_address = peer.address;
  rkey = peer.rkey;
  Must(device->AcceptPeerBlob(qp.get(), std::span(peer.blob).first(peer.blob_bytes)));
  ibv_qp_attr a = {};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  Must(device->ModifyQp(
      qp.get(), a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT"));
  PostReceives(kReceives);
  a.qp_state = IBV_QPS_RTR;
  const uint32_t mtu = device->info().ports[0].active_mtu_bytes;
  a.path_mtu = static_cast<ibv_mtu>(std::countr_zero(mtu) - 7);  // 256 is IBV_MTU_256, 1
  a.dest_qp_num = peer.qpn;
  a.max_dest_rd_atomic = 1;
  a.min_rnr_timer = 1;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  a.ah_attr.grh.dgid = peer.gid;
  a.ah_attr.grh.sgid_index = static_cast<uint8_t>(device->info().ports[0].gids.back().index);
  Must(device->ModifyQp(qp.get(), a,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                        "RTR"));
  a.qp_state = IBV_QPS_RTS;
  a.timeout = 18;
  a.retry_cnt = 6;
  a.rnr_retry = 7;
  a.max_rd_atomic = 1;
  Must(device->ModifyQp(qp.get(), a,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                        "RTS"));
  char ready = 1;
  if (::write(socket, &ready, 1) != 1 || ::read(socket, &ready, 1) != 1) Die("no peer");
}

ibv_sge End::Sge(bool receive) const {
  return {.addr = reinterpret_cast<uintptr_t>(buffer->bytes().data()) +
                  (receive ? std::max(bytes, 64U) : 0),
          .length = bytes,
          .lkey = mr->lkey};
}

void End::PostReceives(uint32_t count) {
  ibv_sge sge = Sge(true);
  std::array<ibv_recv_wr, kList> list = {};
  while (count > 0) {
    const uint32_t now = std::min(count, kList);
    for (uint32_t i = 0; i < now; ++i) {
      list[i].sg_list = &sge;
      list[i].num_sge = bytes > 0 ? 1 : 0;
      list[i].next = i + 1 < now ? &list[i + 1] : nullptr;
    }
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_recv(qp.get(), list.data(), &bad) != 0) Die("ibv_post_recv");
    count -= now;
  }
}

}  // namespace verbscope::soft
