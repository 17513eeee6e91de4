// The responder half of an RC QP: checks request packets in a fixed order (PSN, opcode sequence,
// length, resources, rights), executes them, and owes ACKs, NAKs and READ responses (IBTA 9.7.4,
// 9.7.5, 9.9.3).
//
// Receive only executes and notes what is owed; Pump sends it. So one ACK covers a whole batch of
// packets, and a full link holds up answers without losing any. What is owed leaves in PSN order:
// READ responses and atomic results first, then one NAK or ACK.
//
// Between devices of this kind (QpContext::acks_unasked) messages whose ACK nobody waits for do not
// ask for one. They are acknowledged all the same, many at a time or after a while: a packet each
// way less for a program that answers messages with messages, where an ACK over UDP costs a system
// call at either end. The specification lets a responder do so (IBTA 9.7.5.1.2).
//
// Files: responder.cc checks, responder_execute.cc executes, responder_output.cc answers.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_RESPONDER_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_RESPONDER_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transports/soft/engine/qp_context.h"
#include "transports/soft/engine/receive_queue.h"
#include "transports/soft/wire/psn.h"

namespace verbscope::soft {

class Responder {
 public:
  // `queue`: the QP's own or an SRQ. Must outlive the Responder.
  Responder(QpContext& context, ReceiveQueue& queue, bool shared)
      : context_(context), queue_(queue), shared_(shared) {}

  // A request packet from the connected peer.
  void Receive(const Header& header, std::span<const std::byte> payload);
  // Sends what is owed. True: the link is full and there is more.
  bool Pump();
  bool Owes() const { return responses_ > 0 || nak_pending_ || ack_pending_; }
  // Time, for ACKs that nobody asked for. Tick: true if Pump has one to send. NextTimer: 0 is at
  // the next opportunity.
  bool Tick(uint64_t now_ns);
  std::optional<uint64_t> NextTimer() const;

  void Start(uint32_t psn);  // to RTR
  // The QP is in ERR: the receive under way and all posted ones end with WR_FLUSH_ERR (an SRQ keeps
  // its own). `silent`: nothing that is owed is sent any more.
  void Flush(bool silent);
  void Reset();
  uint32_t expected_psn() const { return expected_psn_; }

 private:
  // READ responses and atomic results that are owed, in PSN order and without overlaps. Enough for
  // every READ a peer may have open.
  static constexpr uint32_t kMaxResponses = 32;
  // Messages that did not ask for an ACK, until there is one, and how long the first of them waits.
  static constexpr uint32_t kUnaskedMessages = 16;
  static constexpr uint64_t kUnaskedNs = 100'000;
  // Atomics whose results are kept for replay.
  static constexpr uint32_t kAtomicsKept = 32;

  enum class Open : uint8_t { kNone, kSend, kWrite };
  enum class Stored : uint8_t { kYes, kTooLong, kBadKey };

  struct Response {
    bool atomic = false;
    uint32_t psn = 0;  // of its first packet
    uint32_t rkey = 0;
    uint64_t address = 0;
    uint32_t length = 0;
    uint32_t sent = 0;      // bytes
    uint64_t original = 0;  // atomic
  };
  static uint32_t PsnsOf(uint32_t length, uint32_t mtu) {
    return length <= mtu ? 1 : length / mtu + (length % mtu != 0 ? 1 : 0);
  }
  struct KeptAtomic {
    bool valid = false;
    uint32_t psn = 0;
    uint64_t original = 0;
  };

  // Checks.
  bool InSequence(const OpcodeInfo& info) const;
  bool LengthHolds(const Header& header, const OpcodeInfo& info, size_t payload) const;
  void OutOfSequence(uint32_t psn);
  void Duplicate(const Header& header);
  void DuplicateRead(const Header& header);
  void DuplicateAtomic(const Header& header);

  // Execution.
  void ExecuteSend(const Header& header, const OpcodeInfo& info,
                   std::span<const std::byte> payload);
  void ExecuteWrite(const Header& header, const OpcodeInfo& info,
                    std::span<const std::byte> payload);
  void ExecuteRead(const Header& header);
  void ExecuteAtomic(const Header& header);
  // Bytes that a WRITE may store at `address`.
  uint32_t Kept(uint32_t rkey, uint64_t address, uint32_t bytes) const {
    if (!context_.env.Has(Defect::kNoBounds)) [[likely]]
      return bytes;
    return context_.env.memory.Inside(rkey, address, bytes);
  }
  // The value before the operation.
  uint64_t Operate(const Header& header, std::byte* at);
  // Whether the receive under way can take a message without data.
  bool TakesEmpty() const;
  void StoreWrite(std::byte* to, uint32_t rkey, uint64_t address,
                  std::span<const std::byte> payload, bool ends);
  void CompleteWrite(const Header& header, bool immediate);
  bool TakeReceive();
  Stored Scatter(std::span<const std::byte> payload);
  // Of the last packet, for a device with a DataFilter.
  Stored ScatterSpoiled(std::span<const std::byte> payload);
  void CompleteReceive(ibv_wc& wc, bool solicited);
  void FailReceive(ibv_wc_status status);
  void Vanish();  // what Flush would complete: no completions (Defect::kNoFlush)
  // `answered`: by a response, which is its acknowledgement.
  void Accept(const Header& header, bool ends, uint32_t psns, bool answered = false);

  // Answers.
  void QueueAck(uint32_t psn);
  void CountUnasked(uint32_t psn);
  // Everything up to `psn` has been acknowledged, by whatever left.
  void SettleUnasked(uint32_t psn) {
    if (unasked_ != 0 && PsnDiff(unasked_psn_, psn) <= 0) unasked_ = 0;
  }
  void QueueNak(uint8_t syndrome);
  // A packet was accepted while a NAK about its PSN had not been sent yet.
  void NakOvertaken();
  void QueueResponse(const Response& response);
  // A repeated READ or atomic. True: its answer is owed already and will be sent, from `psn` at the
  // latest. False: the answer has left; what is owed behind it is dropped, since a requester that
  // goes back asks for everything again.
  bool StillOwed(uint32_t psn);
  bool SendResponse(Response& response);
  bool SendAck(uint8_t syndrome, uint32_t psn);
  // The request cannot be executed: NAK, event, and the QP goes to ERR.
  void Refuse(uint8_t syndrome, ibv_event_type event);
  void RefuseSilently(uint8_t syndrome);
  void NotReady();

  QpContext& context_;
  ReceiveQueue& queue_;
  const bool shared_;

  uint32_t expected_psn_ = 0;  // 24 bits
  uint32_t msn_ = 0;           // 24 bits
  bool nak_sent_ = false;      // silent until the expected PSN comes
  Open open_ = Open::kNone;

  bool has_receive_ = false;
  ReceiveRequest receive_;
  uint64_t received_ = 0;  // bytes of the SEND so far

  uint64_t write_address_ = 0;
  uint32_t write_rkey_ = 0;
  uint32_t write_left_ = 0;
  uint32_t write_total_ = 0;

  std::array<Response, kMaxResponses> response_;
  uint32_t response_head_ = 0;
  uint32_t responses_ = 0;
  bool ack_pending_ = false;
  bool nak_pending_ = false;
  uint32_t ack_psn_ = 0;
  uint8_t nak_syndrome_ = 0;
  uint32_t nak_psn_ = 0;
  uint32_t dropped_psn_ = 0;       // newest PSN dropped since nak_sent_
  uint32_t unasked_ = 0;           // messages to acknowledge that did not ask for it
  uint32_t unasked_psn_ = 0;       // of the last of them
  uint64_t unasked_deadline_ = 0;  // 0: the next Tick sets it

  std::array<KeptAtomic, kAtomicsKept> atomics_;
  uint32_t next_atomic_ = 0;
  bool had_response_ = false;       // some READ or atomic was executed since Start
  uint32_t last_response_psn_ = 0;  // last PSN of the newest one
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_RESPONDER_H_
