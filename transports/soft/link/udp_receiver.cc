#include "transports/soft/link/udp_receiver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transports/soft/link/udp_sender.h"
#include "transports/soft/link/udp_socket.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace verbscope::soft {
namespace {

constexpr uint8_t kEcnMask = 3;  // both bits set: congestion experienced

// The address and port of who sent a datagram; false: of no family of ours.
bool ReadSource(const sockaddr_storage& from, UdpPair& pair, uint16_t& port) {
  if (from.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &from, sizeof(v4));
    pair.peer = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    std::memcpy(pair.peer.data() + 12, &v4.sin_addr, 4);
    port = ntohs(v4.sin_port);
    return true;
  }
  if (from.ss_family != AF_INET6) return false;
  sockaddr_in6 v6;
  std::memcpy(&v6, &from, sizeof(v6));
  std::memcpy(pair.peer.data(), &v6.sin6_addr, pair.peer.size());
  port = ntohs(v6.sin6_port);
  return true;
}

struct ControlFacts {
  size_t segment_bytes = 0;
  uint8_t traffic_class = 0;
};

ControlFacts ReadControl(msghdr& message) {
  ControlFacts facts;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      std::memcpy(&facts.traffic_class, CMSG_DATA(c), sizeof(uint8_t));
      continue;
    }
    if (c->cmsg_len < CMSG_LEN(sizeof(int))) continue;
    int value;
    std::memcpy(&value, CMSG_DATA(c), sizeof(value));
    if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      facts.traffic_class = static_cast<uint8_t>(value);
    } else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO && value > 0) {
      facts.segment_bytes = static_cast<size_t>(value);
    }
  }
  return facts;
}

}  // namespace

UdpReceiver::UdpReceiver(UdpPaths& paths, Counters& counters, UdpCounts& counts)
    : paths_(paths),
      counters_(counters),
      counts_(counts),
      due_(Due::kNever),
      buffers_(kBuffers * kBufferBytes) {}

void UdpReceiver::Add(size_t local, int socket) {
  sockets_.push_back({.local = local, .socket = socket});
  SetDue(Due::kYes);
}

void UdpReceiver::Remove(size_t local) {
  for (const Watched& watched : sockets_) {
    if (watched.local == local && watched.merging) SetMerging(watched.socket, false);
  }
  std::erase_if(sockets_, [local](const Watched& s) { return s.local == local; });
  turn_ = 0;
  if (sockets_.empty() && !Kept()) SetDue(Due::kNever);
}

bool UdpReceiver::Pending() const {
  const Due due = due_.load(std::memory_order_relaxed);
  if (due != Due::kAfterOneNo) return due == Due::kYes;
  SetDue(Due::kYes);
  return false;
}

size_t UdpReceiver::Poll(PacketReceiver& receiver, size_t budget) {
  if (!Kept() && !Look()) return 0;
  size_t taken = 0;
  while (Kept() && taken < budget) taken += DeliverCurrent(receiver, budget - taken);
  return taken;
}

bool UdpReceiver::Look() {
  if (sockets_.empty()) {
    SetDue(Due::kNever);
    return false;
  }
  Watched& socket = sockets_[turn_];
  if (++turn_ >= sockets_.size()) turn_ = 0;
  const int got = Receive(socket.socket, next_look_);
  if (got <= 0) {
    next_look_ = 1;
    found_last_ = false;
    SetDue(Due::kAfterOneNo);
    return false;
  }
  filled_ = static_cast<size_t>(got);
  current_ = 0;
  opened_ = false;
  pair_.local = socket.local;
  // A packet now and then is not a crowd.
  if (found_last_ && filled_ == next_look_) next_look_ = std::min(2 * next_look_, kBuffers);
  found_last_ = true;
  AdaptMerging(socket, filled_);
  SetDue(Due::kYes);
  return true;
}

void UdpReceiver::AdaptMerging(Watched& socket, size_t found) {
  if (!socket.merging) {
    if (found < kBuffers || !socket.can_merge) [[likely]]
      return;
    socket.merging = socket.can_merge = SetMerging(socket.socket, true);
    socket.singles = 0;
    return;
  }
  const bool single = found == 1 && messages_[0].msg_len <= kMaxUdpPacket;
  socket.singles = single ? socket.singles + 1 : 0;
  if (socket.singles < kFewPackets) return;
  SetMerging(socket.socket, false);
  socket.merging = false;
}

void UdpReceiver::Prepare(size_t buffer) {
  pieces_[buffer] = {.iov_base = buffers_.data() + buffer * kBufferBytes, .iov_len = kBufferBytes};
  msghdr& message = messages_[buffer].msg_hdr;
  message.msg_name = &sources_[buffer];
  message.msg_namelen = sizeof(sources_[buffer]);
  message.msg_iov = &pieces_[buffer];
  message.msg_iovlen = 1;
  message.msg_control = controls_[buffer].bytes;
  message.msg_controllen = sizeof(controls_[buffer].bytes);
  message.msg_flags = 0;
}

// Returns how many buffers were filled.
int UdpReceiver::Receive(int socket, size_t buffers) {
  for (size_t i = 0; i < buffers; ++i) Prepare(i);
  if (buffers > 1) {
    return ::recvmmsg(socket, messages_.data(), static_cast<unsigned>(buffers), MSG_DONTWAIT,
                      nullptr);
  }
  const ssize_t got = ::recvmsg(socket, &messages_[0].msg_hdr, MSG_DONTWAIT);
  if (got < 0) return -1;
  messages_[0].msg_len = static_cast<unsigned>(got);
  return 1;
}

void UdpReceiver::Open(size_t buffer) {
  msghdr& message = messages_[buffer].msg_hdr;
  const ControlFacts facts = ReadControl(message);
  const size_t bytes = std::min<size_t>(messages_[buffer].msg_len, kBufferBytes);
  datagram_ = Datagram({buffers_.data() + buffer * kBufferBytes, bytes}, facts.segment_bytes);
  if ((facts.traffic_class & kEcnMask) == kEcnMask) [[unlikely]] {
    counts_.ecn_marked += datagram_.packets_left();
  }
  if (!ReadSource(sources_[buffer], pair_, source_port_)) pair_.peer = {};
  opened_ = true;
}

size_t UdpReceiver::DeliverCurrent(PacketReceiver& receiver, size_t budget) {
  if (!opened_) Open(current_);
  size_t taken = 0;
  // Found again with each call: paths come and go between two of them.
  const PathId id = paths_.Find(pair_);
  if (id == kNoPath) [[unlikely]] {
    counts_.unknown_source += datagram_.packets_left();
    datagram_ = Datagram();
    datagram_.Take();
    taken = 1;
  } else {
    ArrivalState& arrivals = paths_.Find(id)->arrivals;
    arrivals.flow.source_port = source_port_;
    arrivals.known = true;
    taken = DeliverPackets(datagram_, id, arrivals, receiver, budget, counters_, counts_);
  }
  if (datagram_.done()) {
    ++current_;
    opened_ = false;
  }
  return taken;
}

}  // namespace verbscope::soft
