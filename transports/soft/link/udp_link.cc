// The making of a link, and what does not belong to its sending or receiving half alone.
#include "transports/soft/link/udp_link.h"

#include <fmt/core.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/error.h"

namespace verbscope::soft {

UdpLink::UdpLink(UdpOptions options, DeviceLock& lock, Counters& counters)
    : lock_(lock),
      counters_(counters),
      options_(std::move(options)),
      sender_(counters, counts_),
      receiver_(paths_, counters, counts_),
      paths_of_local_(options_.locals.size()) {}

UdpLink::~UdpLink() { sender_.Flush(); }

Expected<std::unique_ptr<UdpLink>> UdpLink::Create(UdpOptions options, DeviceLock& lock,
                                                   Counters& counters) {
  std::unique_ptr<UdpLink> link(new UdpLink(std::move(options), lock, counters));
  if (Status opened = link->Open(); !opened) return Fail(std::move(opened.error()));
  return link;
}

Status UdpLink::Open() {
  if (options_.locals.empty() || options_.locals.size() > kMaxUdpLocals) {
    return Fail(
        SetupError(fmt::format("a UDP link cannot have {} addresses", options_.locals.size()),
                   fmt::format("it has one to {}", kMaxUdpLocals), "give one with addr="));
  }
  epoll_.Reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return Fail(CallError(ErrorClass::kSetup, "epoll_create1", "", errno));
  for (BoundSocket& local : options_.locals) {
    if (Status opened = OpenLocal(local); !opened) return opened;
  }
  return {};
}

Status UdpLink::OpenLocal(BoundSocket& local) {
  if (!local.socket) {
    Expected<BoundSocket> bound = BindAlone(local.address);
    if (!bound) return Fail(std::move(bound.error()));
    local.socket = std::move(bound->socket);
  }
  const Expected<ReceiveSetup> setup =
      PrepareReceive(local.socket.get(), local.address.IsIpv4(), options_.buffer_bytes);
  if (!setup) return Fail(setup.error());
  const bool first = &local == &options_.locals.front();
  receive_buffer_bytes_ =
      first ? setup->buffer_bytes : std::min(receive_buffer_bytes_, setup->buffer_bytes);
  drops_before_.push_back(SocketDrops(local.socket.get()));
  if (setup->buffer_bytes < options_.buffer_bytes) {
    notices_.push_back(fmt::format(
        "the receive buffer of {} is {} bytes, {} were asked for: packets may be dropped under "
        "load (sysctl net.core.rmem_max)",
        local.address.ToText(), setup->buffer_bytes, options_.buffer_bytes));
  }
  if (!setup->merges) {
    notices_.push_back(
        "this kernel does not merge UDP packets on receive (UDP_GRO): large "
        "messages are slower");
  }
  return {};
}

std::vector<std::byte> UdpLink::LocalBlob() const {
  UdpAddresses addresses;
  for (const BoundSocket& local : options_.locals) addresses.push_back(local.address.gid);
  return EncodeUdpBlob(addresses);
}

bool UdpLink::Send(PathId path, const Header& header, PayloadPieces payload) {
  UdpPath* to = paths_.Find(path);
  if (to == nullptr) [[unlikely]] {
    ++counters_.send_err;
    return true;
  }
  return sender_.Send(to->FlowOf(header.dest_qpn), header, payload);
}

bool UdpLink::SendRaw(PathId path, std::span<const std::byte> packet) {
  UdpPath* to = paths_.Find(path);
  if (to == nullptr) {
    ++counters_.send_err;
    return true;
  }
  return sender_.SendRaw(*to->flows.front(), packet);
}

bool UdpLink::CanSend(PathId path) const {
  return sender_.HasRoom() || paths_.Find(path) == nullptr;
}

void UdpLink::Flush() { sender_.Flush(); }

size_t UdpLink::Poll(PacketReceiver& receiver, size_t budget) {
  if (sender_.blocked()) [[unlikely]] {
    sender_.Flush();
  }
  return receiver_.Poll(receiver, budget);
}

const Flow* UdpLink::SendFlow(PathId path) const {
  const UdpPath* found = paths_.Find(path);
  return found == nullptr ? nullptr : &found->flows.front()->flow;
}

const Flow* UdpLink::SendFlow(PathId path, uint32_t peer_qpn) const {
  UdpPath* found = paths_.Find(path);
  return found == nullptr ? nullptr : &found->FlowOf(peer_qpn).flow;
}

const Flow* UdpLink::ReceiveFlow(PathId path) const {
  const UdpPath* found = paths_.Find(path);
  return found != nullptr && found->arrivals.known ? &found->arrivals.flow : nullptr;
}

bool UdpLink::PrepareSleep() {
  if (Kept()) return false;
  Watch();  // level-triggered: what came before makes wait_fd readable as well
  return true;
}

void UdpLink::SetWatched(int socket, bool on) {
  epoll_event event = {.events = EPOLLIN, .data = {.fd = socket}};
  ::epoll_ctl(epoll_.get(), on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, socket, &event);
}

void UdpLink::Watch() {
  if (watchers_++ != 0) return;
  for (const UdpReceiver::Watched& watched : receiver_.watched()) SetWatched(watched.socket, true);
  watched_sender_ = sender_.blocked_socket();
  if (watched_sender_ < 0) return;
  epoll_event event = {.events = EPOLLOUT, .data = {.fd = watched_sender_}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, watched_sender_, &event);
}

void UdpLink::Unwatch() {
  if (--watchers_ != 0) return;
  for (const UdpReceiver::Watched& watched : receiver_.watched()) SetWatched(watched.socket, false);
  if (watched_sender_ >= 0) SetWatched(std::exchange(watched_sender_, -1), false);
}

std::optional<IcrcProof> UdpLink::proof(PathId path) const {
  const UdpPath* found = paths_.Find(path);
  return found == nullptr ? std::nullopt : found->arrivals.proof;
}

UdpPathReport UdpLink::Report(PathId path, uint32_t peer_qpn) const {
  UdpPath* found = paths_.Find(path);
  if (found == nullptr) return {};
  const UdpFlow& flow = found->FlowOf(peer_qpn);
  return {.netdev = found->route.netdev,
          .interface_mtu_bytes = found->route.mtu_bytes,
          .source_port = flow.flow.source_port,
          .bursts = flow.bursts,
          .flow_label_refused = flow.label_refused,
          .proof = found->arrivals.proof};
}

uint64_t UdpLink::Drops() const {
  uint64_t drops = 0;
  for (size_t i = 0; i < options_.locals.size(); ++i) {
    // The system counts in 32 bits.
    drops += static_cast<uint32_t>(SocketDrops(options_.locals[i].socket.get()) - drops_before_[i]);
  }
  return drops;
}

UdpCounts UdpLink::counts() const {
  UdpCounts counts = counts_;
  counts.receive_drops = Drops();
  return counts;
}

}  // namespace verbscope::soft
