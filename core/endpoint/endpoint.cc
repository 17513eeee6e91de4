#include "core/endpoint/endpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace verbscope {
namespace {

constexpr uint64_t kCacheLine = 64;

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Expected<std::unique_ptr<Endpoint>> Endpoint::Create(Device& device, const Plan& plan,
                                                     const EndpointOptions& options) {
  std::unique_ptr<Endpoint> endpoint(new Endpoint(device, plan, options));
  endpoint->psn_ = RandomPsn();
  if (Status status = endpoint->CreateMemory(); !status) return Fail(std::move(status.error()));
  if (Status status = endpoint->CreateQueues(); !status) return Fail(std::move(status.error()));
  // Of SENDs nothing of ours is open to remote access.
  const int access = endpoint->round_trip_ ? IBV_ACCESS_REMOTE_READ : 0;
  if (Status status = ToInit(device, endpoint->qp(), plan, options.path, access); !status) {
    return Fail(std::move(status.error()));
  }
  return endpoint;
}

// One buffer: the send part, then the receive part on a cache line of its own. In a ping-pong of
// depth one all receives may share one part: a message is read before the next one can arrive.
Status Endpoint::CreateMemory() {
  if (options_.size_bytes > options_.path.port.max_message_bytes) {
    return Fail(
        SetupError(fmt::format("a message of {} bytes is above the limit of port {}, {} bytes",
                               options_.size_bytes, options_.path.port.number,
                               options_.path.port.max_message_bytes),
                   "", "choose a smaller --size"));
  }
  Expected<Pd> pd = device_.AllocatePd();
  if (!pd) return Fail(std::move(pd.error()));
  pd_ = std::move(*pd);
  // An address and a key to name are needed for reading nothing, too.
  if (options_.size_bytes == 0 && !round_trip_) return {};

  const uint64_t part = RoundUp(std::max<uint64_t>(options_.size_bytes, 1), kCacheLine);
  Expected<std::unique_ptr<Buffer>> buffer = device_.AllocateBuffer(
      {.bytes = part * 2, .numa_node = options_.numa_node, .huge_pages = options_.huge_pages});
  if (!buffer) return Fail(std::move(buffer.error()));
  buffer_ = std::move(*buffer);
  Expected<Mr> mr =
      device_.RegisterMemory(pd_.get(), buffer_->bytes(),
                             IBV_ACCESS_LOCAL_WRITE | (round_trip_ ? IBV_ACCESS_REMOTE_READ : 0));
  if (!mr) return Fail(std::move(mr.error()));
  mr_ = std::move(*mr);

  const auto address = reinterpret_cast<uintptr_t>(buffer_->bytes().data());
  send_sge_ = {
      .addr = address, .length = static_cast<uint32_t>(options_.size_bytes), .lkey = mr_->lkey};
  recv_sge_ = send_sge_;
  recv_sge_.addr = address + part;
  return {};
}

Status Endpoint::CreateQueues() {
  const DeviceLimits& limits = device_.info().limits;
  signal_every_ = plan_.signal_every != 0 ? plan_.signal_every : kDefaultSignalEvery;
  signal_every_ = std::clamp<uint32_t>(signal_every_, 1, std::max(1u, limits.max_qp_wr / 2));
  // At least two receives: with one, the peer's next message could arrive before it is given back.
  receives_ = std::clamp<uint32_t>(plan_.rx_depth, 2, std::max(2u, limits.max_qp_wr));
  receives_ = std::min(receives_, std::max(2u, limits.max_cqe));

  Expected<uint32_t> inline_limit = device_.MaxInlineBytes();
  if (!inline_limit) return Fail(std::move(inline_limit.error()));
  if (plan_.inline_mode.kind == InlineKind::kBytes && plan_.inline_mode.bytes > *inline_limit) {
    return Fail(SetupError(fmt::format("--inline {} is above the limit of {}, {} bytes",
                                       plan_.inline_mode.bytes, device_.info().name, *inline_limit),
                           "", fmt::format("use --inline {} or --inline auto", *inline_limit)));
  }
  const uint32_t inline_up_to = plan_.inline_mode.kind == InlineKind::kAuto ? *inline_limit
                                : plan_.inline_mode.kind == InlineKind::kBytes
                                    ? plan_.inline_mode.bytes
                                    : 0;
  send_inline_ = !round_trip_ && options_.size_bytes > 0 && options_.size_bytes <= inline_up_to;

  if (options_.wait.uses_events()) {
    Expected<CompChannel> channel = device_.CreateCompChannel();
    if (!channel) return Fail(std::move(channel.error()));
    channel_ = std::move(*channel);
  }
  Expected<Cq> send_cq = device_.CreateCq({.cqe = signal_every_ * 2,
                                           .channel = round_trip_ ? channel_.get() : nullptr,
                                           .comp_vector = round_trip_ ? options_.comp_vector : 0});
  if (!send_cq) return Fail(std::move(send_cq.error()));
  send_cq_ = std::move(*send_cq);
  Expected<Cq> recv_cq = device_.CreateCq(
      {.cqe = receives_, .channel = channel_.get(), .comp_vector = options_.comp_vector});
  if (!recv_cq) return Fail(std::move(recv_cq.error()));
  recv_cq_ = std::move(*recv_cq);

  Expected<CreatedQp> qp = device_.CreateQp(
      {.pd = pd_.get(),
       .send_cq = send_cq_.get(),
       .recv_cq = recv_cq_.get(),
       .max_send_wr = signal_every_ * 2,
       .max_recv_wr = receives_,
       .max_inline_bytes = send_inline_ ? static_cast<uint32_t>(options_.size_bytes) : 0});
  if (!qp) return Fail(std::move(qp.error()));
  qp_ = std::move(qp->qp);
  return {};
}

EndpointInfo Endpoint::Info() const {
  EndpointInfo info;
  info.qps.push_back({.qpn = qp_->qp_num, .psn = psn_, .blob = device_.PeerBlob(qp_.get())});
  info.lid = options_.path.port.lid;
  info.gid = options_.path.gid;
  info.mtu_bytes = options_.path.path_mtu_bytes;
  info.rd_atomic = ServedAtOnce(device_, plan_);
  info.wants_solicited = options_.wait.kind == WaitKind::kSolicited;
  if (mr_) {
    info.rkey = mr_->rkey;
    info.address = reinterpret_cast<uintptr_t>(buffer_->bytes().data());
    info.buffer_bytes = buffer_->bytes().size();
  }
  return info;
}

Status Endpoint::PostReceives() {
  if (round_trip_) return {};
  ibv_recv_wr request = {};
  request.wr_id = kRecvWrId;
  request.sg_list = options_.size_bytes > 0 ? &recv_sge_ : nullptr;
  request.num_sge = options_.size_bytes > 0 ? 1 : 0;
  for (uint32_t i = 0; i < receives_; ++i) {
    ibv_recv_wr* bad = nullptr;
    const int result = ibv_post_recv(qp_.get(), &request, &bad);
    if (result != 0) {
      return Fail(CallError(ErrorClass::kSetup, "ibv_post_recv",
                            fmt::format("receive {} of {}", i + 1, receives_), result));
    }
  }
  return {};
}

Status Endpoint::Connect(const EndpointInfo& remote) {
  if (Status status = ConnectQp(device_, qp_.get(), psn_, plan_, options_.path, remote, 0);
      !status) {
    return status;
  }
  BuildWork(remote);
  return {};
}

void Endpoint::BuildWork(const EndpointInfo& remote) {
  if (!round_trip_) {
    BuildPingPong(remote.wants_solicited);
    return;
  }
  request_ = {};
  request_.wr_id = kSendWrId;
  request_.opcode = IBV_WR_RDMA_READ;
  request_.sg_list = options_.size_bytes > 0 ? &recv_sge_ : nullptr;
  request_.num_sge = options_.size_bytes > 0 ? 1 : 0;
  request_.send_flags = IBV_SEND_SIGNALED;
  request_.wr.rdma.remote_addr = remote.address;
  request_.wr.rdma.rkey = remote.rkey;
}

void Endpoint::BuildPingPong(bool solicited) {
  send_ = {};
  send_.wr_id = kSendWrId;
  send_.opcode = IBV_WR_SEND;
  send_.sg_list = options_.size_bytes > 0 ? &send_sge_ : nullptr;
  send_.num_sge = options_.size_bytes > 0 ? 1 : 0;
  unsigned flags = 0;
  if (send_inline_) flags |= IBV_SEND_INLINE;
  if (solicited) flags |= IBV_SEND_SOLICITED;
  send_.send_flags = flags;
  signalled_send_ = send_;
  signalled_send_.send_flags = flags | IBV_SEND_SIGNALED;

  recv_batch_.assign(std::clamp<uint32_t>(receives_ / 2, 1, kMaxRecvBatch), ibv_recv_wr{});
  for (size_t i = 0; i < recv_batch_.size(); ++i) {
    ibv_recv_wr& request = recv_batch_[i];
    request.wr_id = kRecvWrId;
    request.sg_list = options_.size_bytes > 0 ? &recv_sge_ : nullptr;
    request.num_sge = options_.size_bytes > 0 ? 1 : 0;
    request.next = i + 1 < recv_batch_.size() ? &recv_batch_[i + 1] : nullptr;
  }
}

PingPongSetup Endpoint::PingPong(StopSignal& stop, IntervalRecorder& recorder) {
  return {.device = &device_,
          .qp = qp_.get(),
          .send_cq = send_cq_.get(),
          .recv_cq = recv_cq_.get(),
          .send = &send_,
          .signalled_send = &signalled_send_,
          .recv_batch = recv_batch_,
          .signal_every = signal_every_,
          .state = &state_,
          .stop = &stop,
          .recorder = &recorder};
}

RoundTripSetup Endpoint::RoundTrips(StopSignal& stop, IntervalRecorder& recorder) {
  return {.device = &device_,
          .qp = qp_.get(),
          .send_cq = send_cq_.get(),
          .recv_cq = recv_cq_.get(),
          .request = &request_,
          .stop = &stop,
          .recorder = &recorder};
}

Status Endpoint::Close() {
  Status first;
  const auto note = [&first](Status status) {
    if (!status && first) first = std::move(status);
  };
  note(qp_.Close());
  note(recv_cq_.Close());
  note(send_cq_.Close());
  note(channel_.Close());
  note(mr_.Close());
  buffer_.reset();
  note(pd_.Close());
  return first;
}

}  // namespace verbscope
