#include "transports/soft/link/udp_sender.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <cerrno>
#include <cstring>

#include "transports/soft/engine/dma.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace verbscope::soft {
namespace {

constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

bool NoRoom(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

UdpSender::UdpSender(Counters& counters, UdpCounts& counts)
    : counters_(counters), counts_(counts), slots_(kSlots * kSlotBytes) {}

size_t UdpSender::Write(const Header& header, PayloadPieces pieces, std::byte* to) {
  size_t payload = header.pad & 3U;
  for (const auto& piece : pieces) payload += piece.size();
  if (payload > kMaxUdpPayload + 3) return 0;
  const size_t head = Encode(header, to);
  std::byte* at = to + head;
  for (const auto& piece : pieces) {
    if (piece.empty()) continue;  // its pointer may be null
    DmaCopy(at, piece.data(), piece.size());
    at += piece.size();
  }
  std::memset(at, 0, header.pad & 3U);
  return head + payload;
}

size_t UdpSender::AddToRun(UdpFlow& flow, uint32_t qpn, size_t bytes, bool may_join) {
  sizes_[tail_] = static_cast<uint32_t>(bytes);
  if (may_join && flow.bursts && run_tail_ > run_head_) {
    Run& last = runs_[run_tail_ - 1];
    if (last.flow == &flow && last.qpn == qpn && !last.closed && bytes <= last.size &&
        last.count < kMaxBurst && last.bytes + bytes <= kMaxBurstBytes) {
      last.closed = bytes < last.size;
      last.bytes += static_cast<uint32_t>(bytes);
      ++tail_;
      return last.count++;
    }
  }
  runs_[run_tail_++] = {.flow = &flow,
                        .qpn = qpn,
                        .first = static_cast<uint32_t>(tail_),
                        .count = 1,
                        .size = static_cast<uint32_t>(bytes),
                        .bytes = static_cast<uint32_t>(bytes),
                        .closed = !may_join,
                        .single = false};
  ++tail_;
  return 0;
}

bool UdpSender::Send(UdpFlow& flow, const Header& header, PayloadPieces pieces) {
  if (!HasRoom()) {
    Flush();
    if (!HasRoom()) return false;
  }
  std::byte* packet = Slot(tail_);
  const size_t covered = Write(header, pieces, packet);
  if (covered == 0) {
    counts_.last_send_errno = EMSGSIZE;
    ++counters_.send_err;
    return true;
  }
  const size_t place = AddToRun(flow, header.dest_qpn, covered + kIcrcBytes, /*may_join=*/true);
  const auto id = static_cast<uint16_t>(flow.ipv4 ? place : 0);
  StoreIcrc(packet + covered, flow.icrcs.Of(flow.flow, {packet, covered}, id));
  // A whole burst leaves at once: the receiver can begin with it, and its bytes are still in cache.
  const Run& run = runs_[run_tail_ - 1];
  const bool whole = run.count > 1 && (run.count == kMaxBurst || run.closed ||
                                       run.bytes + run.size > kMaxBurstBytes);
  if (whole || !HasRoom()) Flush();
  return true;
}

bool UdpSender::SendRaw(UdpFlow& flow, std::span<const std::byte> packet) {
  if (packet.size() > kMaxUdpPacket) {
    counts_.last_send_errno = EMSGSIZE;
    ++counters_.send_err;
    return true;
  }
  if (!HasRoom()) {
    Flush();
    if (!HasRoom()) return false;
  }
  if (!packet.empty()) std::memcpy(Slot(tail_), packet.data(), packet.size());
  // Its ICRC is for ID 0 or wrong on purpose, so it stands alone.
  AddToRun(flow, /*qpn=*/0, packet.size(), /*may_join=*/false);
  if (!HasRoom()) Flush();
  return true;
}

void UdpSender::Flush() {
  while (run_head_ < run_tail_) {
    if (!SendFront()) {
      ++counts_.blocked;
      blocked_ = true;
      return;
    }
  }
  blocked_ = false;
  run_head_ = run_tail_ = 0;
  tail_ = 0;
}

int UdpSender::blocked_socket() const {
  if (!blocked_) return -1;
  for (size_t i = run_head_; i < run_tail_; ++i) {
    if (runs_[i].flow != nullptr) return runs_[i].flow->socket->fd.get();
  }
  return -1;
}

void UdpSender::Forget(const UdpFlow& flow) {
  for (size_t i = run_head_; i < run_tail_; ++i) {
    if (runs_[i].flow != &flow) continue;
    counters_.send_err += runs_[i].count;
    runs_[i].flow = nullptr;
  }
}

bool UdpSender::SendFront() {
  Run& run = runs_[run_head_];
  if (run.flow == nullptr) {
    ++run_head_;
    return true;
  }
  // One packet, nothing behind it: what a ping-pong does. The plain call is the fastest.
  if (run.count == 1 && run_head_ + 1 == run_tail_) return SendOnePacket(run);
  return SendMessages();
}

bool UdpSender::SendOnePacket(Run& run) {
  const UdpFlow& flow = *run.flow;
  const ssize_t sent = ::sendto(flow.socket->fd.get(), Slot(run.first), sizes_[run.first], kFlags,
                                flow.to.generic(), flow.to.size);
  if (sent >= 0) {
    ConsumeFront();
    return true;
  }
  return HandleError(errno);
}

bool UdpSender::SendMessages() {
  const int socket = runs_[run_head_].flow->socket->fd.get();
  const size_t count = FillMessages();
  const int sent = ::sendmmsg(socket, messages_.data(), static_cast<unsigned>(count), kFlags);
  if (sent < 0) return HandleError(errno);
  for (int i = 0; i < sent; ++i) ConsumeFront();
  return true;
}

// Messages for the runs at the front that use one socket.
size_t UdpSender::FillMessages() {
  const SendSocket* socket = runs_[run_head_].flow->socket.get();
  size_t count = 0;
  for (size_t i = run_head_; i < run_tail_; ++i) {
    Run& run = runs_[i];
    if (run.flow == nullptr || run.flow->socket.get() != socket) break;
    if (!run.single) {
      FillMessage(count++, run, run.first, run.count);
      continue;
    }
    for (size_t k = 0; k < run.count; ++k) FillMessage(count++, run, run.first + k, 1);
  }
  return count;
}

void UdpSender::FillMessage(size_t index, Run& run, size_t first, size_t count) {
  for (size_t slot = first; slot < first + count; ++slot) {
    pieces_[slot] = {.iov_base = Slot(slot), .iov_len = sizes_[slot]};
  }
  msghdr& message = messages_[index].msg_hdr;
  message = {};
  message.msg_name = const_cast<sockaddr*>(run.flow->to.generic());
  message.msg_namelen = run.flow->to.size;
  message.msg_iov = &pieces_[first];
  message.msg_iovlen = count;
  if (count == 1) return;
  Control& control = controls_[index];
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  cmsghdr* segment = CMSG_FIRSTHDR(&message);
  segment->cmsg_level = IPPROTO_UDP;
  segment->cmsg_type = UDP_SEGMENT;
  segment->cmsg_len = CMSG_LEN(sizeof(uint16_t));
  const auto size = static_cast<uint16_t>(run.size);
  std::memcpy(CMSG_DATA(segment), &size, sizeof(size));
}

void UdpSender::ConsumeFront() {
  Run& run = runs_[run_head_];
  if (run.single && run.count > 1) {
    ++run.first;
    --run.count;
    return;
  }
  if (run.count > 1) ++counts_.bursts;
  ++run_head_;
}

bool UdpSender::HandleError(int error) {
  if (error == EINTR) return true;
  if (NoRoom(error)) return false;
  Run& run = runs_[run_head_];
  if (run.count > 1 && !run.single) {
    // Not all devices take bursts (EIO, EINVAL); and of packets that are too long, or have no way,
    // each is told so in its own right.
    ++counts_.bursts_refused;
    if (error == EIO || error == EINVAL || error == EOPNOTSUPP) run.flow->bursts = false;
    MakeSingle(run);
    return true;
  }
  counts_.last_send_errno = error;
  ++counters_.send_err;
  ConsumeFront();
  return true;
}

void UdpSender::MakeSingle(Run& run) {
  run.single = run.closed = true;
  if (!run.flow->ipv4) return;
  for (size_t slot = run.first; slot < run.first + run.count; ++slot) {
    const size_t covered = sizes_[slot] - kIcrcBytes;
    std::byte* packet = Slot(slot);
    StoreIcrc(packet + covered, TransportIcrc(run.flow->flow, {packet, covered}));
  }
}

}  // namespace verbscope::soft
