// Times behind the RC timer codes of the InfiniBand specification: how long a requester waits
// before it gives up. Constants and arithmetic only; any thread.
#ifndef VERBSCOPE_CORE_CAUSES_RC_TIMERS_H_
#define VERBSCOPE_CORE_CAUSES_RC_TIMERS_H_

#include <array>
#include <cstdint>
#include <optional>

namespace verbscope {

// RNR NAK timer field to microseconds (InfiniBand specification, encoding of the RNR NAK timer
// field). Code 0 is the longest, not the shortest.
inline constexpr std::array<uint32_t, 32> kRnrTimerUs = {
    655'360, 10,     20,     30,      40,      60,      80,      120,     //
    160,     240,    320,    480,     640,     960,     1'280,   1'920,   //
    2'560,   3'840,  5'120,  7'680,   10'240,  15'360,  20'480,  30'720,  //
    40'960,  61'440, 81'920, 122'880, 163'840, 245'760, 327'680, 491'520,
};

// Shortest wait in ns after an RNR NAK with this code, 0 to 31; only the low five bits are used, as
// in the packet.
constexpr int64_t RnrTimerNs(uint32_t code) { return int64_t{kRnrTimerUs[code & 31U]} * 1000; }

// rnr_retry 7 means without limit (RNR retry count of the modify QP verb).
inline constexpr uint32_t kRnrRetryForever = 7;

// Shortest time in ns from the first RNR NAK to RNR_RETRY_EXC_ERR: each retry waits one timer.
// Nothing for rnr_retry 7, which never ends.
constexpr std::optional<int64_t> RnrGiveUpNs(uint32_t timer_code, uint32_t rnr_retry) {
  if (rnr_retry >= kRnrRetryForever) return std::nullopt;
  return RnrTimerNs(timer_code) * rnr_retry;
}

// Local ACK timeout in ns: 4.096 us * 2^code, code 1 to 31. Nothing for code 0: it waits forever.
constexpr std::optional<int64_t> AckTimeoutNs(uint32_t code) {
  if ((code & 31U) == 0) return std::nullopt;
  return int64_t{4096} << (code & 31U);
}

// A device may take up to this many timeouts for one (9.7.6.1.3: a timer of T ends between T and 4
// T).
inline constexpr int64_t kAckTimeoutSlack = 4;

// Time in ns until RETRY_EXC_ERR when nothing comes back: the first transmission and `retry_count`
// (0 to 7) more, each with one timeout. Times kAckTimeoutSlack it is the upper bound.
constexpr std::optional<int64_t> AckGiveUpNs(uint32_t timeout_code, uint32_t retry_count) {
  const std::optional<int64_t> once = AckTimeoutNs(timeout_code);
  if (!once) return std::nullopt;
  return *once * (int64_t{retry_count} + 1);
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CAUSES_RC_TIMERS_H_
