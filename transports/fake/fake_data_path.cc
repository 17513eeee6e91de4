// How a posted request is executed at the peer, and what completes on either side.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "transports/fake/fake_objects.h"

namespace verbscope::fake {
namespace {

// A completion in which all that verbs leaves undefined for this status holds values that mislead
// whoever reads them: on an error that is everything but wr_id, status, qp_num and vendor_err.
ibv_wc Poisoned(uint64_t wr_id, ibv_wc_status status, uint32_t qp_num, bool receive) {
  ibv_wc wc = {};
  wc.wr_id = wr_id;
  wc.status = status;
  wc.opcode = receive ? IBV_WC_SEND : IBV_WC_RECV;
  wc.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x81;
  wc.byte_len = 0xA5A5A5A5;
  wc.imm_data = 0xA5A5A5A5;
  wc.qp_num = qp_num;
  wc.src_qp = 0xA5A5A5;
  wc.wc_flags = status == IBV_WC_SUCCESS ? 0 : IBV_WC_WITH_IMM;
  return wc;
}

ibv_wc_opcode CompletionOpcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_SEND;
  }
}

// Whether the key's region covers the range and grants `access`. Zero bytes need no key.
bool Granted(State& state, uint32_t key, uint64_t address, size_t bytes, int access) {
  if (bytes == 0) return true;
  const auto found = state.mrs.find(key);
  if (found == state.mrs.end()) return false;
  const FakeMr& mr = *found->second;
  const auto start = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(mr.addr));
  return (mr.access & access) == access && address >= start && bytes <= mr.length &&
         address - start <= mr.length - bytes;
}

bool Granted(State& state, const std::vector<ibv_sge>& sges, int access) {
  for (const ibv_sge& sge : sges) {
    if (!Granted(state, sge.lkey, sge.addr, sge.length, access)) return false;
  }
  return true;
}

std::vector<std::byte> Gather(const SendRequest& request) {
  if ((request.wr.send_flags & IBV_SEND_INLINE) != 0) return request.inline_bytes;
  std::vector<std::byte> bytes;
  bytes.reserve(TotalBytes(request.sges));
  for (const ibv_sge& sge : request.sges) {
    bytes.insert(bytes.end(), At(sge.addr), At(sge.addr) + sge.length);
  }
  return bytes;
}

// `bytes` fit into the SGEs: the caller has checked.
void Scatter(std::span<const std::byte> bytes, const std::vector<ibv_sge>& sges) {
  for (const ibv_sge& sge : sges) {
    const size_t part = std::min<size_t>(sge.length, bytes.size());
    if (part > 0) std::memcpy(At(sge.addr), bytes.data(), part);
    bytes = bytes.subspan(part);
  }
}

// Remote memory is written and read with atomic accesses: its owner may be spinning on it.
void WriteRemote(std::span<const std::byte> bytes, uint64_t address) {
  auto* to = reinterpret_cast<unsigned char*>(At(address));
  for (size_t i = 0; i < bytes.size(); ++i) {
    __atomic_store_n(to + i, static_cast<unsigned char>(bytes[i]), __ATOMIC_RELEASE);
  }
}

std::vector<std::byte> ReadRemote(uint64_t address, size_t count) {
  const auto* from = reinterpret_cast<const unsigned char*>(At(address));
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(__atomic_load_n(from + i, __ATOMIC_ACQUIRE));
  }
  return bytes;
}

bool Reaches(const FakeQp& from, const FakeQp& to) {
  const ibv_ah_attr& path = from.attributes.ah_attr;
  if (path.is_global == 0) return path.dlid == to.lid;
  for (const ibv_gid& gid : to.gids) {
    if (std::memcmp(gid.raw, path.grh.dgid.raw, sizeof(gid.raw)) == 0) return true;
  }
  return false;
}

// The QP at the other end; null when a real sender would retry in vain: nobody there, not ready,
// not connected back, other packet sequence numbers, wrong address.
FakeQp* PeerOf(State& state, const FakeQp& qp) {
  constexpr uint32_t kPsnMask = 0xFFFFFF;
  FakeQp* peer = state.FindQp(qp.attributes.dest_qp_num);
  if (peer == nullptr || (peer->current != IBV_QPS_RTR && peer->current != IBV_QPS_RTS) ||
      peer->attributes.dest_qp_num != qp.qp_num ||
      ((peer->attributes.rq_psn ^ qp.attributes.sq_psn) & kPsnMask) != 0 || !Reaches(qp, *peer)) {
    return nullptr;
  }
  return peer;
}

void CompleteReceive(State& state, FakeQp& qp, const RecvRequest& request, ibv_wc wc,
                     bool solicited) {
  wc.wr_id = request.wr_id;
  state.Push(Of(qp.recv_cq), {.wc = wc, .solicited = solicited, .receive = true, .covers = 1});
}

// The receive side of SEND and of WRITE with immediate: takes one receive and completes it.
Outcome Receive(State& state, FakeQp& peer, const SendRequest& request,
                std::span<const std::byte> payload) {
  const RecvRequest receive = std::move(peer.recv_queue.front());
  peer.recv_queue.pop_front();
  const bool send = IsSend(request.wr.opcode);
  ibv_wc_status responder = IBV_WC_SUCCESS;
  Outcome outcome;
  if (send && payload.size() > TotalBytes(receive.sges)) {
    responder = IBV_WC_LOC_LEN_ERR;
    outcome = {.status = IBV_WC_REM_INV_REQ_ERR, .broken_peer = &peer};
  } else if (send && !Granted(state, receive.sges, IBV_ACCESS_LOCAL_WRITE)) {
    responder = IBV_WC_LOC_PROT_ERR;
    outcome = {.status = IBV_WC_REM_OP_ERR, .broken_peer = &peer};
  }
  ibv_wc wc = Poisoned(0, responder, peer.qp_num, /*receive=*/true);
  if (responder == IBV_WC_SUCCESS) {
    if (send) Scatter(payload, receive.sges);
    wc.opcode = send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
    wc.byte_len = static_cast<uint32_t>(payload.size());
    if (HasImmediate(request.wr.opcode)) {
      wc.wc_flags = IBV_WC_WITH_IMM;
      wc.imm_data = request.wr.imm_data;
    }
  }
  const bool solicited = (request.wr.send_flags & IBV_SEND_SOLICITED) != 0;
  CompleteReceive(state, peer, receive, wc, solicited);
  return outcome;
}

Outcome RefuseRemoteAccess(State& state, FakeQp& peer) {
  state.RaiseAsync(*peer.owner,
                   {.text = "QP_ACCESS_ERR on QP " + std::to_string(peer.qp_num), .fatal = true});
  return {.status = IBV_WC_REM_ACCESS_ERR, .broken_peer = &peer};
}

Outcome ExecuteAtomic(State& state, FakeQp& peer, const SendRequest& request) {
  const auto& atomic = request.wr.wr.atomic;
  uint64_t old = atomic.compare_add;
  if (atomic.remote_addr % sizeof(old) != 0) {
    return {.status = IBV_WC_REM_INV_REQ_ERR, .broken_peer = &peer};
  }
  if (!Granted(state, atomic.rkey, atomic.remote_addr, sizeof(old), IBV_ACCESS_REMOTE_ATOMIC)) {
    return RefuseRemoteAccess(state, peer);
  }
  auto* target = reinterpret_cast<uint64_t*>(At(atomic.remote_addr));
  if (request.wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    old = __atomic_fetch_add(target, atomic.compare_add, __ATOMIC_ACQ_REL);
  } else {
    __atomic_compare_exchange_n(target, &old, atomic.swap, /*weak=*/false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
  }
  Scatter(std::as_bytes(std::span(&old, 1)), request.sges);
  return {.byte_len = sizeof(old)};
}

Outcome ExecuteRead(State& state, FakeQp& peer, const SendRequest& request) {
  const auto& rdma = request.wr.wr.rdma;
  const size_t bytes = TotalBytes(request.sges);
  if (!Granted(state, rdma.rkey, rdma.remote_addr, bytes, IBV_ACCESS_REMOTE_READ)) {
    return RefuseRemoteAccess(state, peer);
  }
  Scatter(ReadRemote(rdma.remote_addr, bytes), request.sges);
  return {.byte_len = static_cast<uint32_t>(bytes)};
}

Outcome Execute(State& state, FakeQp& qp, const SendRequest& request) {
  if (qp.fail_next) return {.status = *std::exchange(qp.fail_next, std::nullopt)};
  const ibv_wr_opcode opcode = request.wr.opcode;
  const bool outgoing = IsSend(opcode) || IsWrite(opcode);
  const bool inlined = (request.wr.send_flags & IBV_SEND_INLINE) != 0;
  if (!inlined && !Granted(state, request.sges, outgoing ? 0 : IBV_ACCESS_LOCAL_WRITE)) {
    return {.status = IBV_WC_LOC_PROT_ERR};
  }
  FakeQp* peer = PeerOf(state, qp);
  if (peer == nullptr) return {.status = IBV_WC_RETRY_EXC_ERR};
  if (IsAtomic(opcode)) return ExecuteAtomic(state, *peer, request);
  if (opcode == IBV_WR_RDMA_READ) return ExecuteRead(state, *peer, request);

  const bool takes_receive = IsSend(opcode) || HasImmediate(opcode);
  if (takes_receive && peer->recv_queue.empty()) {
    constexpr uint8_t kForEver = 7;
    if (!state.rnr_exhausts || qp.attributes.rnr_retry == kForEver) return {.waits = true};
    return {.status = IBV_WC_RNR_RETRY_EXC_ERR};
  }
  const std::vector<std::byte> payload = Gather(request);
  if (IsWrite(opcode)) {
    const auto& rdma = request.wr.wr.rdma;
    if (!Granted(state, rdma.rkey, rdma.remote_addr, payload.size(), IBV_ACCESS_REMOTE_WRITE)) {
      return RefuseRemoteAccess(state, *peer);
    }
    WriteRemote(payload, rdma.remote_addr);
  }
  return takes_receive ? Receive(state, *peer, request, payload) : Outcome{};
}

void CompleteSend(State& state, FakeQp& qp, const SendRequest& request, const Outcome& outcome) {
  const bool ok = outcome.status == IBV_WC_SUCCESS;
  // A request that fails completes whether or not it asked to.
  if (ok && (request.wr.send_flags & IBV_SEND_SIGNALED) == 0) return;
  ibv_wc wc = Poisoned(request.wr.wr_id, outcome.status, qp.qp_num, /*receive=*/false);
  if (ok) {
    wc.opcode = CompletionOpcode(request.wr.opcode);
    if (outcome.byte_len > 0) wc.byte_len = outcome.byte_len;
  }
  state.Push(Of(qp.send_cq), {.wc = wc, .covers = request.number});
}

void Flush(State& state, FakeQp& qp) {
  qp.current = IBV_QPS_ERR;
  for (; !qp.send_queue.empty(); qp.send_queue.pop_front()) {
    CompleteSend(state, qp, qp.send_queue.front(), {.status = IBV_WC_WR_FLUSH_ERR});
  }
  for (; !qp.recv_queue.empty(); qp.recv_queue.pop_front()) {
    const ibv_wc wc = Poisoned(0, IBV_WC_WR_FLUSH_ERR, qp.qp_num, /*receive=*/true);
    CompleteReceive(state, qp, qp.recv_queue.front(), wc, /*solicited=*/false);
  }
}

}  // namespace

FakeQp* State::FindQp(uint32_t number) {
  const auto found = qps.find(number);
  return found == qps.end() ? nullptr : found->second.get();
}

void State::Progress(FakeQp& qp) {
  if (qp.current == IBV_QPS_ERR) Flush(*this, qp);
  while (qp.current == IBV_QPS_RTS && !qp.send_queue.empty()) {
    const Outcome outcome = Execute(*this, qp, qp.send_queue.front());
    if (outcome.waits) return;
    CompleteSend(*this, qp, qp.send_queue.front(), outcome);
    qp.send_queue.pop_front();
    if (outcome.status != IBV_WC_SUCCESS) EnterError(qp, outcome.broken_peer);
  }
}

void State::EnterError(FakeQp& qp, FakeQp* other) {
  // Both are flushed before anybody is told, so each end shows its own first error and not that of
  // the other's death.
  Flush(*this, qp);
  if (other != nullptr) Flush(*this, *other);
  for (const FakeQp* each : {&qp, static_cast<FakeQp*>(other)}) {
    if (each == nullptr) continue;
    if (FakeQp* peer = FindQp(each->attributes.dest_qp_num); peer != nullptr) Progress(*peer);
  }
}

void State::Reset(FakeQp& qp) {
  qp.current = IBV_QPS_RESET;
  qp.send_queue.clear();
  qp.recv_queue.clear();
  qp.sends_posted = qp.sends_freed = 0;
  qp.recv_slots_used = 0;
  qp.fail_next.reset();
  PurgeCompletions(qp);
  if (FakeQp* peer = FindQp(qp.attributes.dest_qp_num); peer != nullptr) Progress(*peer);
  qp.attributes = {};
}

}  // namespace verbscope::fake
