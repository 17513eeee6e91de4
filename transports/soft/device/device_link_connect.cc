// How a device gets its links, and which of them a peer is reached by.
#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "transports/soft/device/device_link.h"

namespace verbscope::soft {
namespace {

Error OtherLink(std::string_view peer, std::string_view own, std::string next_step) {
  return SetupError(
      std::string("the peer's device ") + std::string(peer) + ", and this one " + std::string(own),
      "", std::move(next_step));
}

std::string Reason(const Error& error) {
  return error.cause.empty() ? error.message : error.message + ": " + error.cause;
}

constexpr std::string_view kSameLink = "give both sides link=udp, or both link=memory";

}  // namespace

DeviceLink::DeviceLink(LinkChoice choice, DeviceLock& lock, Counters& counters)
    : lock_(lock),
      counters_(counters),
      gso_(choice.gso),
      port_(std::move(choice.port)),
      no_port_(std::move(choice.no_port)) {}

Expected<std::unique_ptr<DeviceLink>> DeviceLink::Create(LinkChoice choice, DeviceLock& lock,
                                                         Counters& counters) {
  const bool has_memory = choice.memory;
  std::unique_ptr<DeviceLink> link(new DeviceLink(std::move(choice), lock, counters));
  if (!has_memory) {
    if (Status opened = link->OpenUdp(); !opened) return Fail(std::move(opened.error()));
    link->active_udp_.store(link->udp_.get(), std::memory_order_release);
    return link;
  }
  Expected<std::unique_ptr<MemoryLink>> memory = MemoryLink::Create(lock, counters);
  if (!memory) return Fail(std::move(memory.error()));
  link->memory_ = std::move(*memory);
  link->wait_fd_.store(link->memory_->wait_fd(), std::memory_order_relaxed);
  return link;
}

Status DeviceLink::OpenUdp() {
  // A descriptor of the link's own: the port may share its socket with other processes.
  FileDescriptor socket(::fcntl(port_->fd(), F_DUPFD_CLOEXEC, 0));
  if (!socket) return Fail(CallError(ErrorClass::kSetup, "fcntl", "F_DUPFD_CLOEXEC", errno));
  UdpOptions options;
  options.gso = gso_;
  options.locals.push_back({.address = port_->address(), .socket = std::move(socket)});
  Expected<std::unique_ptr<UdpLink>> udp = UdpLink::Create(std::move(options), lock_, counters_);
  if (!udp) return Fail(std::move(udp.error()));
  epoll_.Reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return Fail(CallError(ErrorClass::kSetup, "epoll_create1", "UDP link", errno));
  for (const int fd :
       {(*udp)->wait_fd(), port_->wait_fd(), memory_ != nullptr ? memory_->wait_fd() : -1}) {
    if (Status watched = Watch(fd); !watched) return watched;
  }
  const DeviceLockHolder hold(lock_);
  udp_ = std::move(*udp);
  wait_fd_.store(epoll_.get(), std::memory_order_relaxed);
  return {};
}

Status DeviceLink::Watch(int fd) {
  epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
  if (fd < 0 || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return Fail(CallError(ErrorClass::kSetup, "epoll_ctl", "UDP link", errno));
}

std::vector<std::byte> DeviceLink::LocalBlob() const {
  std::vector<std::byte> memory;
  std::vector<std::byte> udp;
  if (memory_ != nullptr) memory = memory_->LocalBlob();
  if (port_ != nullptr) udp = EncodeUdpBlob({port_->address().gid});
  return EncodeLinkBlob({.memory = memory, .udp = udp, .chooses = chooses()});
}

Status DeviceLink::CheckBlob(std::span<const std::byte> blob) const {
  const std::optional<LinkBlob> peer = ParseLinkBlob(blob);
  if (!peer && !blob.empty()) {
    return Fail(SetupError("the peer's soft device says where it is in a way unknown here",
                           "the two sides are of different versions",
                           "use the same version on both sides"));
  }
  return CheckPeer(peer);
}

// Nullopt: the kernel's software device or an adapter, which UDP reaches as well.
Status DeviceLink::CheckPeer(const std::optional<LinkBlob>& peer) const {
  if (memory_ == nullptr) {
    if (!peer || !peer->udp.empty()) return {};
    return Fail(OtherLink("is a soft device in memory", "is on UDP", std::string(kSameLink)));
  }
  if (!peer) {
    return Fail(OtherLink("is no soft device", "is one of this host alone",
                          "use --device soft on both sides, a real device on both, or here "
                          "--device soft:link=udp,addr=ADDRESS with an address of this host"));
  }
  if (!peer->memory.empty()) return {};
  if (!chooses()) {
    return Fail(OtherLink("is a soft device on UDP", "is in memory", std::string(kSameLink)));
  }
  if (port_ != nullptr) return {};
  return Fail(SetupError("the peer's device is on UDP, which this one cannot use",
                         Reason(*no_port_), no_port_->next_step));
}

Expected<bool> DeviceLink::Choose(const LinkBlob& peer, Deadline deadline) const {
  if (peer.memory.empty()) return true;
  const Expected<Status> reach = memory_->Reach(peer.memory, deadline);
  if (!reach) return Fail(reach.error());
  if (*reach) return false;
  if (!peer.chooses) return Fail(reach->error());
  if (port_ != nullptr && !peer.udp.empty()) return true;
  const std::string no_udp = port_ == nullptr ? "here: " + Reason(*no_port_) : "the peer has none";
  return Fail(SetupError("the two soft devices can share neither memory nor UDP",
                         "memory: " + Reason(reach->error()) + "; UDP: " + no_udp,
                         "run both sides as one user, or give each an address with "
                         "--device soft:link=udp,addr=ADDRESS"));
}

Status DeviceLink::TurnTo(bool to_udp) {
  chosen_ = true;
  if (to_udp == udp()) return {};
  if (users_ != 0) {
    return Fail(SetupError("the device reaches its other peers " +
                               std::string(udp() ? "by UDP" : "in memory") +
                               ", and this peer only " + (to_udp ? "by UDP" : "in memory"),
                           "one device uses one link at a time", "use link=udp on all sides"));
  }
  if (to_udp && udp_ == nullptr) {
    if (Status opened = OpenUdp(); !opened) return opened;
  }
  const DeviceLockHolder hold(lock_);
  active_udp_.store(to_udp ? udp_.get() : nullptr, std::memory_order_release);
  return {};
}

// A device that chooses is at an address of its own once it is on UDP, whichever GID was asked for.
Flow DeviceLink::AddressedTo(const std::optional<LinkBlob>& peer, const Flow& flow) const {
  Flow addressed = flow;
  if (memory_ != nullptr) addressed.source = port_->address().gid;
  if (!peer || !peer->chooses) return addressed;
  const Expected<UdpAddresses> addresses = ParseUdpBlob(peer->udp);
  if (addresses) addressed.destination = addresses->front();
  return addressed;
}

// The peer's address is its own choice: no GID index changes it.
Status DeviceLink::CheckFamilies(const Flow& flow) const {
  const auto ipv4 = [](const std::array<uint8_t, 16>& gid) {
    LocalAddress address;
    address.gid = gid;
    return address.IsIpv4();
  };
  if (ipv4(flow.source) == ipv4(flow.destination)) return {};
  return Fail(SetupError("the two soft devices have addresses of different families",
                         "one chose 127.x.y.z by itself, the other has an IPv6 address",
                         "give both sides --device soft:link=udp,addr=ADDRESS of one family"));
}

Expected<LinkUse> DeviceLink::Connect(std::span<const std::byte> peer_blob, const Flow& flow,
                                      uint32_t peer_qpn, Deadline deadline) {
  if (Status status = CheckBlob(peer_blob); !status) return Fail(std::move(status.error()));
  const std::optional<LinkBlob> peer = ParseLinkBlob(peer_blob);
  bool by_udp = memory_ == nullptr;
  if (chooses()) {
    const Expected<bool> choice = Choose(*peer, deadline);
    if (!choice) return Fail(choice.error());
    by_udp = *choice;
  }
  const std::lock_guard turn(choosing_);
  if (Status turned = TurnTo(by_udp); !turned) return Fail(std::move(turned.error()));
  const Flow addressed = udp() ? AddressedTo(peer, flow) : flow;
  if (udp() && (memory_ != nullptr || (peer && peer->chooses))) {
    if (Status same = CheckFamilies(addressed); !same) return Fail(std::move(same.error()));
  }
  Expected<PathId> path =
      udp() ? udp_->Connect(peer ? peer->udp : peer_blob, addressed, deadline, peer_qpn)
            : memory_->Connect(peer->memory, addressed, deadline);
  if (!path) return Fail(std::move(path.error()));
  ++users_;
  return LinkUse{.path = *path, .peer_qpn = peer_qpn, .acks_unasked = udp() && peer.has_value()};
}

void DeviceLink::Disconnect(LinkUse use) {
  const std::lock_guard turn(choosing_);
  udp() ? udp_->Disconnect(use.path, use.peer_qpn) : memory_->Disconnect(use.path);
  --users_;
}

}  // namespace verbscope::soft
