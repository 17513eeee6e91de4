// The paths of a UDP link: one for each pair of a local address and a peer's.
//
// Several QPs may use a path, each with a flow of its own (source port, hop limit, traffic class,
// flow label). Packets are told apart by their destination QPN, which is of one QP's connection
// only; those to a QPN that nobody named go with the flow of the first.
//
// Threads: with the device's lock held. Finding allocates nothing.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_PATHS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_PATHS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/udp_datagram.h"
#include "transports/soft/link/udp_route.h"
#include "transports/soft/link/udp_sender.h"

namespace verbscope::soft {

// No QP has it: the multicast number.
inline constexpr uint32_t kAnyQpn = 0xffffff;

// A local address, by its place in the link's list, and a peer's.
struct UdpPair {
  size_t local = 0;
  std::array<uint8_t, 16> peer = {};

  bool operator==(const UdpPair&) const = default;
};

struct UdpPath {
  UdpPair pair;
  UdpRoute route;
  ArrivalState arrivals;
  uint32_t users = 0;
  std::vector<std::unique_ptr<UdpFlow>> flows;

  // By destination QPN, with the connections that named it.
  struct Binding {
    UdpFlow* flow = nullptr;
    uint32_t users = 0;
  };
  std::unordered_map<uint32_t, Binding> bindings;

  UdpFlow& FlowOf(uint32_t qpn) {
    if (last_flow_ != nullptr && qpn == last_qpn_) return *last_flow_;
    const auto found = bindings.find(qpn);
    last_qpn_ = qpn;
    last_flow_ = found == bindings.end() ? flows.front().get() : found->second.flow;
    return *last_flow_;
  }
  // After a change of flows or bindings.
  void ForgetLast() { last_flow_ = nullptr; }

 private:
  uint32_t last_qpn_ = 0;
  UdpFlow* last_flow_ = nullptr;  // of last_qpn_; null: none
};

class UdpPaths {
 public:
  UdpPath* Find(PathId path) const { return path < paths_.size() ? paths_[path].get() : nullptr; }
  // kNoPath: none.
  PathId Find(const UdpPair& pair) const {
    if (last_ != kNoPath && paths_[last_]->pair == pair) return last_;
    const auto found = ids_.find(pair);
    if (found == ids_.end()) return kNoPath;
    return last_ = found->second;
  }
  // kNoPath: too many.
  PathId Add(std::unique_ptr<UdpPath> path);
  void Remove(PathId path);
  size_t size() const { return ids_.size(); }

 private:
  struct Hash {
    size_t operator()(const UdpPair& pair) const;
  };
  std::vector<std::unique_ptr<UdpPath>> paths_;
  std::unordered_map<UdpPair, PathId, Hash> ids_;
  mutable PathId last_ = kNoPath;  // found last
};

inline constexpr size_t kMaxUdpPaths = 1024;

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_PATHS_H_
