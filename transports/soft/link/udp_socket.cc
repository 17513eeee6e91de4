#include "transports/soft/link/udp_socket.h"

#include <arpa/inet.h>
#include <linux/in6.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

#include "core/base/error.h"

// In headers that do not go together with the C library's, or newer than those of this system.
#ifndef IPV6_FLOWLABEL_MGR
#define IPV6_FLOWLABEL_MGR 32
#endif
#ifndef IPV6_FLOWINFO_SEND
#define IPV6_FLOWINFO_SEND 33
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace verbscope::soft {
namespace {

constexpr uint32_t kPortTries = 256;

bool Set(int socket, int level, int option, int value) {
  return ::setsockopt(socket, level, option, &value, sizeof(value)) == 0;
}

size_t Get(int socket, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  if (::getsockopt(socket, SOL_SOCKET, option, &value, &size) != 0) return 0;
  return static_cast<size_t>(std::max(0, value));
}

// Beyond the system's limit with the privilege for it, else up to that limit. A larger buffer that
// the socket already has is left.
size_t GrowBuffer(int socket, int option, int force_option, size_t bytes) {
  const int wanted = static_cast<int>(std::min<size_t>(bytes, std::numeric_limits<int>::max() / 2));
  const size_t before = Get(socket, option);
  if (before < 2 * static_cast<size_t>(wanted)) {  // the kernel doubles what it is asked for
    if (!Set(socket, SOL_SOCKET, force_option, wanted)) Set(socket, SOL_SOCKET, option, wanted);
  }
  return Get(socket, option);
}

Error CannotSet(const char* option) {
  return CallError(ErrorClass::kSetup, "setsockopt", option, errno);
}

Status PrepareSend(int socket, bool ipv4, uint8_t hop_limit, uint8_t traffic_class) {
  if (ipv4) {
    if (!Set(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)) {
      return Fail(CannotSet("IP_MTU_DISCOVER"));
    }
    if (!Set(socket, IPPROTO_IP, IP_TTL, hop_limit)) return Fail(CannotSet("IP_TTL"));
    if (!Set(socket, IPPROTO_IP, IP_TOS, traffic_class)) return Fail(CannotSet("IP_TOS"));
    return {};
  }
  if (!Set(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE)) {
    return Fail(CannotSet("IPV6_MTU_DISCOVER"));
  }
  if (!Set(socket, IPPROTO_IPV6, IPV6_UNICAST_HOPS, hop_limit)) {
    return Fail(CannotSet("IPV6_UNICAST_HOPS"));
  }
  if (!Set(socket, IPPROTO_IPV6, IPV6_TCLASS, traffic_class)) return Fail(CannotSet("IPV6_TCLASS"));
  // Best effort: without it the kernel fills in a label of its own where none was asked for.
  Set(socket, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0);
  return {};
}

Expected<FileDescriptor> NewSocket(bool ipv4) {
  FileDescriptor socket(
      ::socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Fail(CallError(ErrorClass::kSetup, "socket", "SOCK_DGRAM", errno));
  return socket;
}

// The ports tried: the wanted one, then others of the range in steps, so that two who want the same
// do not try the same ones all the way.
uint16_t PortToTry(uint16_t wanted, uint32_t attempt) {
  if (attempt == 0) return wanted;
  constexpr uint32_t kPorts = 0x10000 - kFirstSourcePort;
  const uint32_t step = attempt * 61U;  // odd: all are different
  return static_cast<uint16_t>(kFirstSourcePort + (wanted + step) % kPorts);
}

Expected<uint16_t> BindSource(int socket, const LocalAddress& address, uint16_t wanted) {
  for (uint32_t attempt = 0; attempt < kPortTries; ++attempt) {
    const uint16_t port = PortToTry(wanted, attempt);
    const SocketAddress to = address.Socket(port);
    if (::bind(socket, to.generic(), to.size) == 0) return port;
    if (errno != EADDRINUSE) {
      return Fail(CallError(ErrorClass::kSetup, "bind",
                            address.ToText() + " port " + std::to_string(port), errno));
    }
  }
  Error error = SetupError("no free UDP source port for " + address.ToText(),
                           "hundreds of sockets hold ports at and above 49152",
                           "use fewer QPs, or another addr=");
  error.errno_value = EADDRINUSE;
  return Fail(std::move(error));
}

}  // namespace

Expected<ReceiveSetup> PrepareReceive(int socket, bool ipv4, size_t buffer_bytes) {
  ReceiveSetup setup;
  if (ipv4) {
    Set(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    Set(socket, IPPROTO_IP, IP_RECVTOS, 1);
  } else {
    Set(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    Set(socket, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    // Linux rxe and adapters send no UDP checksum; the kernel drops such packets otherwise.
    if (!Set(socket, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)) return Fail(CannotSet("UDP_NO_CHECK6_RX"));
  }
  setup.buffer_bytes = GrowBuffer(socket, SO_RCVBUF, SO_RCVBUFFORCE, buffer_bytes);
  setup.merges = SetMerging(socket, true) && SetMerging(socket, false);
  return setup;
}

bool SetMerging(int socket, bool on) { return Set(socket, IPPROTO_UDP, UDP_GRO, on ? 1 : 0); }

Expected<SendSocket> OpenSend(const LocalAddress& address, uint16_t wanted_port, uint8_t hop_limit,
                              uint8_t traffic_class, size_t buffer_bytes) {
  const bool ipv4 = address.IsIpv4();
  Expected<FileDescriptor> socket = NewSocket(ipv4);
  if (!socket) return Fail(std::move(socket.error()));
  if (Status prepared = PrepareSend(socket->get(), ipv4, hop_limit, traffic_class); !prepared) {
    return Fail(std::move(prepared.error()));
  }
  // Nobody reads what comes to a source port.
  Set(socket->get(), SOL_SOCKET, SO_RCVBUF, 1);
  Expected<uint16_t> port = BindSource(socket->get(), address, wanted_port);
  if (!port) return Fail(std::move(port.error()));
  const size_t granted = GrowBuffer(socket->get(), SO_SNDBUF, SO_SNDBUFFORCE, buffer_bytes);
  return SendSocket{.fd = std::move(*socket),
                    .address = address,
                    .wanted_port = wanted_port,
                    .port = *port,
                    .hop_limit = hop_limit,
                    .traffic_class = traffic_class,
                    .buffer_bytes = granted};
}

bool ClaimFlowLabel(int socket, const LocalAddress& local, const std::array<uint8_t, 16>& peer,
                    uint32_t flow_label) {
  if (!Set(socket, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1)) return false;
  // A lease, so that nobody can take the label for himself while packets carry it.
  in6_flowlabel_req lease = {};
  std::memcpy(&lease.flr_dst, peer.data(), peer.size());
  lease.flr_label = htonl(flow_label);
  lease.flr_action = IPV6_FL_A_GET;
  lease.flr_flags = IPV6_FL_F_CREATE;
  lease.flr_share = IPV6_FL_S_ANY;
  if (::setsockopt(socket, IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &lease, sizeof(lease)) == 0) {
    return true;
  }
  // The upper half of the labels is not leased out. They may be used all the same unless somebody
  // has a label of his own; connecting a socket asks the same question as sending, and sends
  // nothing.
  const Expected<FileDescriptor> probe = NewSocket(/*ipv4=*/false);
  if (!probe || !Set(probe->get(), IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1)) return false;
  LocalAddress to = local;
  to.gid = peer;
  const SocketAddress address = to.Socket(/*port=*/9);
  sockaddr_in6 v6;
  std::memcpy(&v6, &address.storage, sizeof(v6));
  v6.sin6_flowinfo = htonl(flow_label);
  return ::connect(probe->get(), reinterpret_cast<const sockaddr*>(&v6), sizeof(v6)) == 0;
}

uint64_t SocketDrops(int socket) {
  std::array<uint32_t, SK_MEMINFO_VARS> info = {};
  socklen_t size = sizeof(info);
  if (::getsockopt(socket, SOL_SOCKET, SO_MEMINFO, info.data(), &size) != 0) return 0;
  return info[SK_MEMINFO_DROPS];
}

}  // namespace verbscope::soft
