// Paths to peers: how they are made and ended. System calls that take a while are made without the
// device's lock; the tables change with it.
#include <fmt/core.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "transports/soft/link/udp_link.h"

namespace verbscope::soft {
namespace {

constexpr uint8_t kDefaultHopLimit = 64;
constexpr uint32_t kFlowLabelMask = 0xfffff;

LocalAddress AddressOf(const std::array<uint8_t, 16>& gid) {
  LocalAddress address;
  address.gid = gid;
  return address;
}

// What can be sent: Linux has no hop limit of 0, and IPv4 no flow label.
Flow Sendable(const Flow& wanted) {
  Flow flow = wanted;
  if (flow.hop_limit == 0) flow.hop_limit = kDefaultHopLimit;
  flow.flow_label = IsIpv4(flow) ? 0 : flow.flow_label & kFlowLabelMask;
  if (flow.source_port == 0) flow.source_port = kFirstSourcePort;
  return flow;
}

// Where a peer is, of which we have an address, and what it says of itself.
Status CheckPeer(std::span<const std::byte> blob, const Flow& flow) {
  if (blob.empty()) return {};
  const Expected<UdpAddresses> addresses = ParseUdpBlob(blob);
  if (!addresses) return Fail(addresses.error());
  const bool listens =
      std::find(addresses->begin(), addresses->end(), flow.destination) != addresses->end();
  if (listens) return {};
  return Fail(SetupError(fmt::format("the peer's soft device does not receive at {}",
                                     AddressOf(flow.destination).ToText()),
                         fmt::format("it receives at {}", AddressOf(addresses->front()).ToText()),
                         "use the GID index of that address on the peer"));
}

}  // namespace

Expected<size_t> UdpLink::LocalOf(const Flow& flow) const {
  for (size_t i = 0; i < options_.locals.size(); ++i) {
    const LocalAddress& local = options_.locals[i].address;
    if (local.gid != flow.source) continue;
    if (local.IsIpv4() == AddressOf(flow.destination).IsIpv4()) return i;
    return Fail(SetupError(
        fmt::format("{} cannot reach {}", local.ToText(), AddressOf(flow.destination).ToText()),
        "one is an IPv4 address, the other IPv6",
        "use GIDs of one family on both sides (--gid-index)"));
  }
  return Fail(SetupError(
      fmt::format("{} is no address of this device", AddressOf(flow.source).ToText()),
      fmt::format("it has {}", options_.locals.front().address.ToText()), "use its GID index"));
}

Expected<PathId> UdpLink::Connect(std::span<const std::byte> peer_blob, const Flow& wanted,
                                  Deadline /*deadline*/, uint32_t peer_qpn) {
  const Flow flow = Sendable(wanted);
  if (Status checked = CheckPeer(peer_blob, flow); !checked) return Fail(checked.error());
  const Expected<size_t> local = LocalOf(flow);
  if (!local) return Fail(local.error());
  const UdpPair pair = {.local = *local, .peer = flow.destination};
  std::shared_ptr<SendSocket> shared;
  {
    DeviceLockHolder hold(lock_);
    const PathId joined = Join(pair, flow, peer_qpn);
    if (joined != kNoPath) return joined;
    shared = SharedSocket(flow);
  }
  const LocalAddress& address = options_.locals[*local].address;
  const Expected<UdpRoute> route = FindUdpRoute(address, flow.destination);
  if (!route) return Fail(route.error());
  Expected<std::unique_ptr<UdpFlow>> made = MakeFlow(address, flow, std::move(shared));
  if (!made) return Fail(std::move(made.error()));
  DeviceLockHolder hold(lock_);
  // Another thread may have been faster; what was made here goes unused.
  const PathId joined = Join(pair, flow, peer_qpn);
  if (joined != kNoPath) return joined;
  const PathId path = Install(pair, !peer_blob.empty(), *route, std::move(*made), peer_qpn);
  if (path != kNoPath) return path;
  return Fail(SetupError(fmt::format("the device has {} peers already", kMaxUdpPaths),
                         /*cause=*/{}, "use fewer peers per device"));
}

PathId UdpLink::Join(const UdpPair& pair, const Flow& flow, uint32_t peer_qpn) {
  const PathId id = paths_.Find(pair);
  if (id == kNoPath) return kNoPath;
  UdpPath& path = *paths_.Find(id);
  const auto bound = path.bindings.find(peer_qpn);
  UdpFlow* use = bound == path.bindings.end() ? nullptr : bound->second.flow;
  if (peer_qpn == kAnyQpn) use = path.flows.front().get();
  for (const auto& known : path.flows) {
    if (use == nullptr && known->wanted == flow) use = known.get();
  }
  if (use == nullptr) return kNoPath;
  Use(path, *use, peer_qpn);
  return id;
}

void UdpLink::Use(UdpPath& path, UdpFlow& flow, uint32_t peer_qpn) {
  ++path.users;
  ++flow.users;
  if (peer_qpn != kAnyQpn) {
    UdpPath::Binding& binding = path.bindings[peer_qpn];
    binding.flow = &flow;
    ++binding.users;
  }
  path.ForgetLast();
}

// A socket of another path that sends what this flow wants. With other options it would change
// theirs.
std::shared_ptr<SendSocket> UdpLink::SharedSocket(const Flow& flow) {
  std::erase_if(send_sockets_, [](const auto& socket) { return socket.expired(); });
  for (const auto& weak : send_sockets_) {
    std::shared_ptr<SendSocket> socket = weak.lock();
    if (socket != nullptr && socket->address.gid == flow.source &&
        socket->wanted_port == flow.source_port && socket->hop_limit == flow.hop_limit &&
        socket->traffic_class == flow.traffic_class) {
      return socket;
    }
  }
  return nullptr;
}

Expected<std::unique_ptr<UdpFlow>> UdpLink::MakeFlow(const LocalAddress& local, const Flow& flow,
                                                     std::shared_ptr<SendSocket> socket) {
  if (socket == nullptr) {
    Expected<SendSocket> opened = OpenSend(local, flow.source_port, flow.hop_limit,
                                           flow.traffic_class, options_.buffer_bytes);
    if (!opened) return Fail(std::move(opened.error()));
    socket = std::make_shared<SendSocket>(std::move(*opened));
  }
  auto made = std::make_unique<UdpFlow>();
  made->wanted = flow;
  made->flow = flow;
  made->flow.source_port = socket->port;
  made->ipv4 = local.IsIpv4();
  LocalAddress peer = local;  // with its interface, for link-local addresses
  peer.gid = flow.destination;
  made->to = peer.Socket(kRoceUdpPort);
  if (flow.flow_label != 0) {
    made->label_refused =
        !ClaimFlowLabel(socket->fd.get(), local, flow.destination, flow.flow_label);
    if (made->label_refused) made->flow.flow_label = 0;
    sockaddr_in6 v6;
    std::memcpy(&v6, &made->to.storage, sizeof(v6));
    v6.sin6_flowinfo = htonl(made->flow.flow_label);
    std::memcpy(&made->to.storage, &v6, sizeof(v6));
  }
  made->socket = std::move(socket);
  return made;
}

PathId UdpLink::Install(const UdpPair& pair, bool own_device, const UdpRoute& route,
                        std::unique_ptr<UdpFlow> flow, uint32_t peer_qpn) {
  flow->bursts = options_.gso == UdpGso::kOn ||
                 (options_.gso == UdpGso::kAuto && (!flow->ipv4 || route.software_segments));
  PathId id = paths_.Find(pair);
  if (id == kNoPath) {
    auto path = std::make_unique<UdpPath>();
    path->pair = pair;
    path->route = route;
    path->arrivals.flow.source = flow->flow.destination;
    path->arrivals.flow.destination = flow->flow.source;
    path->arrivals.own_device = own_device;
    id = paths_.Add(std::move(path));
    if (id == kNoPath) return kNoPath;
    if (paths_of_local_[pair.local]++ == 0) {
      const int socket = options_.locals[pair.local].socket.get();
      receiver_.Add(pair.local, socket);
      if (watchers_ > 0) SetWatched(socket, true);
    }
  }
  UdpPath& path = *paths_.Find(id);
  path.arrivals.own_device = path.arrivals.own_device && own_device;
  send_sockets_.push_back(flow->socket);
  path.flows.push_back(std::move(flow));
  Use(path, *path.flows.back(), peer_qpn);
  return id;
}

void UdpLink::Disconnect(PathId id, uint32_t peer_qpn) {
  DeviceLockHolder hold(lock_);
  UdpPath* path = paths_.Find(id);
  if (path == nullptr) return;
  UdpFlow* flow = path->flows.front().get();
  if (peer_qpn != kAnyQpn) {
    const auto bound = path->bindings.find(peer_qpn);
    if (bound == path->bindings.end()) return;
    flow = bound->second.flow;
    if (--bound->second.users == 0) path->bindings.erase(bound);
  }
  path->ForgetLast();
  sender_.Flush();
  --flow->users;
  if (--path->users == 0) {
    RemovePath(id);
    return;
  }
  // The first flow stays as long as the path: packets to QPNs that nobody named go by it.
  if (flow->users != 0 || flow == path->flows.front().get()) return;
  sender_.Forget(*flow);
  std::erase_if(path->flows, [flow](const auto& known) { return known.get() == flow; });
}

void UdpLink::RemovePath(PathId id) {
  UdpPath& path = *paths_.Find(id);
  const size_t local = path.pair.local;
  for (const auto& flow : path.flows) sender_.Forget(*flow);
  paths_.Remove(id);
  if (--paths_of_local_[local] != 0) return;
  if (watchers_ > 0) SetWatched(options_.locals[local].socket.get(), false);
  receiver_.Remove(local);
}

}  // namespace verbscope::soft
