// The verbs objects of one side of one run, built from a plan on a Device: PD, buffer, MR,
// completion channel, CQs, RC QPs, and the prebuilt work that the loops post. Destroyed in reverse
// order by RAII.
//
// Life: Create (QPs in INIT) -> PostReceives -> exchange EndpointInfo -> Connect (RTR, RTS) -> the
// loops use it -> Close. A fresh Endpoint is made for every run and size.
//
// Both sides lay out their buffers alike: what is sent (or read from here) first, then what is
// received, each with guard bytes behind it.
//
// Owned by a session; used by one thread at a time. The measuring thread uses the raw objects of
// the setups without any call through this class.
#ifndef VERBSCOPE_CORE_ENDPOINT_ENDPOINT_H_
#define VERBSCOPE_CORE_ENDPOINT_ENDPOINT_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/endpoint/connect.h"
#include "core/loops/open_loop.h"
#include "core/loops/payload_ping.h"
#include "core/loops/ping_pong.h"
#include "core/loops/round_trip.h"
#include "core/loops/stream.h"
#include "core/loops/wr_id.h"
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
  // Objects made and the QPs in INIT. kSetup for every limit, with the option that caused it named.
  static Expected<std::unique_ptr<Endpoint>> Create(Device& device, const Plan& plan,
                                                    const EndpointOptions& options);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint() = default;

  EndpointInfo Info() const;
  // Fills the receive queues. Before the peer is told "ready", so that it never meets an empty
  // queue.
  Status PostReceives();
  // INIT -> RTR -> RTS with the remote's values.
  Status Connect(const EndpointInfo& remote);

  // The prebuilt work of each kind of loop. Valid while this Endpoint lives and is connected.
  PingPongSetup PingPong(StopSignal& stop, IntervalRecorder& recorder);
  PayloadPingSetup PayloadPing(StopSignal& stop, IntervalRecorder& recorder);
  RoundTripSetup RoundTrips(StopSignal& stop, IntervalRecorder& recorder);
  // `due`, `gaps` and `scale` of the result are the caller's to fill in.
  OpenLoopSetup OpenLoop(StopSignal& stop, IntervalRecorder& recorder);
  // Recorders, `sends` and `receives` are the caller's to fill in.
  StreamSetup Stream(StopSignal& stop);

  // Everything destroyed, QPs first; the first failure. Idempotent.
  Status Close();

  ibv_qp* qp(size_t index = 0) const { return qps_[index].get(); }
  size_t qp_count() const { return qps_.size(); }
  // Completions that a stream has taken of one QP; 0 for other loops.
  uint64_t taken(size_t index) const { return streams() ? stream_qps_[index].taken : 0; }
  ibv_cq* send_cq() const { return send_cq_.get(); }
  ibv_cq* recv_cq() const { return one_cq() ? send_cq_.get() : recv_cq_.get(); }
  bool sends_inline() const { return send_inline_; }
  uint32_t receives_posted() const { return receives_; }
  uint32_t depth() const { return depth_; }

  // Of --verify. The part of the buffer that is sent or read by the peer, that where messages or
  // results land, and the guard behind that.
  std::span<std::byte> sent_part() const;
  std::span<std::byte> received_part() const;
  std::span<std::byte> guard_part() const;

 private:
  Endpoint(Device& device, const Plan& plan, const EndpointOptions& options)
      : device_(device), plan_(plan), options_(options), operation_(OperationOf(plan)) {}

  bool streams() const { return operation_.shape == LoopShape::kStream; }
  // Streams take all completions from one CQ.
  bool one_cq() const { return streams(); }
  int Access() const;
  Status CreateMemory();
  void ChooseDepths();
  Status ChooseInline();
  Status CreateQueues();
  Status CreateCqs(uint32_t send_wr, uint32_t recv_wr);
  Status Moderate(ibv_cq* cq);  // the one that wakes
  ibv_recv_wr ReceiveRequest(size_t qp_index);
  void BuildSend(const EndpointInfo& remote);
  void BuildReceives(size_t qp_index);
  void BuildStream(const EndpointInfo& remote);

  Device& device_;
  const Plan plan_;
  const EndpointOptions options_;
  const Operation operation_;

  // In order of creation; destroyed in reverse.
  Pd pd_;
  std::unique_ptr<Buffer> buffer_;
  Mr mr_;  // empty for SENDs of size 0
  CompChannel channel_;
  Cq send_cq_;
  Cq recv_cq_;
  std::vector<Qp> qps_;

  std::vector<uint32_t> psns_;
  uint64_t received_offset_ = 0;  // of the buffer's second part
  uint32_t depth_ = 1;            // requests in flight per QP
  uint32_t signal_every_ = 1;
  uint32_t receives_ = 0;       // posted per QP
  uint32_t data_receives_ = 0;  // of those: for the peer's messages
  bool send_inline_ = false;

  // Prebuilt work. Vectors do not change after Connect: requests point to each other.
  ibv_sge send_sge_ = {};
  ibv_sge recv_sge_ = {};
  ibv_send_wr send_ = {};  // unsignalled
  ibv_send_wr signalled_send_ = {};
  std::vector<std::vector<ibv_recv_wr>> recv_batches_;  // per QP
  std::vector<std::vector<ibv_send_wr>> lists_;         // of a stream, per QP
  std::vector<ibv_send_wr> credits_;                    // likewise
  std::vector<StreamQp> stream_qps_;
  PingPongState ping_pong_state_;
  PayloadPingState payload_ping_state_;
  OpenLoopState open_loop_state_;
  AtomicSlots atomic_;
};

// Send completions are signalled once in this many messages unless the plan says otherwise; the
// send queue holds twice as many, so the queue can never fill up before the signalled one was
// reaped.
inline constexpr uint32_t kDefaultSignalEvery = 32;
// The same for streams, where it is also at most half of the depth.
inline constexpr uint32_t kStreamSignalEvery = 64;
// Receives are given back in lists of up to this many.
inline constexpr uint32_t kMaxRecvBatch = 16;
// Immediate data of messages whose value nobody looks at; kCreditBit is not in it.
inline constexpr uint32_t kImmediate = 0x01020304;

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_ENDPOINT_ENDPOINT_H_
