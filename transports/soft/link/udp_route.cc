#include "transports/soft/link/udp_route.h"

#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"

namespace verbscope::soft {
namespace {

constexpr uint32_t kHeaderRoom = 80;
constexpr uint32_t kSmallestMtu = 256;
constexpr uint32_t kLargestMtu = 4096;

struct RouteRequest {
  nlmsghdr head;
  rtmsg route;
  std::array<uint8_t, 64> attributes;
};

// Addresses as rtnetlink wants them: 4 bytes for IPv4.
void AddAddress(RouteRequest& request, unsigned short type, const std::array<uint8_t, 16>& gid,
                bool ipv4) {
  const size_t bytes = ipv4 ? 4 : 16;
  rtattr attribute = {};
  attribute.rta_type = type;
  attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(bytes));
  const size_t at = NLMSG_ALIGN(request.head.nlmsg_len) - offsetof(RouteRequest, attributes);
  std::memcpy(request.attributes.data() + at, &attribute, sizeof(attribute));
  std::memcpy(request.attributes.data() + at + RTA_LENGTH(0), gid.data() + (16 - bytes), bytes);
  request.head.nlmsg_len =
      static_cast<uint32_t>(NLMSG_ALIGN(request.head.nlmsg_len) + RTA_ALIGN(attribute.rta_len));
}

void AddInterface(RouteRequest& request, uint32_t index) {
  rtattr attribute = {};
  attribute.rta_type = RTA_OIF;
  attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(sizeof(index)));
  const size_t at = NLMSG_ALIGN(request.head.nlmsg_len) - offsetof(RouteRequest, attributes);
  std::memcpy(request.attributes.data() + at, &attribute, sizeof(attribute));
  std::memcpy(request.attributes.data() + at + RTA_LENGTH(0), &index, sizeof(index));
  request.head.nlmsg_len =
      static_cast<uint32_t>(NLMSG_ALIGN(request.head.nlmsg_len) + RTA_ALIGN(attribute.rta_len));
}
static_assert(2 * RTA_LENGTH(16) + RTA_LENGTH(4) <= sizeof(RouteRequest::attributes));

// The interface in the kernel's answer, or a negative errno.
int InterfaceOf(const char* answer, size_t bytes) {
  nlmsghdr head;
  if (bytes < sizeof(head)) return -EPROTO;
  std::memcpy(&head, answer, sizeof(head));
  if (head.nlmsg_type == NLMSG_ERROR && bytes >= NLMSG_LENGTH(sizeof(nlmsgerr))) {
    nlmsgerr error;
    std::memcpy(&error, answer + NLMSG_LENGTH(0), sizeof(error));
    return error.error < 0 ? error.error : -EPROTO;
  }
  if (head.nlmsg_type != RTM_NEWROUTE || head.nlmsg_len > bytes) return -EPROTO;
  size_t at = NLMSG_LENGTH(0) + NLMSG_ALIGN(sizeof(rtmsg));
  while (at + sizeof(rtattr) <= head.nlmsg_len) {
    rtattr attribute;
    std::memcpy(&attribute, answer + at, sizeof(attribute));
    if (attribute.rta_len < sizeof(rtattr) || at + attribute.rta_len > head.nlmsg_len) break;
    if (attribute.rta_type == RTA_OIF && attribute.rta_len >= RTA_LENGTH(sizeof(int))) {
      int index;
      std::memcpy(&index, answer + at + RTA_LENGTH(0), sizeof(index));
      return index;
    }
    at += RTA_ALIGN(attribute.rta_len);
  }
  return -EPROTO;
}

// Index of the interface, or a negative errno.
int AskRoute(const LocalAddress& local, const std::array<uint8_t, 16>& peer) {
  const bool ipv4 = local.IsIpv4();
  RouteRequest request = {};
  request.head.nlmsg_len = NLMSG_LENGTH(sizeof(rtmsg));
  request.head.nlmsg_type = RTM_GETROUTE;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.route.rtm_family = ipv4 ? AF_INET : AF_INET6;
  request.route.rtm_dst_len = ipv4 ? 32 : 128;
  request.route.rtm_src_len = request.route.rtm_dst_len;
  AddAddress(request, RTA_DST, peer, ipv4);
  AddAddress(request, RTA_SRC, local.gid, ipv4);
  if (local.IsLinkLocal() && local.interface_index != 0) {
    AddInterface(request, local.interface_index);
  }
  const FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return -errno;
  // The kernel answers before send returns.
  if (::send(socket.get(), &request, request.head.nlmsg_len, 0) < 0) return -errno;
  alignas(nlmsghdr) std::array<char, 4096> answer;
  const ssize_t got = ::recv(socket.get(), answer.data(), answer.size(), MSG_DONTWAIT);
  return got < 0 ? -errno : InterfaceOf(answer.data(), static_cast<size_t>(got));
}

// False where the driver says no name: lo has none.
bool IsVeth(int socket, const ifreq& interface) {
  ethtool_drvinfo info = {};
  info.cmd = ETHTOOL_GDRVINFO;
  ifreq request = interface;
  request.ifr_data = reinterpret_cast<char*>(&info);
  if (::ioctl(socket, SIOCETHTOOL, &request) != 0) return false;
  return std::string_view(info.driver, ::strnlen(info.driver, sizeof(info.driver))) == "veth";
}

}  // namespace

Expected<UdpRoute> FindUdpRoute(const LocalAddress& local, const std::array<uint8_t, 16>& peer) {
  const LocalAddress to = {.gid = peer, .interface_index = local.interface_index, .netdev = {}};
  const int index = AskRoute(local, peer);
  if (index <= 0) {
    Error error = SetupError("there is no route from " + local.ToText() + " to " + to.ToText(),
                             ErrnoText(-index), "look at 'ip route get', or use another address");
    error.errno_value = -index;
    return Fail(std::move(error));
  }
  ifreq interface = {};
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::if_indextoname(static_cast<unsigned>(index), interface.ifr_name) == nullptr) {
    return Fail(CallError(ErrorClass::kSetup, "if_indextoname", std::to_string(index), errno));
  }
  UdpRoute route;
  route.netdev = interface.ifr_name;
  ifreq mtu = interface;
  if (::ioctl(socket.get(), SIOCGIFMTU, &mtu) == 0) {
    route.mtu_bytes = static_cast<uint32_t>(mtu.ifr_mtu);
  }
  ifreq flags = interface;
  const bool loopback = ::ioctl(socket.get(), SIOCGIFFLAGS, &flags) == 0 &&
                        (static_cast<unsigned short>(flags.ifr_flags) & IFF_LOOPBACK) != 0;
  route.software_segments = loopback || IsVeth(socket.get(), interface);
  return route;
}

uint32_t RoceMtu(uint32_t interface_mtu_bytes) {
  for (uint32_t mtu = kLargestMtu; mtu >= kSmallestMtu; mtu /= 2) {
    if (mtu + kHeaderRoom <= interface_mtu_bytes) return mtu;
  }
  return 0;
}

}  // namespace verbscope::soft
