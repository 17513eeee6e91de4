// How a soft device behaves and how it looks: plain data without rules, made by parse.h, or by hand
// in tests. The defaults are those of `--device soft`.
//
// Values are copied once, when the device is opened; nothing changes afterwards.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_SOFT_OPTIONS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_SOFT_OPTIONS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transports/device.h"
#include "transports/soft/engine/defects.h"
#include "transports/soft/engine/profile.h"
#include "transports/soft/link/fault_options.h"
#include "transports/soft/link/udp_gso.h"
#include "transports/soft/options/hook_options.h"

namespace verbscope::soft {

// How packets get to the peer. kAuto: shared memory if the peer is of this user on this host, else
// UDP.
enum class LinkKind : uint8_t { kAuto, kMemory, kUdp };
std::string_view Name(LinkKind link);  // "auto", "memory", "udp"

inline constexpr uint32_t kMaxInlineBytes = 1024;
inline constexpr int kGidTableEntries = 256;  // an address vector has 8 bits for the index

// What the device can do. Requests beyond a limit fail as on a real device, and never silently.
struct SoftLimits {
  DeviceLimits device = {.max_qp_wr = 16384,
                         .max_sge = 16,
                         .max_cqe = 1u << 20,
                         .max_qp = 1024,
                         .max_cq = 1024,
                         .max_mr = 4096,
                         .max_pd = 1024,
                         .max_srq = 256,
                         .max_mr_bytes = uint64_t{1} << 40,
                         .max_rd_atomic_initiator = 16,
                         .max_rd_atomic_responder = 16,
                         .comp_vectors = 2,
                         .atomics = true};
  uint32_t max_srq_wr = 16384;
  uint32_t max_inline_bytes = 236;  // 0: no inline
  // Set: a QP may be created with up to kMaxInlineBytes inline, and the device answers that it gave
  // this much. Some devices take too much and answer with less.
  std::optional<uint32_t> reported_inline_bytes;
  uint64_t max_message_bytes = uint64_t{1} << 30;
  uint64_t max_registered_bytes = 0;  // all regions together, ENOMEM beyond; 0: no limit
};

// One slot of the GID table. Slots without an entry are holes.
struct GidSlot {
  int index = 0;             // 0 … kGidTableEntries - 1
  ibv_gid gid = {};          // zero: the slot is empty
  std::string type = {};     // "IB", "RoCE v1" or "RoCE v2"
  std::string netdev = {};   // empty: not known
  int unreadable_errno = 0;  // > 0: reading this slot fails with it
};

// The one port, number 1.
struct SoftPort {
  ibv_port_state state = IBV_PORT_ACTIVE;
  LinkLayer link_layer = LinkLayer::kEthernet;
  uint16_t lid = 0;
  uint16_t sm_lid = 0;
  uint32_t max_mtu_bytes = 4096;
  uint32_t active_mtu_bytes = 4096;          // of RDMA: 256, 512, 1024, 2048 or 4096
  bool active_mtu_given = false;             // asked for; else the UDP link takes what fits
  std::optional<std::vector<GidSlot>> gids;  // in order of index; absent: from the host's addresses

  // Whether UDP can serve it: its GIDs are addresses of this host.
  bool HasIp() const { return link_layer == LinkLayer::kEthernet && !gids; }
};

struct SoftOptions {
  std::string name = "soft0";
  LinkKind link = LinkKind::kAuto;
  std::optional<ibv_gid> address;  // the only address of the device; IPv4 as ::ffff:a.b.c.d
  UdpGso gso = UdpGso::kAuto;      // of the UDP link
  Profile profile = Profile::kIbta;
  std::string pcap_path;  // empty: no capture
  SoftLimits limits;
  SoftPort port;
  FaultOptions fault;
  HookOptions hooks;
  Defects defects;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_SOFT_OPTIONS_H_
