// Which GID each side uses: the best pair of both tables, or one sentence why no pair can work.
//
// A wrong pair connects without an error and then times out on the first message, so hopeless pairs
// are refused before any QP moves to RTR. One side chooses for both and tells the other: the
// control netdev is known on one side only, so both sides choosing could differ.
//
// Pure functions on plain data; any thread. The remote port comes from the peer: nothing about it
// is taken for granted.
#ifndef VERBSCOPE_CORE_SELECTION_GID_PAIR_H_
#define VERBSCOPE_CORE_SELECTION_GID_PAIR_H_

#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/selection/control_path.h"
#include "transports/device.h"

namespace verbscope {

struct GidPair {
  GidEntry local;
  GidEntry remote;
  bool needs_grh = true;  // false: InfiniBand within one subnet; addressed by LID alone
  std::string reason;     // why this pair, half a sentence: "both are in one subnet"
  std::string notice;     // a warning for the report (VLAN on one side only); empty: none
};

// `local_index` and `remote_index` are indexes forced by options; both only narrow the choice.
//
// The link layers decide which rules apply, never the LIDs: RoCE ports may report one.
//   InfiniBand: both LIDs must be set (a subnet manager sets them); the entry of index 0 or the
//     forced one; GRH only between different subnet prefixes.
//   Ethernet: of all pairs with one type, one family and one scope the best by, in this order:
//     RoCE v2, routable, both the control addresses, one subnet, control netdev, either control
//     address, family of the control connection, low indexes.
// kSetup: different or unknown link layers, LID 0, empty table, empty forced index, and pairs with
// v1 against v2, IPv4 against IPv6 or link-local against routable; the text names both entries and
// an option that helps.
Expected<GidPair> ChooseGidPair(const PortInfo& local, const PortInfo& remote,
                                std::optional<int> local_index, std::optional<int> remote_index,
                                const ControlPath& path);

// "index 3 (10.0.0.1, RoCE v2, netdev v0)".
std::string DescribeGid(const GidEntry& gid);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SELECTION_GID_PAIR_H_
