// The requester half of an RC QP: turns posted work into request packets, takes the responses,
// repeats what was lost, and completes the work in order (IBTA 9.7.2 … 9.7.8).
//
// PSNs are counted in 32 bits inside and masked to 24 on the wire. Of all PSNs given to posted
// work, [una, next) are in flight, [next, sent) were sent before a go-back and will be sent again.
//
// Timers take no clock reading on the way of a message: sending only marks that the ACK timer has
// to run, the next Tick starts it and a later one finds it expired. So a timeout is never early,
// and late by at most the time to the next Tick at either end (the specification allows up to four
// times the interval). An RNR time is started by a Tick of its own (Environment::timer_urgent).
//
// Files: requester_post.cc takes work, requester.cc sends it, requester_responses.cc takes
// responses and time.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_REQUESTER_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_REQUESTER_H_

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transports/soft/engine/qp_context.h"
#include "transports/soft/engine/receive_queue.h"
#include "transports/soft/engine/send_queue.h"
#include "transports/soft/engine/sent_bytes.h"
#include "transports/soft/wire/psn.h"

namespace verbscope::soft {

class Requester {
 public:
  Requester(QpContext& context, const ibv_qp_cap& cap, bool signal_all)
      : context_(context),
        queue_(cap.max_send_wr, std::min(cap.max_send_sge, kMaxSge), cap.max_inline_data,
               // Completed early, and still to be answered: no more than are in flight.
               context.env.Has(Defect::kEarlyCompletion) ? context.env.options.window_packets : 0),
        signal_all_(signal_all) {}

  // Takes one request: 0, EINVAL (opcode, SGEs, inline size) or ENOMEM (queue full). Sends nothing.
  int Post(const ibv_send_wr& wr);
  // Sends what may be sent. True: the link is full and there is more.
  bool Pump();
  // An ACK, NAK, READ response or atomic acknowledge of this QP's peer.
  void OnResponse(const Header& header, std::span<const std::byte> payload);

  // Time. Returns true if Pump may have something to send.
  bool Tick(uint64_t now_ns);
  std::optional<uint64_t> NextTimer() const;  // 0: at the next opportunity

  void Start(uint32_t psn);  // to RTS
  // Retry counts and timeout changed.
  void ReloadRetries();
  void Flush();  // everything incomplete ends with WR_FLUSH_ERR
  void Reset();
  // Nothing sent is unanswered and no message is half sent (for SQD).
  bool Drained() const { return una_ == sent_ && next_packet_ == 0; }
  // Requests wait that were not sent, or not whole.
  bool Unsent() const { return queue_.next != queue_.tail; }
  bool Idle() const { return queue_.empty(); }
  // Largest inline data that Post takes, in bytes.
  uint32_t max_inline() const {
    return context_.env.Has(Defect::kOverInline) ? kOverInlineBytes : queue_.max_inline();
  }
  uint32_t next_psn() const { return next_ & kPsnMask; }
  const SendQueue& queue() const { return queue_; }

 private:
  // Room for the pieces of one packet, without the cost of initialising pieces that are not used.
  union Pieces {
    Pieces() {}
    std::span<const std::byte> spans[kMaxSge];
  };
  enum class Sent : uint8_t { kYes, kLinkFull, kBlocked };
  // Of a device that knows no limit. Any bound would do, so that its memory has one.
  static constexpr uint32_t kOverInlineBytes = 65536;

  // Posting.
  ibv_wc_status LocalProblem(const SendRequest& request) const;
  void TakeInline(const ibv_send_wr& wr, uint32_t length);

  // Sending.
  bool Blocked(const SendRequest& request);
  // Request packets sent and not acknowledged.
  uint32_t InFlight() const { return next_ - una_ - read_extra_; }
  Sent SendPacket(SendRequest& request);
  Sent SendData(SendRequest& request);
  // Whether the next packet asks for an ACK.
  bool AsksForAck(const SendRequest& request, bool last) const;
  Sent SendRead(SendRequest& request);
  Sent SendAtomic(SendRequest& request);
  // The part of a request's data that goes into one packet; nullopt when a local key does not allow
  // it.
  std::optional<size_t> Gather(uint32_t index, const SendRequest& request, uint32_t offset,
                               uint32_t bytes, Pieces& pieces);
  std::optional<size_t> GatherMany(uint32_t index, uint32_t offset, uint32_t bytes, Pieces& pieces);
  bool LocalKeysHold(uint32_t index, const SendRequest& request);
  // Inline data as it is in the program's memory now (Defect::kInlineByReference).
  void TakeInlineAgain(uint32_t index, const SendRequest& request);
  void AfterPacket(uint32_t psns_taken, bool message_done);
  // Of memory that cannot be read for sending: rxe 6.1 calls it a failed operation when the key is
  // not one of the PD's.
  ibv_wc_status UnreadableStatus(uint32_t index, const SendRequest& request);
  // What has been sent and needs no response completes (Defect::kEarlyCompletion).
  void CompleteEarly();
  void LocalError(SendRequest& request, ibv_wc_status status);

  // Responses.
  void OnAck(const Header& header, uint32_t psn);
  void OnNak(uint8_t syndrome, uint32_t psn);
  void OnReadResponse(const Header& header, uint32_t psn, std::span<const std::byte> payload);
  void OnAtomicAck(const Header& header, uint32_t psn);
  // Everything before `limit` has been received by the peer. False: a READ or atomic before it has
  // not been answered.
  bool Acknowledge(uint32_t limit);
  bool AcknowledgeBefore(uint32_t psn);  // the SENDs and WRITEs in front of a response
  bool StoreResponse(const SendRequest& request, uint32_t offset, std::span<const std::byte> bytes);
  // Of the last packet of a READ, for a device with a DataFilter.
  bool StoreSpoiled(const SendRequest& request, uint32_t offset, std::span<const std::byte> bytes);
  void CompleteHead(ibv_wc_status status, uint8_t vendor_error = 0);
  // The completion of a request, if it has one.
  void Report(const SendRequest& request, ibv_wc_status status, uint8_t vendor_error);
  void Fail(ibv_wc_status status, uint8_t vendor_error = 0);  // the head, and with it the QP
  void Vanish();  // the head: no completion (Defect::kNoFlush)
  void Progress();
  bool TakeRetry();
  void ResponseMissing();
  void GoBack();
  void ResyncNext();
  void OnTimeout();

  QpContext& context_;
  SendQueue queue_;
  const bool signal_all_;
  SentBytes sent_bytes_;

  uint32_t post_psn_ = 0;     // for the next request posted
  uint32_t una_ = 0;          // oldest PSN not acknowledged
  uint32_t next_ = 0;         // PSN of the next packet
  uint32_t sent_ = 0;         // one past the highest PSN ever sent
  uint32_t next_packet_ = 0;  // packets of queue_.next already sent
  uint32_t read_extra_ = 0;   // PSNs in flight that are not request packets (READ responses)
  uint32_t rd_outstanding_ = 0;
  uint32_t since_ack_request_ = 0;

  uint8_t retry_left_ = 0;
  uint8_t rnr_left_ = 0;
  bool response_gap_ = false;  // already gone back for a missing response
  bool rnr_waiting_ = false;
  bool rnr_start_ = false;  // the RNR time runs from the next Tick
  bool ack_timer_stale_ = false;
  uint64_t rnr_wait_ns_ = 0;
  uint64_t rnr_deadline_ = 0;
  uint64_t ack_deadline_ = 0;  // 0: not running
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_REQUESTER_H_
