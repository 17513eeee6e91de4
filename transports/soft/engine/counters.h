// What one soft device has counted since it was opened. Names are rxe's hw_counters where the
// meaning is the same (facts: drivers/infiniband/sw/rxe). Plain numbers, changed with the device's
// lock held.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_COUNTERS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_COUNTERS_H_

#include <cstdint>
#include <string_view>

namespace verbscope::soft {

struct Counters {
  uint64_t sent_pkts = 0;
  uint64_t rcvd_pkts = 0;
  uint64_t duplicate_request = 0;   // requests older than the expected PSN
  uint64_t out_of_seq_request = 0;  // requests newer than the expected PSN
  uint64_t rcvd_rnr_err = 0;        // RNR NAKs received
  uint64_t send_rnr_err = 0;        // RNR NAKs sent
  uint64_t rcvd_seq_err = 0;        // sequence NAKs received
  uint64_t ack_deferred = 0;        // ACKs coalesced into a later one
  uint64_t retry_exceeded_err = 0;
  uint64_t retry_rnr_exceeded_err = 0;
  uint64_t completer_retry_err = 0;  // go-backs of the requester, whatever the reason
  uint64_t send_err = 0;             // packets that the link would never take
  uint64_t rdma_sends = 0;           // SENDs accepted by the responder
  uint64_t rdma_recvs = 0;           // receives consumed
  // Beyond rxe.
  uint64_t icrc_errors = 0;
  uint64_t malformed_pkts = 0;  // refused by the decoder
  uint64_t unknown_qpn = 0;
  uint64_t wrong_source = 0;         // right QP, wrong path
  uint64_t dropped_state = 0;        // QP not in a state that receives
  uint64_t unexpected_response = 0;  // stale, ghost or out-of-order responses
  uint64_t implied_nak_seq_err = 0;
  uint64_t local_ack_timeout_err = 0;
  uint64_t remote_access_err = 0;       // NAK 0x62 sent
  uint64_t remote_invalid_req_err = 0;  // NAK 0x61 sent
  uint64_t remote_op_err = 0;           // NAK 0x63 sent
  uint64_t cq_overrun = 0;
};

// Calls f(name, value) for each counter, in the order above.
template <class F>
void ForEach(const Counters& counters, F&& f) {
  f(std::string_view("sent_pkts"), counters.sent_pkts);
  f(std::string_view("rcvd_pkts"), counters.rcvd_pkts);
  f(std::string_view("duplicate_request"), counters.duplicate_request);
  f(std::string_view("out_of_seq_request"), counters.out_of_seq_request);
  f(std::string_view("rcvd_rnr_err"), counters.rcvd_rnr_err);
  f(std::string_view("send_rnr_err"), counters.send_rnr_err);
  f(std::string_view("rcvd_seq_err"), counters.rcvd_seq_err);
  f(std::string_view("ack_deferred"), counters.ack_deferred);
  f(std::string_view("retry_exceeded_err"), counters.retry_exceeded_err);
  f(std::string_view("retry_rnr_exceeded_err"), counters.retry_rnr_exceeded_err);
  f(std::string_view("completer_retry_err"), counters.completer_retry_err);
  f(std::string_view("send_err"), counters.send_err);
  f(std::string_view("rdma_sends"), counters.rdma_sends);
  f(std::string_view("rdma_recvs"), counters.rdma_recvs);
  f(std::string_view("icrc_errors"), counters.icrc_errors);
  f(std::string_view("malformed_pkts"), counters.malformed_pkts);
  f(std::string_view("unknown_qpn"), counters.unknown_qpn);
  f(std::string_view("wrong_source"), counters.wrong_source);
  f(std::string_view("dropped_state"), counters.dropped_state);
  f(std::string_view("unexpected_response"), counters.unexpected_response);
  f(std::string_view("implied_nak_seq_err"), counters.implied_nak_seq_err);
  f(std::string_view("local_ack_timeout_err"), counters.local_ack_timeout_err);
  f(std::string_view("remote_access_err"), counters.remote_access_err);
  f(std::string_view("remote_invalid_req_err"), counters.remote_invalid_req_err);
  f(std::string_view("remote_op_err"), counters.remote_op_err);
  f(std::string_view("cq_overrun"), counters.cq_overrun);
}

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_COUNTERS_H_
