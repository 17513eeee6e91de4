// The verbs objects of one side of one connection, built from a plan on a Device: PD, buffer, MR,
// completion channel, send and receive CQ, RC QP. Destroyed in reverse order by RAII.
//
// Life: Create (QP in INIT) -> PostReceives -> exchange EndpointInfo -> Connect (RTR, RTS) -> the
// loops use it -> Close. A fresh Endpoint is made for every run and size.
//
// Owned by a session; used by one thread at a time. The measuring thread uses the raw objects of
// PingPong() without any call through this class.
#ifndef VERBSCOPE_CORE_ENDPOINT_ENDPOINT_H_
#define VERBSCOPE_CORE_ENDPOINT_ENDPOINT_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "core/endpoint/connect.h"
#include "core/loops/ping_pong.h"
#include "core/loops/round_trip.h"
#include "core/plan/operation.h"
#include "core/plan/plan.h"
#include "transports/device.h"

namespace verbscope {

struct EndpointOptions {
  uint64_t size_bytes = 0;
  WaitMode wait;
  int comp_vector = 0;
  int numa_node = -1;
  bool huge_pages = false;
  PathOptions path;
};

class Endpoint {
 public:
  // Objects made and the QP in INIT. kSetup for every limit, with the option that caused it named.
  static Expected<std::unique_ptr<Endpoint>> Create(Device& device, const Plan& plan,
                                                    const EndpointOptions& options);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint() = default;

  EndpointInfo Info() const;
  // Fills the receive queue. Before the peer is told "ready", so that it never meets an empty
  // queue.
  Status PostReceives();
  // INIT -> RTR -> RTS with the remote's values.
  Status Connect(const EndpointInfo& remote);

  // The prebuilt work of a ping-pong, or of round trips. Valid while this Endpoint lives.
  PingPongSetup PingPong(StopSignal& stop, IntervalRecorder& recorder);
  RoundTripSetup RoundTrips(StopSignal& stop, IntervalRecorder& recorder);

  // Everything destroyed, QP first; the first failure. Idempotent.
  Status Close();

  ibv_qp* qp() const { return qp_.get(); }
  ibv_cq* send_cq() const { return send_cq_.get(); }
  ibv_cq* recv_cq() const { return recv_cq_.get(); }
  bool sends_inline() const { return send_inline_; }
  uint32_t receives_posted() const { return receives_; }

 private:
  Endpoint(Device& device, const Plan& plan, const EndpointOptions& options)
      : device_(device),
        plan_(plan),
        options_(options),
        round_trip_(OperationOf(plan).shape == LoopShape::kRoundTrip) {}

  Status CreateMemory();
  Status CreateQueues();
  void BuildWork(const EndpointInfo& remote);
  void BuildPingPong(bool solicited);

  Device& device_;
  const Plan plan_;
  const EndpointOptions options_;
  const bool round_trip_;

  // In order of creation; destroyed in reverse.
  Pd pd_;
  std::unique_ptr<Buffer> buffer_;
  Mr mr_;  // empty for size 0
  CompChannel channel_;
  Cq send_cq_;
  Cq recv_cq_;
  Qp qp_;

  uint32_t psn_ = 0;
  uint32_t signal_every_ = 1;
  uint32_t receives_ = 0;
  bool send_inline_ = false;
  ibv_sge send_sge_ = {};
  ibv_sge recv_sge_ = {};
  ibv_send_wr send_ = {};
  ibv_send_wr signalled_send_ = {};
  ibv_send_wr request_ = {};  // of a round trip
  std::vector<ibv_recv_wr> recv_batch_;
  PingPongState state_;
};

// Send completions are signalled once in this many messages unless the plan says otherwise; the
// send queue holds twice as many, so the queue can never fill up before the signalled one was
// reaped.
inline constexpr uint32_t kDefaultSignalEvery = 32;
// Receives are given back in lists of up to this many.
inline constexpr uint32_t kMaxRecvBatch = 16;
// wr_id of everything posted: tells in which queue a completion belongs, even when it failed and
// nothing else of it is valid.
inline constexpr uint64_t kSendWrId = 1;
inline constexpr uint64_t kRecvWrId = 2;

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_ENDPOINT_ENDPOINT_H_
