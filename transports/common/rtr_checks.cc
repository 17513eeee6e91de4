#include "transports/common/rtr_checks.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "transports/common/port_text.h"

namespace verbscope {
namespace {

tl::unexpected<Error> Refuse(const RtrFacts& facts, int port, const std::string& what,
                             std::string cause, std::string next_step) {
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.message = fmt::format("QP {:#x} cannot go to RTR on {} port {}: {}", facts.qp_num,
                              facts.device, port, what);
  error.cause = std::move(cause);
  error.next_step = std::move(next_step);
  return Fail(std::move(error));
}

Status CheckPort(const ibv_qp_attr& attributes, const RtrFacts& facts) {
  const int port = attributes.ah_attr.port_num;
  if (port < 1 || port > facts.port_count) {
    return Refuse(facts, port, fmt::format("port number {} does not exist", port),
                  fmt::format("the device has {} port(s), counted from 1", facts.port_count),
                  "choose one of them with --ib-port");
  }
  if (!facts.port) return {};
  if (facts.port->state != IBV_PORT_ACTIVE) {
    const bool infiniband = LinkLayerOf(facts.port->link_layer) == LinkLayer::kInfiniBand;
    return Refuse(facts, port, "the port is " + PortStateName(facts.port->state) + ", not ACTIVE",
                  infiniband ? "no cable, or no subnet manager has configured the port"
                             : "its network device is down or has no carrier",
                  infiniband ? "check the cable and that a subnet manager runs, or choose another "
                               "port with --ib-port"
                             : "set the network device up (`ip link set NETDEV up`), or choose "
                               "another port with --ib-port");
  }
  const uint32_t path = MtuBytes(attributes.path_mtu);
  if (path == 0) {
    return Refuse(facts, port,
                  fmt::format("path MTU code {} is none", static_cast<int>(attributes.path_mtu)),
                  "", "use 256, 512, 1024, 2048 or 4096 bytes");
  }
  const uint32_t active = MtuBytes(facts.port->active_mtu);
  if (active != 0 && path > active) {
    return Refuse(facts, port,
                  fmt::format("path MTU {} is above the port's active MTU {}", path, active),
                  "the link's own MTU is smaller: RoCE needs room for its headers beside the "
                  "payload",
                  fmt::format("use --mtu {}, or raise the network's MTU on both sides", active));
  }
  return {};
}

Status CheckAddress(const ibv_qp_attr& attributes, const RtrFacts& facts) {
  const ibv_ah_attr& address = attributes.ah_attr;
  const int port = address.port_num;
  const LinkLayer layer =
      facts.port ? LinkLayerOf(facts.port->link_layer) : LinkLayer::kUnspecified;
  if (layer == LinkLayer::kEthernet && address.is_global == 0) {
    return Refuse(facts, port, "the address has no GRH on an Ethernet port",
                  "RoCE addresses its packets by GID alone",
                  "set is_global and a GID index; check that the peer is RoCE too, not InfiniBand");
  }
  if (layer == LinkLayer::kInfiniBand && address.dlid == 0) {
    return Refuse(facts, port, "the peer's LID is 0 on an InfiniBand port",
                  "no subnet manager has given the peer's port a LID, or the peer is RoCE",
                  "check that a subnet manager runs, and the peer's link layer");
  }
  if (address.is_global == 0) return {};

  const int index = address.grh.sgid_index;
  if (facts.port && index >= facts.port->gid_tbl_len) {
    return Refuse(facts, port, fmt::format("GID index {} is outside the table", index),
                  fmt::format("the table of this port has {} entries", facts.port->gid_tbl_len),
                  "choose an entry that `verbscope devices` lists with --gid-index");
  }
  if (facts.source_gid && IsZero(*facts.source_gid)) {
    return Refuse(facts, port, fmt::format("the GID at index {} is zero", index),
                  "the entry is empty: the port's network device has no such address, or is in "
                  "another network namespace than this process",
                  "choose an entry that `verbscope devices` lists with --gid-index, or move the "
                  "network device into this namespace");
  }
  if (IsZero(address.grh.dgid)) {
    return Refuse(facts, port, "the peer's GID is zero",
                  "the peer chose an empty entry of its GID table",
                  "choose another entry on the peer with --peer gid-index=N");
  }
  return {};
}

}  // namespace

bool IsTransitionToRtr(const ibv_qp_attr& attributes, int mask) {
  return (mask & IBV_QP_STATE) != 0 && attributes.qp_state == IBV_QPS_RTR &&
         (mask & IBV_QP_AV) != 0;
}

Status CheckRtrInputs(const ibv_qp_attr& attributes, const RtrFacts& facts) {
  if (Status status = CheckPort(attributes, facts); !status) return status;
  return CheckAddress(attributes, facts);
}

}  // namespace verbscope
