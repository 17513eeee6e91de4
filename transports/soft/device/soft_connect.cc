// QP states and peers.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "transports/common/rtr_checks.h"
#include "transports/soft/device/call_error.h"
#include "transports/soft/device/soft_device.h"
#include "transports/soft/wire/frame.h"

namespace verbscope::soft {
namespace {

// A peer on the same host answers a connection at once or not at all.
constexpr std::chrono::seconds kConnectTime(5);

// One source port per QP at or above 0xc000, as annex A17 recommends for entropy.
uint16_t SourcePort(uint32_t qpn) {
  return static_cast<uint16_t>(0xc000 | ((qpn ^ (qpn >> 14)) & 0x3fff));
}

Flow FlowOf(const ibv_ah_attr& path, const ibv_gid& source, uint32_t qpn) {
  Flow flow;
  std::copy_n(source.raw, sizeof(source.raw), flow.source.begin());
  std::copy_n(path.grh.dgid.raw, sizeof(path.grh.dgid.raw), flow.destination.begin());
  flow.source_port = SourcePort(qpn);
  flow.hop_limit = path.grh.hop_limit;
  flow.traffic_class = path.grh.traffic_class;
  flow.flow_label = path.grh.flow_label & 0xfffff;
  return flow;
}

ibv_port_attr PortAttributes(const SoftPort& port) {
  ibv_port_attr attributes = {};
  attributes.state = port.state;
  attributes.link_layer = port.link_layer == LinkLayer::kInfiniBand ? IBV_LINK_LAYER_INFINIBAND
                                                                    : IBV_LINK_LAYER_ETHERNET;
  attributes.lid = port.lid;
  attributes.gid_tbl_len = kGidTableEntries;
  for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; ++mtu) {
    if ((128U << mtu) <= port.active_mtu_bytes) attributes.active_mtu = static_cast<ibv_mtu>(mtu);
    if ((128U << mtu) <= port.max_mtu_bytes) attributes.max_mtu = static_cast<ibv_mtu>(mtu);
  }
  return attributes;
}

}  // namespace

std::vector<std::byte> SoftDevice::PeerBlob(ibv_qp* /*qp*/) { return core_->link().LocalBlob(); }

Status SoftDevice::AcceptPeerBlob(ibv_qp* base, std::span<const std::byte> blob) {
  const std::lock_guard lock(mutex_);
  if (!qps_.Has(Of(base))) return Fail(Unknown("connecting a QP"));
  if (Status status = core_->link().CheckBlob(blob); !status) return status;
  Of(base).peer_blob.assign(blob.begin(), blob.end());
  return {};
}

Status SoftDevice::ConnectPath(SoftQp& qp, const ibv_ah_attr& path, uint32_t peer_qpn) {
  const GidSlot* source = FindGid(path.grh.sgid_index);
  const ibv_gid none = {};
  const Flow flow = FlowOf(path, source != nullptr ? source->gid : none, qp.pair->qpn());
  if (qp.peer_blob.empty() && !core_->link().udp()) {
    return Fail(Refused("ibv_modify_qp", "INIT to RTR", EINVAL,
                        "the soft device was not told where the peer is"));
  }
  Expected<LinkUse> connected =
      core_->link().Connect(qp.peer_blob, flow, peer_qpn, Deadline::After(kConnectTime));
  if (!connected) return Fail(std::move(connected.error()));
  qp.link_use = *connected;
  return {};
}

Status SoftDevice::ModifyQp(ibv_qp* base, ibv_qp_attr& attributes, int mask,
                            std::string_view what) {
  if (Status status = Hooked("modify_qp", what); !status) return status;
  const std::lock_guard lock(mutex_);
  if (!qps_.Has(Of(base))) return Fail(Unknown("ibv_modify_qp"));
  SoftQp& qp = Of(base);
  const DeviceLimits& limits = info_.limits;
  if ((mask & IBV_QP_PORT) != 0 && attributes.port_num != 1) {
    return Fail(Refused("ibv_modify_qp", what, EINVAL, info_.name + " has one port, number 1"));
  }
  if (((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 &&
       attributes.max_rd_atomic > limits.max_rd_atomic_initiator) ||
      ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 &&
       attributes.max_dest_rd_atomic > limits.max_rd_atomic_responder)) {
    return Fail(Refused("ibv_modify_qp", what, EINVAL,
                        fmt::format("{} has max_qp_init_rd_atom={}, max_qp_rd_atom={}", info_.name,
                                    limits.max_rd_atomic_initiator, limits.max_rd_atomic_responder),
                        "use a smaller --rd-atomic"));
  }
  const bool to_rtr = IsTransitionToRtr(attributes, mask) && qp.pair->state() == IBV_QPS_INIT;
  // Of a QP that came back to INIT, as only Defect::kAnyTransition lets it.
  const std::optional<LinkUse> replaced = to_rtr ? qp.link_use : std::nullopt;
  if (to_rtr) {
    RtrFacts facts;
    facts.device = info_.name;
    facts.qp_num = base->qp_num;
    facts.port = PortAttributes(options_.port);
    const GidSlot* source = FindGid(attributes.ah_attr.grh.sgid_index);
    facts.source_gid = source != nullptr ? source->gid : ibv_gid{};
    if (Status status = CheckRtrInputs(attributes, facts); !status) return status;
    if (Status status = ConnectPath(qp, attributes.ah_attr, attributes.dest_qp_num); !status)
      return status;
  }
  int result = 0;
  std::optional<LinkUse> unused;
  {
    const SpinLockHolder hold(core_->lock());
    const ibv_qp_state from = qp.pair->state();
    const bool to_reset = (mask & IBV_QP_STATE) != 0 && attributes.qp_state == IBV_QPS_RESET;
    if (to_reset) core_->DisarmPeersOf(*qp.pair);
    if (to_rtr) core_->UseLink();
    result = qp.pair->Modify(attributes, mask);
    if (to_rtr && result == 0) {
      core_->DisarmPeersOf(*qp.pair);
      qp.pair->SetPath(qp.link_use->path, qp.link_use->acks_unasked);
      core_->ArmPeersOf(*qp.pair);
    } else if (to_rtr || qp.pair->state() == IBV_QPS_RESET) {
      unused = std::exchange(qp.link_use, std::nullopt);
    }
    base->state = qp.pair->state();
    if (from != base->state) core_->engine().Touch(*qp.pair);
    core_->Service();
  }
  if (unused) core_->link().Disconnect(*unused);
  if (replaced) core_->link().Disconnect(*replaced);
  // It may be asleep for good: there were no timers and no packets to expect.
  if (to_rtr && result == 0) core_->CallHelper();
  if (result == 0) return {};
  return Fail(
      Refused("ibv_modify_qp", what, result,
              "the transition does not exist, an attribute it needs is missing, one it does "
              "not take is given, or a value is out of range (ibv_modify_qp(3))"));
}

Expected<ibv_qp_state> SoftDevice::QueryQpState(ibv_qp* base) {
  if (Status status = Hooked("query_qp", ""); !status) return Fail(std::move(status.error()));
  const std::lock_guard lock(mutex_);
  if (!qps_.Has(Of(base))) return Fail(Unknown("ibv_query_qp"));
  const SpinLockHolder hold(core_->lock());
  base->state = Of(base).pair->state();
  return base->state;
}

}  // namespace verbscope::soft
