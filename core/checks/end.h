// One end of a check's connection: a queue pair with its memory and queues, on this side or on the
// other. Both kinds have the same vocabulary, so that a check is one straight function that works
// with two ends, wherever they are: LocalEnd acts on verbs objects, RemoteEnd asks the peer's
// Agent, which has a LocalEnd.
//
// Failures of the run (peer lost, deadline, a call that must not fail) are latched in the Trial:
// from then on every call does nothing and answers with an empty value, and the check returns the
// failure at its end. What a device may answer wrongly is an ordinary value.
//
// Made by a Trial or an Agent and owned by it; the session's thread.
#ifndef VERBSCOPE_CORE_CHECKS_END_H_
#define VERBSCOPE_CORE_CHECKS_END_H_

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/scenario/fresh_qp.h"
#include "transports/device.h"

namespace verbscope {

// A part of an end's buffer.
struct Piece {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// What may be wrong with a key on purpose.
enum class Key : uint8_t {
  kRight,
  kWrong,    // of no memory region
  kForeign,  // of a region in another protection domain
};

struct ReceiveSpec {
  uint64_t wr_id = 0;
  std::vector<Piece> pieces = {};
  Key lkey = Key::kRight;
};

struct SendSpec {
  uint64_t wr_id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = IBV_SEND_SIGNALED;  // of ibv_send_flags
  std::vector<Piece> pieces = {};      // what is sent, or where a READ or Atomic's result goes
  Key lkey = Key::kRight;
  int64_t remote_offset = 0;  // in the other end's buffer; may point outside of it
  Key rkey = Key::kRight;
  uint32_t imm = 0;  // in host order
  uint64_t compare_add = 0;
  uint64_t swap = 0;
};

class End {
 public:
  virtual ~End() = default;

  // 0 or an errno.
  virtual int PostReceive(const ReceiveSpec& spec) = 0;
  virtual int PostSend(const SendSpec& spec) = 0;
  // The next completion of either queue, or none within `limit`.
  virtual std::optional<ibv_wc> AwaitSend(std::chrono::nanoseconds limit) = 0;
  virtual std::optional<ibv_wc> AwaitReceive(std::chrono::nanoseconds limit) = 0;
  // The state once it is `wanted`, or as it is after `limit`.
  virtual ibv_qp_state AwaitState(ibv_qp_state wanted, std::chrono::nanoseconds limit) = 0;
  virtual void ToError() = 0;

  // Bytes of the buffer: a pattern that `seed` determines, and the first place that does not have
  // it; one word of 64 bits, in host order.
  virtual void Fill(Piece piece, uint8_t seed) = 0;
  virtual std::optional<uint64_t> FirstOther(Piece piece, uint8_t seed) = 0;
  virtual void SetWord(uint64_t offset, uint64_t value) = 0;
  virtual uint64_t Word(uint64_t offset) = 0;

  // The first asynchronous event whose text begins with `prefix` since the scenario began, or none
  // within `limit`. Each is found once.
  virtual std::optional<std::string> AwaitAsyncEvent(const std::string& prefix,
                                                     std::chrono::nanoseconds limit) = 0;
  // The next `count` packets of this kind that this end's device sends get lost; false: it cannot
  // lose packets on demand.
  virtual bool LoseNext(LossyPacket kind, uint32_t count) = 0;
  // One event when fewer than `limit` receives are left in the shared receive queue; an errno.
  virtual int SetSrqLimit(uint32_t limit) = 0;
};

// The pattern of Fill.
constexpr std::byte PatternByte(uint64_t index, uint8_t seed) {
  return static_cast<std::byte>(seed * 37 + index * 7 + (index >> 8));
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CHECKS_END_H_
