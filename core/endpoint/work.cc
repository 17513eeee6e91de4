// The prebuilt work of an Endpoint: what the loops post.
#include <arpa/inet.h>

#include <algorithm>

#include "core/endpoint/endpoint.h"

namespace verbscope {
namespace {

ibv_wr_opcode Opcode(const Plan& plan, Verb verb) {
  switch (verb) {
    case Verb::kSend:
      return plan.imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    case Verb::kWrite:
      return plan.imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    case Verb::kRead:
      return IBV_WR_RDMA_READ;
    case Verb::kAtomic:
      return plan.atomic_op == AtomicOp::kFetchAdd ? IBV_WR_ATOMIC_FETCH_AND_ADD
                                                   : IBV_WR_ATOMIC_CMP_AND_SWP;
  }
  return IBV_WR_SEND;
}

}  // namespace

void Endpoint::BuildSend(const EndpointInfo& remote) {
  const bool lands_here = operation_.verb == Verb::kRead || operation_.verb == Verb::kAtomic;
  send_ = {};
  send_.wr_id = MakeWrId(WrKind::kSend);
  send_.opcode = Opcode(plan_, operation_.verb);
  if (options_.size_bytes > 0) {
    send_.sg_list = lands_here ? &recv_sge_ : &send_sge_;
    send_.num_sge = 1;
  }
  if (plan_.imm) send_.imm_data = htonl(kImmediate);
  unsigned flags = 0;
  if (send_inline_) flags |= IBV_SEND_INLINE;
  if (remote.wants_solicited && operation_.takes_receives) flags |= IBV_SEND_SOLICITED;
  send_.send_flags = flags;
  const uint64_t landing = remote.address + received_offset_;
  if (operation_.verb == Verb::kAtomic) {
    send_.wr.atomic.remote_addr = landing;
    send_.wr.atomic.rkey = remote.rkey;
    send_.wr.atomic.compare_add = 1;
    atomic_ = {
        .slots = reinterpret_cast<uint64_t*>(recv_sge_.addr), .count = depth_, .sge = &recv_sge_};
  } else {
    send_.wr.rdma.remote_addr = operation_.verb == Verb::kRead ? remote.address : landing;
    send_.wr.rdma.rkey = remote.rkey;
  }
  signalled_send_ = send_;
  signalled_send_.send_flags = flags | IBV_SEND_SIGNALED;
}

ibv_recv_wr Endpoint::ReceiveRequest(size_t qp_index) {
  ibv_recv_wr request = {};
  request.wr_id = MakeWrId(WrKind::kRecv, qp_index);
  // A WRITE puts its data elsewhere: its receive is a completion and no place.
  if (options_.size_bytes > 0 && operation_.verb == Verb::kSend) {
    request.sg_list = &recv_sge_;
    request.num_sge = 1;
  }
  return request;
}

void Endpoint::BuildReceives(size_t qp_index) {
  if (receives_ == 0) return;
  // Streams tell the peer of a quarter of the receives at a time.
  const uint32_t share = streams() ? data_receives_ / 4 : receives_ / 2;
  std::vector<ibv_recv_wr>& batch = recv_batches_[qp_index];
  batch.assign(std::clamp<uint32_t>(share, 1, kMaxRecvBatch), ReceiveRequest(qp_index));
  for (size_t i = 0; i + 1 < batch.size(); ++i) batch[i].next = &batch[i + 1];
}

void Endpoint::BuildStream(const EndpointInfo& remote) {
  const size_t count = qps_.size();
  lists_.assign(count, std::vector<ibv_send_wr>(std::min(plan_.post_list, depth_), send_));
  credits_.assign(count, ibv_send_wr{});
  stream_qps_.assign(count, StreamQp{});
  for (size_t i = 0; i < count; ++i) {
    std::vector<ibv_send_wr>& list = lists_[i];
    for (size_t k = 0; k + 1 < list.size(); ++k) list[k].next = &list[k + 1];
    credits_[i].opcode = IBV_WR_SEND_WITH_IMM;
    StreamQp& qp = stream_qps_[i];
    qp.qp = qps_[i].get();
    qp.list = list;
    qp.recv_batch = recv_batches_[i];
    qp.credit = &credits_[i];
    qp.grant_every = std::max(1u, data_receives_ / 4);
    if (operation_.takes_receives) qp.window = remote.receives;
  }
}

PingPongSetup Endpoint::PingPong(StopSignal& stop, IntervalRecorder& recorder) {
  return {.device = &device_,
          .qp = qp(),
          .send_cq = send_cq(),
          .recv_cq = recv_cq(),
          .send = &send_,
          .signalled_send = &signalled_send_,
          .recv_batch = recv_batches_.front(),
          .signal_every = signal_every_,
          .state = &ping_pong_state_,
          .stop = &stop,
          .recorder = &recorder};
}

PayloadPingSetup Endpoint::PayloadPing(StopSignal& stop, IntervalRecorder& recorder) {
  return {.qp = qp(),
          .send_cq = send_cq(),
          .send = &send_,
          .signalled_send = &signalled_send_,
          .outgoing = reinterpret_cast<uint8_t*>(&sent_part().back()),
          .incoming = reinterpret_cast<const uint8_t*>(&received_part().back()),
          .signal_every = signal_every_,
          .state = &payload_ping_state_,
          .stop = &stop,
          .recorder = &recorder};
}

RoundTripSetup Endpoint::RoundTrips(StopSignal& stop, IntervalRecorder& recorder) {
  return {.device = &device_,
          .qp = qp(),
          .send_cq = send_cq(),
          .recv_cq = recv_cq(),
          .request = &signalled_send_,
          .atomic_op = plan_.atomic_op,
          .atomic = operation_.verb == Verb::kAtomic ? &atomic_ : nullptr,
          .stop = &stop,
          .recorder = &recorder};
}

OpenLoopSetup Endpoint::OpenLoop(StopSignal& stop, IntervalRecorder& recorder) {
  return {.device = &device_,
          .qp = qp(),
          .send_cq = send_cq(),
          .recv_cq = recv_cq(),
          .request = &send_,
          .flags = send_.send_flags & ~unsigned{IBV_SEND_SIGNALED},
          .recv_batch = recv_batches_.front(),
          .answered = operation_.shape == LoopShape::kPingPong,
          .atomic_op = plan_.atomic_op,
          .atomic = operation_.verb == Verb::kAtomic ? &atomic_ : nullptr,
          .depth = depth_,
          .send_slots = depth_ + 2 * signal_every_,
          .signal_every = signal_every_,
          .state = &open_loop_state_,
          .stop = &stop,
          .recorder = &recorder};
}

StreamSetup Endpoint::Stream(StopSignal& stop) {
  return {.device = &device_,
          .cq = send_cq(),
          .qps = stream_qps_,
          .grants = operation_.takes_receives,
          .flags = send_.send_flags,
          .depth = depth_,
          .signal_every = signal_every_,
          .stop = &stop};
}

}  // namespace verbscope
