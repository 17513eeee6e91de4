// The way of an RC QP from RESET to RTS, one function per transition (ibv_modify_qp(3)), and what
// both ends must know of each other for it. Used by the measuring endpoint and by every scenario
// that makes a fresh QP.
//
// Functions without state; the thread that owns the QP.
#ifndef VERBSCOPE_CORE_ENDPOINT_CONNECT_H_
#define VERBSCOPE_CORE_ENDPOINT_CONNECT_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"
#include "transports/device.h"

namespace verbscope {

// This side's end of the path, chosen once per session.
struct PathOptions {
  PortInfo port;
  GidEntry gid;              // index is the source GID index
  bool global_route = true;  // RoCE always; InfiniBand between subnets
  uint32_t path_mtu_bytes = 0;
};

struct QpInfo {
  uint32_t qpn = 0;             // 24 bits
  uint32_t psn = 0;             // 24 bits: first packet sequence number this side sends
  std::vector<std::byte> blob;  // for the peer's device, opaque
};

// What one end tells the other. Travels as JSON over the control channel.
struct EndpointInfo {
  std::vector<QpInfo> qps;  // the n-th of one side is connected to the n-th of the other
  uint32_t lid = 0;
  GidEntry gid;
  uint32_t mtu_bytes = 0;  // path MTU this side uses
  uint32_t rkey = 0;       // 0 without memory
  uint64_t address = 0;
  uint64_t buffer_bytes = 0;
  uint32_t rd_atomic = 0;        // READs and Atomics this side serves at once, per QP
  uint32_t receives = 0;         // posted for the peer's messages, per QP
  bool wants_solicited = false;  // this side sleeps until a solicited message
};

// A first PSN that an earlier connection of the same QPN is unlikely to have used.
uint32_t RandomPsn();
// READs and Atomics that this side serves at once: --rd-atomic within the device's limit.
uint32_t ServedAtOnce(const Device& device, const Plan& plan);

// RESET -> INIT. `access`: what the peer may do, a mask of ibv_access_flags.
Status ToInit(Device& device, ibv_qp* qp, const Plan& plan, const PathOptions& path, int access);
// INIT -> RTR. What the peer's device said of its QP must have been accepted before
// (Device::AcceptPeerBlob).
Status ToReadyToReceive(Device& device, ibv_qp* qp, const Plan& plan, const PathOptions& path,
                        const EndpointInfo& remote, const QpInfo& remote_qp);
// RTR -> RTS.
Status ToReadyToSend(Device& device, ibv_qp* qp, uint32_t own_psn, const Plan& plan,
                     const EndpointInfo& remote);
// INIT -> RTR -> RTS with the values of the remote's `index`-th QP. kSetup for a remote without it.
Status ConnectQp(Device& device, ibv_qp* qp, uint32_t own_psn, const Plan& plan,
                 const PathOptions& path, const EndpointInfo& remote, size_t index);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_ENDPOINT_CONNECT_H_
