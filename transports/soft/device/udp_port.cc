#include "transports/soft/device/udp_port.h"

#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <vector>

namespace verbscope::soft {
namespace {

constexpr uint32_t kFirstQpn = 17;
constexpr uint32_t kLastQpn = 0xfffffe;

// With the interface that has it, which fe80:: needs.
Expected<LocalAddress> FindOnHost(const ibv_gid& gid) {
  LocalAddress wanted;
  std::copy_n(gid.raw, sizeof(gid.raw), wanted.gid.begin());
  Expected<std::vector<LocalAddress>> host = HostAddresses();
  if (!host) return Fail(std::move(host.error()));
  for (const LocalAddress& address : *host) {
    if (address.gid == wanted.gid) return address;
  }
  return wanted;  // bind says what is wrong with it
}

}  // namespace

Expected<std::unique_ptr<UdpPort>> UdpPort::Take(const std::optional<ibv_gid>& address,
                                                 Deadline deadline) {
  std::optional<LocalAddress> wanted;
  if (address) {
    Expected<LocalAddress> found = FindOnHost(*address);
    if (!found) return Fail(std::move(found.error()));
    wanted = std::move(*found);
  }
  if (!wanted) {
    Expected<BoundSocket> bound = BindOwnLoopback();
    if (!bound) return Fail(std::move(bound.error()));
    std::unique_ptr<UdpPort> port(new UdpPort(std::move(bound->address)));
    port->own_ = std::move(bound->socket);
    return port;
  }
  std::unique_ptr<UdpPort> port(new UdpPort(*wanted));
  Expected<std::unique_ptr<PortSharing>> sharing = PortSharing::Join(*wanted, deadline);
  if (!sharing) {
    // The time was ours, not the user's: the device cannot start.
    sharing.error().error_class = ErrorClass::kSetup;
    return Fail(std::move(sharing.error()));
  }
  port->sharing_ = std::move(*sharing);
  return port;
}

ibv_gid UdpPort::gid() const {
  ibv_gid gid = {};
  std::copy_n(address_.gid.begin(), sizeof(gid.raw), gid.raw);
  return gid;
}

uint32_t UdpPort::interface_mtu_bytes() const {
  ifreq request = {};
  if (address_.netdev.empty() || address_.netdev.size() >= sizeof(request.ifr_name)) return 0;
  address_.netdev.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
  if (::ioctl(fd(), SIOCGIFMTU, &request) != 0) return 0;
  return static_cast<uint32_t>(request.ifr_mtu);
}

std::pair<uint32_t, uint32_t> UdpPort::qpns() const {
  if (sharing_ == nullptr) return {kFirstQpn, kLastQpn};
  const uint32_t first = uint32_t{sharing_->tag()} << 16;
  return {first, std::min(first | 0xffff, kLastQpn)};
}

}  // namespace verbscope::soft
