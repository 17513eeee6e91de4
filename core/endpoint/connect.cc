#include "core/endpoint/connect.h"

#include <fmt/core.h>
#include <sys/random.h>

#include <algorithm>

namespace verbscope {
namespace {

ibv_mtu MtuCode(uint32_t bytes) {
  switch (bytes) {
    case 256:
      return IBV_MTU_256;
    case 512:
      return IBV_MTU_512;
    case 1024:
      return IBV_MTU_1024;
    case 2048:
      return IBV_MTU_2048;
    default:
      return IBV_MTU_4096;
  }
}

// READs and Atomics this side may have outstanding: what both ends bear.
uint32_t InFlightAtOnce(const Device& device, const Plan& plan, const EndpointInfo& remote) {
  uint32_t initiated = device.info().limits.max_rd_atomic_initiator;
  if (plan.rd_atomic != 0) initiated = std::min(initiated, plan.rd_atomic);
  return std::min({initiated, remote.rd_atomic, 255u});
}

}  // namespace

uint32_t RandomPsn() {
  uint32_t value = 0;
  // Short reads of 4 bytes do not happen once the pool is initialised; a zero PSN is legal anyway.
  (void)!::getrandom(&value, sizeof(value), 0);
  return value & 0xffffff;
}

uint32_t ServedAtOnce(const Device& device, const Plan& plan) {
  const uint32_t limit = device.info().limits.max_rd_atomic_responder;
  return std::min({plan.rd_atomic != 0 ? std::min(limit, plan.rd_atomic) : limit, 255u});
}

Status ToInit(Device& device, ibv_qp* qp, const Plan& plan, const PathOptions& path, int access) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = static_cast<uint16_t>(plan.pkey_index);
  attributes.port_num = static_cast<uint8_t>(path.port.number);
  attributes.qp_access_flags = static_cast<unsigned>(access);
  return device.ModifyQp(qp, attributes,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                         "RESET to INIT");
}

Status ToReadyToReceive(Device& device, ibv_qp* qp, const Plan& plan, const PathOptions& options,
                        const EndpointInfo& remote, const QpInfo& remote_qp) {
  if (options.gid.index > UINT8_MAX) {
    return Fail(
        SetupError(fmt::format("GID index {} is above 255, which the verbs interface cannot name",
                               options.gid.index),
                   "", "choose a lower --gid-index"));
  }
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = MtuCode(options.path_mtu_bytes);
  attributes.dest_qp_num = remote_qp.qpn;
  attributes.rq_psn = remote_qp.psn;
  attributes.max_dest_rd_atomic = static_cast<uint8_t>(ServedAtOnce(device, plan));
  attributes.min_rnr_timer = static_cast<uint8_t>(plan.rnr_timer_code);
  ibv_ah_attr& path = attributes.ah_attr;
  path.dlid = static_cast<uint16_t>(remote.lid);
  path.sl = static_cast<uint8_t>(plan.service_level);
  path.port_num = static_cast<uint8_t>(options.port.number);
  path.is_global = options.global_route ? 1 : 0;
  path.grh.dgid = remote.gid.raw;
  path.grh.flow_label = plan.flow_label;
  path.grh.sgid_index = static_cast<uint8_t>(options.gid.index);
  path.grh.hop_limit = static_cast<uint8_t>(plan.hop_limit);
  path.grh.traffic_class = static_cast<uint8_t>(plan.traffic_class);
  return device.ModifyQp(qp, attributes,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                         "INIT to RTR");
}

Status ToReadyToSend(Device& device, ibv_qp* qp, uint32_t own_psn, const Plan& plan,
                     const EndpointInfo& remote) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = static_cast<uint8_t>(plan.timeout_code);
  attributes.retry_cnt = static_cast<uint8_t>(plan.retry_count);
  attributes.rnr_retry = static_cast<uint8_t>(plan.rnr_retry);
  attributes.sq_psn = own_psn;
  attributes.max_rd_atomic = static_cast<uint8_t>(InFlightAtOnce(device, plan, remote));
  return device.ModifyQp(qp, attributes,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                         "RTR to RTS");
}

Status ConnectQp(Device& device, ibv_qp* qp, uint32_t own_psn, const Plan& plan,
                 const PathOptions& path, const EndpointInfo& remote, size_t index) {
  if (index >= remote.qps.size()) {
    return Fail(SetupError(
        fmt::format("the peer has {} QPs, this side needs {}", remote.qps.size(), index + 1), "",
        "use the same version of verbscope on both sides"));
  }
  const QpInfo& remote_qp = remote.qps[index];
  if (Status status = device.AcceptPeerBlob(qp, remote_qp.blob); !status) return status;
  if (Status status = ToReadyToReceive(device, qp, plan, path, remote, remote_qp); !status) {
    return status;
  }
  return ToReadyToSend(device, qp, own_psn, plan, remote);
}

}  // namespace verbscope
