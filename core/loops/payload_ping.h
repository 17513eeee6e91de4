// WRITE ping-pong: the fast path of write-lat. A plain WRITE completes nothing at its target, so
// each side polls the last byte of its own buffer and answers when the number there changes. That
// the last byte lands last is not promised by the InfiniBand specification, only by the devices
// that this way of measuring has always been used on; `write-lat --imm` needs no such promise.
//
// What a sample is: as in ping_pong.h, half a round trip, from payload seen to payload seen. No
// completion lies in it; sends are signalled once in `signal_every` and reaped while the answer is
// on its way. Every kPollsPerLook polls of the payload the send CQ and the stop flag are looked at,
// so that a broken connection ends the loop, and a software device that works in its program's
// polls gets to work.
//
// One byte per message is changed in the buffer that is sent from. It is free by then: the answer
// to the last message proves that it has arrived.
//
// Busy polling only. The loop allocates, formats and logs nothing. Threads as in ping_pong.h.
#ifndef VERBSCOPE_CORE_LOOPS_PAYLOAD_PING_H_
#define VERBSCOPE_CORE_LOOPS_PAYLOAD_PING_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/clock/clock.h"
#include "core/loops/interval_recorder.h"
#include "core/loops/loop.h"
#include "core/plan/plan.h"
#include "core/wait/stop.h"

namespace verbscope {

inline constexpr uint32_t kPollsPerLook = 32;

// What outlives a phase.
struct PayloadPingState {
  uint8_t heard = 0;         // the number in the payload of the last message heard
  uint8_t said = 0;          // and in that of the last one sent
  uint32_t unsignalled = 0;  // sends since the last signalled one
  bool signal_pending = false;
};

struct PayloadPingSetup {
  ibv_qp* qp = nullptr;
  ibv_cq* send_cq = nullptr;
  ibv_send_wr* send = nullptr;  // unsignalled
  ibv_send_wr* signalled_send = nullptr;
  uint8_t* outgoing = nullptr;        // last byte of what is sent
  const uint8_t* incoming = nullptr;  // last byte of what the peer writes
  uint32_t signal_every = 1;          // 1 … send queue depth / 2
  bool shares_cpu = false;            // pollers yield: too few CPUs for both sides
  PayloadPingState* state = nullptr;
  StopSignal* stop = nullptr;
  IntervalRecorder* recorder = nullptr;
};

// `wait`: busy or busy:pause. `received` counts payloads seen.
LoopOutcome RunPayloadPing(LoopRole role, const PayloadPingSetup& setup, LoopLength length,
                           WaitMode wait, const Clock& clock);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_PAYLOAD_PING_H_
