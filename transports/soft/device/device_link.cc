#include "transports/soft/device/device_link.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <cerrno>
#include <string>
#include <string_view>

namespace verbscope::soft {
namespace {

// The first byte of a blob: which link it is for.
enum class BlobKind : uint8_t { kMemory = 'm', kUdp = 'u' };

Error OtherLink(std::string_view peer, std::string_view own, std::string_view next_step) {
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.message =
      std::string("the peer's device ") + std::string(peer) + ", and this one " + std::string(own);
  error.next_step = next_step;
  return error;
}

Error CannotWatch(int errno_value) {
  return CallError(ErrorClass::kSetup, "epoll_ctl", "UDP link", errno_value);
}

}  // namespace

Expected<std::unique_ptr<DeviceLink>> DeviceLink::Create(std::unique_ptr<UdpPort> port, UdpGso gso,
                                                         DeviceLock& lock, Counters& counters) {
  std::unique_ptr<DeviceLink> link(new DeviceLink());
  if (port != nullptr) {
    Status opened = link->OpenUdp(std::move(port), gso, lock, counters);
    if (!opened) return Fail(std::move(opened.error()));
    return link;
  }
  Expected<std::unique_ptr<MemoryLink>> memory = MemoryLink::Create(lock, counters);
  if (!memory) return Fail(std::move(memory.error()));
  link->memory_ = std::move(*memory);
  return link;
}

Status DeviceLink::OpenUdp(std::unique_ptr<UdpPort> port, UdpGso gso, DeviceLock& lock,
                           Counters& counters) {
  port_ = std::move(port);
  // A descriptor of the link's own: the port may share its socket with other processes.
  FileDescriptor socket(::fcntl(port_->fd(), F_DUPFD_CLOEXEC, 0));
  if (!socket) return Fail(CallError(ErrorClass::kSetup, "fcntl", "F_DUPFD_CLOEXEC", errno));
  UdpOptions options;
  options.gso = gso;
  options.locals.push_back({.address = port_->address(), .socket = std::move(socket)});
  Expected<std::unique_ptr<UdpLink>> udp = UdpLink::Create(std::move(options), lock, counters);
  if (!udp) return Fail(std::move(udp.error()));
  udp_ = std::move(*udp);
  epoll_.Reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return Fail(CallError(ErrorClass::kSetup, "epoll_create1", "UDP link", errno));
  for (const int fd : {udp_->wait_fd(), port_->wait_fd()}) {
    epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    if (fd >= 0 && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return Fail(CannotWatch(errno));
    }
  }
  return {};
}

std::vector<std::byte> DeviceLink::LocalBlob() const {
  const BlobKind kind = udp_ != nullptr ? BlobKind::kUdp : BlobKind::kMemory;
  std::vector<std::byte> blob = {static_cast<std::byte>(kind)};
  const std::vector<std::byte> rest = udp_ != nullptr ? udp_->LocalBlob() : memory_->LocalBlob();
  blob.insert(blob.end(), rest.begin(), rest.end());
  return blob;
}

Status DeviceLink::CheckBlob(std::span<const std::byte> blob) const {
  if (udp_ != nullptr) {
    // No blob: the kernel's software device or an adapter, which UDP reaches as well.
    if (blob.empty() || blob[0] == static_cast<std::byte>(BlobKind::kUdp)) return {};
    return Fail(OtherLink("is a soft device in memory", "is on UDP",
                          "give both sides link=udp, or both link=memory"));
  }
  if (blob.empty()) {
    return Fail(OtherLink("is no soft device", "is one in memory",
                          "use --device soft on both sides, link=udp here, or a real device on "
                          "both"));
  }
  if (blob[0] != static_cast<std::byte>(BlobKind::kMemory)) {
    return Fail(OtherLink("is a soft device on UDP", "is in memory",
                          "give both sides link=udp, or both link=memory"));
  }
  return {};
}

Expected<LinkUse> DeviceLink::Connect(std::span<const std::byte> peer_blob, const Flow& flow,
                                      uint32_t peer_qpn, Deadline deadline) {
  if (Status status = CheckBlob(peer_blob); !status) return Fail(std::move(status.error()));
  const std::span<const std::byte> rest = peer_blob.empty() ? peer_blob : peer_blob.subspan(1);
  Expected<PathId> path = udp_ != nullptr ? udp_->Connect(rest, flow, deadline, peer_qpn)
                                          : memory_->Connect(rest, flow, deadline);
  if (!path) return Fail(std::move(path.error()));
  return LinkUse{.path = *path, .peer_qpn = peer_qpn};
}

void DeviceLink::Disconnect(LinkUse use) {
  udp_ != nullptr ? udp_->Disconnect(use.path, use.peer_qpn) : memory_->Disconnect(use.path);
}

bool DeviceLink::CanSend(PathId path) const {
  return udp_ != nullptr ? udp_->CanSend(path) : memory_->CanSend(path);
}

bool DeviceLink::SendRaw(PathId path, std::span<const std::byte> packet) {
  return udp_ != nullptr ? udp_->SendRaw(path, packet) : memory_->SendRaw(path, packet);
}

const Flow* DeviceLink::SendFlow(PathId path) const {
  return udp_ != nullptr ? udp_->SendFlow(path) : memory_->SendFlow(path);
}

const Flow* DeviceLink::ReceiveFlow(PathId path) const {
  return udp_ != nullptr ? udp_->ReceiveFlow(path) : memory_->ReceiveFlow(path);
}

int DeviceLink::wait_fd() const { return udp_ != nullptr ? epoll_.get() : memory_->wait_fd(); }

void DeviceLink::Serve() {
  if (memory_ != nullptr) memory_->Serve();
  if (port_ != nullptr) port_->Serve();
}

uint32_t DeviceLink::AddChannel(int event_fd) {
  return memory_ != nullptr ? memory_->AddChannel(event_fd) : 0;
}

void DeviceLink::RemoveChannel(uint32_t channel_id) {
  if (memory_ != nullptr) memory_->RemoveChannel(channel_id);
}

void DeviceLink::Arm(PathId path, uint32_t qpn, ArmSide side, uint32_t channel_id,
                     bool solicited_only) {
  if (memory_ != nullptr) memory_->Arm(path, qpn, side, channel_id, solicited_only);
}

void DeviceLink::Disarm(PathId path, uint32_t qpn, ArmSide side) {
  if (memory_ != nullptr) memory_->Disarm(path, qpn, side);
}

}  // namespace verbscope::soft
