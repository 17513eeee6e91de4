// The timer codes of RC: what the numbers in a QP's attributes and in an RNR NAK mean in time
// (IBTA 9.7.6.1.3 and table 45). The tool's own predictions use tables of their own in core/causes.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_RC_TIMERS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_RC_TIMERS_H_

#include <array>
#include <cstdint>

namespace verbscope::soft {

// Local ACK timeout in ns: 4.096 us x 2^code, code 1 … 31; 0 means never.
inline constexpr uint64_t AckTimeoutNs(uint8_t code) {
  return code == 0 ? 0 : uint64_t{4096} << (code & 31);
}

// RNR NAK timer in ns, indexed by code 0 … 31.
inline constexpr std::array<uint64_t, 32> kRnrTimerNs = {
    655'360'000, 10'000,      20'000,      30'000,     40'000,     60'000,     80'000,
    120'000,     160'000,     240'000,     320'000,    480'000,    640'000,    960'000,
    1'280'000,   1'920'000,   2'560'000,   3'840'000,  5'120'000,  7'680'000,  10'240'000,
    15'360'000,  20'480'000,  30'720'000,  40'960'000, 61'440'000, 81'920'000, 122'880'000,
    163'840'000, 245'760'000, 327'680'000, 491'520'000};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_RC_TIMERS_H_
