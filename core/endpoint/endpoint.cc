#include "core/endpoint/endpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/endpoint/payload.h"

namespace verbscope {
namespace {

constexpr uint64_t kCacheLine = 64;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kGuardBytes = 64;

// Room for `bytes` and the guard behind them; large parts begin on pages.
uint64_t PartBytes(uint64_t bytes) {
  const uint64_t unit = bytes >= kPage ? kPage : kCacheLine;
  return (std::max<uint64_t>(bytes, 1) + kGuardBytes + unit - 1) / unit * unit;
}

}  // namespace

Expected<std::unique_ptr<Endpoint>> Endpoint::Create(Device& device, const Plan& plan,
                                                     const EndpointOptions& options) {
  std::unique_ptr<Endpoint> endpoint(new Endpoint(device, plan, options));
  endpoint->ChooseDepths();
  if (Status status = endpoint->CreateMemory(); !status) return Fail(std::move(status.error()));
  if (Status status = endpoint->CreateQueues(); !status) return Fail(std::move(status.error()));
  for (const Qp& qp : endpoint->qps_) {
    Status status = ToInit(device, qp.get(), plan, options.path, endpoint->Access());
    if (!status) return Fail(std::move(status.error()));
    endpoint->psns_.push_back(RandomPsn());
  }
  return endpoint;
}

// Nothing of ours is open to more than what the command does.
int Endpoint::Access() const {
  switch (operation_.verb) {
    case Verb::kSend:
      return 0;
    case Verb::kWrite:
      return IBV_ACCESS_REMOTE_WRITE;
    case Verb::kRead:
      return IBV_ACCESS_REMOTE_READ;
    case Verb::kAtomic:
      return IBV_ACCESS_REMOTE_ATOMIC;
  }
  return 0;
}

// All receives, and all requests, share one part of the buffer each: what they carry is not told
// apart, and a ping-pong's message is read before the next one can arrive.
Status Endpoint::CreateMemory() {
  const PortInfo& port = options_.path.port;
  if (options_.size_bytes > port.max_message_bytes) {
    return Fail(SetupError(fmt::format("a message of {} bytes is above the limit of port {}, {} "
                                       "bytes",
                                       options_.size_bytes, port.number, port.max_message_bytes),
                           "", "choose a smaller --size"));
  }
  if (operation_.verb == Verb::kAtomic && !device_.info().limits.atomics) {
    return Fail(SetupError(fmt::format("{} has no Atomics", device_.info().name),
                           "the device's atomic_cap says so", "choose another device"));
  }
  Expected<Pd> pd = device_.AllocatePd();
  if (!pd) return Fail(std::move(pd.error()));
  pd_ = std::move(*pd);
  // For one-sided operations an address and a key to name are needed for nothing, too.
  if (options_.size_bytes == 0 && operation_.verb == Verb::kSend) return {};

  received_offset_ = PartBytes(options_.size_bytes);
  const uint64_t landing =
      operation_.verb == Verb::kAtomic ? depth_ * sizeof(uint64_t) : options_.size_bytes;
  Expected<std::unique_ptr<Buffer>> buffer =
      device_.AllocateBuffer({.bytes = received_offset_ + PartBytes(landing),
                              .numa_node = options_.numa_node,
                              .huge_pages = options_.huge_pages});
  if (!buffer) return Fail(std::move(buffer.error()));
  buffer_ = std::move(*buffer);
  Expected<Mr> mr =
      device_.RegisterMemory(pd_.get(), buffer_->bytes(), IBV_ACCESS_LOCAL_WRITE | Access());
  if (!mr) return Fail(std::move(mr.error()));
  mr_ = std::move(*mr);
  std::ranges::fill(buffer_->bytes(), std::byte{0});  // where Atomics begin to count
  std::ranges::fill(guard_part(), kGuardByte);

  const auto address = reinterpret_cast<uintptr_t>(buffer_->bytes().data());
  send_sge_ = {
      .addr = address, .length = static_cast<uint32_t>(options_.size_bytes), .lkey = mr_->lkey};
  recv_sge_ = send_sge_;
  recv_sge_.addr = address + received_offset_;
  return {};
}

std::span<std::byte> Endpoint::sent_part() const {
  return buffer_ ? buffer_->bytes().first(options_.size_bytes) : std::span<std::byte>();
}

std::span<std::byte> Endpoint::received_part() const {
  return buffer_ ? buffer_->bytes().subspan(received_offset_, options_.size_bytes)
                 : std::span<std::byte>();
}

std::span<std::byte> Endpoint::guard_part() const {
  if (!buffer_ || operation_.verb == Verb::kAtomic) return {};
  return buffer_->bytes().subspan(received_offset_ + options_.size_bytes, kGuardBytes);
}

void Endpoint::ChooseDepths() {
  const DeviceLimits& limits = device_.info().limits;
  const uint32_t most = std::max(2u, limits.max_qp_wr);
  const bool in_flight = streams() || plan_.rate_per_s > 0;
  signal_every_ = plan_.signal_every != 0 ? plan_.signal_every : kDefaultSignalEvery;
  if (!streams()) signal_every_ = std::clamp<uint32_t>(signal_every_, 1, std::max(1u, most / 4));
  // Beside the messages in flight: credits, or two periods of an open loop.
  const uint32_t beside = streams() ? kCreditSlots : 2 * signal_every_;
  depth_ = in_flight ? std::min(plan_.tx_depth, most - std::min(most - 1, beside)) : 1;
  if (streams()) {
    // A queue that has no room for another list must hold a signalled request.
    const uint32_t list = std::min(plan_.post_list, depth_);
    if (plan_.signal_every == 0) signal_every_ = std::min(kStreamSignalEvery, depth_ / 2);
    signal_every_ = std::clamp<uint32_t>(signal_every_, 1, depth_ - list + 1);
  }
  if (!operation_.takes_receives) return;
  // What a loop takes back in batches is missing meanwhile, and the peer may have its whole depth
  // in flight.
  const uint32_t spare = streams() ? kCreditReceives : in_flight ? kMaxRecvBatch : 0;
  // At least two receives for a ping-pong: with one, the peer's next message could arrive before it
  // is given back.
  receives_ = std::clamp<uint32_t>(plan_.rx_depth + spare, 2, std::min(most, limits.max_cqe));
  data_receives_ = receives_ - std::min(spare, receives_ - 1);
}

Status Endpoint::ChooseInline() {
  Expected<uint32_t> inline_limit = device_.MaxInlineBytes();
  if (!inline_limit) return Fail(std::move(inline_limit.error()));
  const InlineMode& mode = plan_.inline_mode;
  if (mode.kind == InlineKind::kBytes && mode.bytes > *inline_limit) {
    return Fail(SetupError(fmt::format("--inline {} is above the limit of {}, {} bytes", mode.bytes,
                                       device_.info().name, *inline_limit),
                           "", fmt::format("use --inline {} or --inline auto", *inline_limit)));
  }
  const uint32_t up_to = mode.kind == InlineKind::kAuto    ? *inline_limit
                         : mode.kind == InlineKind::kBytes ? mode.bytes
                                                           : 0;
  const bool carries = operation_.verb == Verb::kSend || operation_.verb == Verb::kWrite;
  send_inline_ = carries && options_.size_bytes > 0 && options_.size_bytes <= up_to;
  return {};
}

Status Endpoint::CreateQueues() {
  if (Status status = ChooseInline(); !status) return status;
  uint32_t send_wr = depth_;
  if (streams()) send_wr += operation_.takes_receives ? kCreditSlots : 0;
  if (!streams() && operation_.shape != LoopShape::kRoundTrip) {
    send_wr = 2 * signal_every_ + (depth_ > 1 ? depth_ : 0);
  }
  const uint32_t recv_wr = std::max(receives_, 1u);
  if (Status status = CreateCqs(send_wr, recv_wr); !status) return status;
  for (uint32_t i = 0; i < plan_.qps; ++i) {
    Expected<CreatedQp> qp = device_.CreateQp(
        {.pd = pd_.get(),
         .send_cq = send_cq(),
         .recv_cq = recv_cq(),
         .max_send_wr = send_wr,
         .max_recv_wr = recv_wr,
         .max_inline_bytes = send_inline_ ? static_cast<uint32_t>(options_.size_bytes) : 0});
    if (!qp) return Fail(std::move(qp.error()));
    qps_.push_back(std::move(qp->qp));
  }
  return {};
}

Status Endpoint::CreateCqs(uint32_t send_wr, uint32_t recv_wr) {
  if (options_.wait.uses_events()) {
    Expected<CompChannel> channel = device_.CreateCompChannel();
    if (!channel) return Fail(std::move(channel.error()));
    channel_ = std::move(*channel);
  }
  const uint64_t entries = one_cq() ? (uint64_t{send_wr} + recv_wr) * plan_.qps : send_wr;
  if (const uint32_t most = device_.info().limits.max_cqe; entries > most) {
    return Fail(SetupError(fmt::format("a CQ of {} entries is above the limit of {}, {}", entries,
                                       device_.info().name, most),
                           fmt::format("{} QPs with {} sends and {} receives each share it",
                                       plan_.qps, send_wr, recv_wr),
                           "lower --qps, --tx-depth or --rx-depth"));
  }
  // In a ping-pong only receive completions end a wait.
  const bool sends_wake = one_cq() || operation_.shape == LoopShape::kRoundTrip;
  Expected<Cq> send_cq = device_.CreateCq({.cqe = static_cast<uint32_t>(entries),
                                           .channel = sends_wake ? channel_.get() : nullptr,
                                           .comp_vector = sends_wake ? options_.comp_vector : 0});
  if (!send_cq) return Fail(std::move(send_cq.error()));
  send_cq_ = std::move(*send_cq);
  if (one_cq()) return Moderate(send_cq_.get());
  Expected<Cq> recv_cq = device_.CreateCq(
      {.cqe = recv_wr, .channel = channel_.get(), .comp_vector = options_.comp_vector});
  if (!recv_cq) return Fail(std::move(recv_cq.error()));
  recv_cq_ = std::move(*recv_cq);
  return Moderate(recv_cq_.get());
}

Status Endpoint::Moderate(ibv_cq* cq) {
  if (plan_.moderations.empty() || !channel_) return {};
  const Moderation moderation = plan_.moderations.front();
  return device_.ModerateCq(cq, moderation.count, moderation.period_us);
}

EndpointInfo Endpoint::Info() const {
  EndpointInfo info;
  for (size_t i = 0; i < qps_.size(); ++i) {
    info.qps.push_back(
        {.qpn = qps_[i]->qp_num, .psn = psns_[i], .blob = device_.PeerBlob(qps_[i].get())});
  }
  info.lid = options_.path.port.lid;
  info.gid = options_.path.gid;
  info.mtu_bytes = options_.path.path_mtu_bytes;
  info.rd_atomic = ServedAtOnce(device_, plan_);
  info.receives = data_receives_;
  info.wants_solicited = options_.wait.kind == WaitKind::kSolicited;
  if (mr_) {
    info.rkey = mr_->rkey;
    info.address = reinterpret_cast<uintptr_t>(buffer_->bytes().data());
    info.buffer_bytes = buffer_->bytes().size();
  }
  return info;
}

Status Endpoint::PostReceives() {
  for (size_t qp = 0; qp < qps_.size(); ++qp) {
    ibv_recv_wr request = ReceiveRequest(qp);
    for (uint32_t i = 0; i < receives_; ++i) {
      ibv_recv_wr* bad = nullptr;
      const int result = ibv_post_recv(qps_[qp].get(), &request, &bad);
      if (result != 0) {
        return Fail(CallError(ErrorClass::kSetup, "ibv_post_recv",
                              fmt::format("receive {} of {}", i + 1, receives_), result));
      }
    }
  }
  return {};
}

Status Endpoint::Connect(const EndpointInfo& remote) {
  for (size_t i = 0; i < qps_.size(); ++i) {
    Status status = ConnectQp(device_, qps_[i].get(), psns_[i], plan_, options_.path, remote, i);
    if (!status) return status;
  }
  BuildSend(remote);
  recv_batches_.resize(qps_.size());
  for (size_t i = 0; i < qps_.size(); ++i) BuildReceives(i);
  if (streams()) BuildStream(remote);
  return {};
}

Status Endpoint::Close() {
  Status first;
  const auto note = [&first](Status status) {
    if (!status && first) first = std::move(status);
  };
  for (Qp& qp : qps_) note(qp.Close());
  note(recv_cq_.Close());
  note(send_cq_.Close());
  note(channel_.Close());
  note(mr_.Close());
  buffer_.reset();
  note(pd_.Close());
  return first;
}

}  // namespace verbscope
