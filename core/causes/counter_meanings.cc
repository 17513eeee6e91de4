#include "core/causes/counter_meanings.h"

#include <algorithm>
#include <array>

namespace verbscope {
namespace {

using enum CounterSign;

// Those that say most about a run come first: notes keep this order.
constexpr auto kTable = std::to_array<CounterMeaning>({
    // Damage.
    {"icrc_errors", kCorrupt, "packets arrived with a wrong ICRC: damaged on the way"},
    {"rx_icrc_encapsulated", kCorrupt,
     "packets arrived with a wrong ICRC: a device or a box on the way changes them"},
    {"malformed_pkts", kCorrupt, "packets arrived that are no RoCE packets"},
    {"symbol_error", kCorrupt, "the link has symbol errors: cable, module or dirt"},
    {"port_rcv_errors", kCorrupt, "packets arrived with an error of the link or of their format"},
    {"netdev.rx_errors", kCorrupt, "the network device received damaged frames"},
    // Receives missing.
    {"out_of_buffer", kStarved, "messages arrived and found no receive posted"},
    {"rx_out_of_buffer", kStarved, "messages arrived and found no receive posted"},
    {"send_rnr_err", kStarved, "RNR NAKs sent: messages arrived and found no receive posted"},
    {"res_rx_no_perm", kRefused, "requests without the permission that they need"},
    {"rnr_nak_retry_err", kPeerStarved,
     "RNR NAKs received and retried: the peer had no receive posted"},
    {"rcvd_rnr_err", kPeerStarved, "RNR NAKs received: the peer had no receive posted"},
    {"rnr_naks_rcvd", kPeerStarved, "RNR NAKs received: the peer had no receive posted"},
    {"req_rnr_retries_exceeded", kGaveUp, "RNR retries used up: the QP failed"},
    {"retry_rnr_exceeded_err", kGaveUp, "RNR retries used up: the QP failed"},
    // Loss.
    {"out_of_sequence", kLossIn, "requests arrived out of order: some before them were lost"},
    {"out_of_seq_request", kLossIn, "requests arrived out of order: some before them were lost"},
    {"oos_drop_count", kLossIn, "packets dropped since some before them were lost"},
    {"packet_seq_err", kLossOut, "sequence NAKs received: the peer missed packets from here"},
    {"rcvd_seq_err", kLossOut, "sequence NAKs received: the peer missed packets from here"},
    {"seq_err_naks_rcvd", kLossOut, "sequence NAKs received: the peer missed packets from here"},
    {"implied_nak_seq_err", kLossIn, "a gap in the answers to READs or Atomics: answers were lost"},
    {"missing_resp", kLossIn, "a gap in the answers to READs or Atomics: answers were lost"},
    {"duplicate_request", kLossOut,
     "requests arrived twice: the answers from here were lost, or the peer's timeout is too short"},
    {"local_ack_timeout_err", kLoss,
     "the ACK timer ran out: the last packets or their answer were lost, or the path is down"},
    {"to_retransmits", kLoss, "retransmissions after a timeout"},
    {"retrans_timeout_events", kLoss, "retransmissions after a timeout"},
    {"completer_retry_err", kLoss, "requests were sent again"},
    {"roce_adp_retrans", kLoss, "adaptive retransmissions"},
    {"roce_adp_retrans_to", kLoss, "adaptive retransmission timeouts"},
    {"roce_slow_restart", kLoss, "slow restarts of the sender after loss or congestion"},
    {"roce_slow_restart_trans", kLoss, "slow restarts of the sender after loss or congestion"},
    {"req_transport_retries_exceeded", kGaveUp, "transport retries used up: the QP failed"},
    {"retry_exceeded_err", kGaveUp, "transport retries used up: the QP failed"},
    {"max_retry_exceeded", kGaveUp, "transport retries used up: the QP failed"},
    // Refusals.
    {"req_remote_access_errors", kRefused, "the peer refused access: key, bounds or rights"},
    {"resp_remote_access_errors", kRefused, "requests of the peer refused: key, bounds or rights"},
    {"remote_access_err", kRefused, "requests of the peer refused: key, bounds or rights"},
    {"remote_access_errors", kRefused, "the peer refused access: key, bounds or rights"},
    {"req_remote_invalid_request", kRefused, "the peer refused a request as invalid"},
    {"remote_invalid_req_err", kRefused, "requests of the peer refused as invalid"},
    {"remote_op_err", kRefused, "requests of the peer that could not be completed here"},
    {"resp_local_length_error", kRefused, "messages longer than the receive posted here"},
    {"local_prot_err", kRefused, "requests whose local memory is not registered"},
    {"rdma_read_wr_err", kRefused, "READs that failed"},
    {"rdma_write_wr_err", kRefused, "WRITEs that failed"},
    {"req_cqe_error", kRefused, "requests completed with an error"},
    {"resp_cqe_error", kRefused, "receives completed with an error"},
    // Congestion.
    {"np_ecn_marked_roce_packets", kCongested,
     "packets arrived marked by ECN: a queue on the way here is long"},
    {"np_cnp_sent", kCongested, "congestion notices sent to the peer"},
    {"rp_cnp_handled", kCongested, "congestion notices received: this side slowed down"},
    {"rp_cnp_ignored", kCongested, "congestion notices received and not acted on"},
    {"rx_prio3_pause", kCongested, "pause frames received: the switch or the peer is congested"},
    {"tx_prio3_pause", kCongested, "pause frames sent: this host receives too slowly"},
    {"port_xmit_wait", kCongested,
     "ticks in which data waited to be sent: no credits, or pause frames"},
    // The link and the netdev.
    {"link_downed", kLink, "the link went down"},
    {"link_down_events_phy", kLink, "the link went down"},
    {"link_error_recovery", kLink, "the link recovered from errors"},
    {"netdev.carrier_changes", kLink, "the network device lost or found its carrier"},
    {"netdev.carrier_down_count", kLink, "the network device lost its carrier"},
    {"rx_roce_discards", kDropped, "RoCE packets dropped by the device here"},
    {"tx_roce_discards", kDropped, "RoCE packets dropped by the device here before they left"},
    {"rx_drops", kDropped, "packets dropped by the device here"},
    {"rx_discards_phy", kDropped, "frames dropped at the port: its buffers were full"},
    {"tx_discards_phy", kDropped, "frames dropped at the port before they left"},
    {"rx_oversize_pkts_phy", kDropped, "frames above this port's MTU: the peer's MTU is larger"},
    {"port_rcv_remote_physical_errors", kDropped, "packets marked bad by the other end"},
    {"port_xmit_discards", kDropped, "packets dropped at the port before they left"},
    {"excessive_buffer_overrun_errors", kDropped, "the port's buffers overran"},
    {"netdev.rx_dropped", kDropped, "frames dropped by the network device here, RDMA or not"},
    {"netdev.tx_dropped", kDropped, "frames dropped by the network device before they left"},
    {"netdev.tx_errors", kDropped, "frames that the network device could not send"},
    {"netdev.rx_missed_errors", kDropped, "frames missed for want of buffers"},
    {"send_err", kDropped, "packets that the link here would not take"},
    {"cq_overrun", kRefused, "completions that found no room in their CQ"},
    // Work as usual.
    {"rcvd_pkts", kReceived, "RoCE packets received"},
    {"sent_pkts", kSent, "RoCE packets sent"},
    {"rx_write_requests", kTraffic, "WRITE requests received"},
    {"rx_read_requests", kTraffic, "READ requests received"},
    {"rx_atomic_requests", kTraffic, "Atomic requests received"},
    {"ack_deferred", kTraffic, "ACKs that a later one stood for"},
    {"rdma_sends", kTraffic, "SENDs accepted"},
    {"rdma_recvs", kTraffic, "receives used"},
    {"port_xmit_data_bytes", kTraffic, "bytes sent by the port, RDMA or not"},
    {"port_rcv_data_bytes", kTraffic, "bytes received by the port, RDMA or not"},
    {"port_xmit_packets", kTraffic, "packets sent by the port, RDMA or not"},
    {"port_rcv_packets", kTraffic, "packets received by the port, RDMA or not"},
    {"np_cnp_handled", kTraffic, "congestion notices handled"},
    {"req_cqe_flush_error", kTraffic, "requests flushed after another fault"},
    {"resp_cqe_flush_error", kTraffic, "receives flushed after another fault"},
    {"no_completion_cmds", kTraffic, "commands that the device did not answer"},
    {"lifespan", kTraffic, "for how long the kernel gives an older reading, in ms"},
});

void AddNotes(const std::map<std::string, int64_t>& counters, std::string_view side,
              std::vector<CounterNote>& notes) {
  for (const CounterMeaning& row : kTable) {
    const auto found = counters.find(std::string(row.name));
    if (found == counters.end() || found->second <= 0 || !IsTrouble(row.sign)) continue;
    notes.push_back({.side = std::string(side),
                     .name = found->first,
                     .change = found->second,
                     .meaning = std::string(row.meaning)});
  }
}

}  // namespace

bool IsTrouble(CounterSign sign) { return sign != kTraffic && sign != kReceived && sign != kSent; }

std::span<const CounterMeaning> CounterMeanings() { return kTable; }

const CounterMeaning* FindCounter(std::string_view name) {
  const auto* row = std::ranges::find(kTable, name, &CounterMeaning::name);
  return row == kTable.end() ? nullptr : row;
}

std::vector<CounterNote> NotesOf(const std::map<std::string, int64_t>& requester,
                                 const std::map<std::string, int64_t>& responder) {
  std::vector<CounterNote> notes;
  AddNotes(requester, "requester", notes);
  AddNotes(responder, "responder", notes);
  // Neither side's notes push out what the other has to say first.
  const auto rank = [](const CounterNote& note) { return FindCounter(note.name); };
  std::ranges::stable_sort(notes, {}, rank);
  if (notes.size() > kMaxCounterNotes) notes.resize(kMaxCounterNotes);
  return notes;
}

}  // namespace verbscope
