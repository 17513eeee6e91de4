// What is expected of an observation: the standard's answer, or one that is listed for the device
// (deviations.h).
//
// Constant data; any thread.
#ifndef VERBSCOPE_CORE_SCENARIO_EXPECTATIONS_H_
#define VERBSCOPE_CORE_SCENARIO_EXPECTATIONS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/record/record.h"
#include "core/scenario/deviations.h"

namespace verbscope {

// The rules that checks ask by; each has its text in the scenario that asks.
inline constexpr std::string_view kTooLong = "too-long";           // a SEND longer than its receive
inline constexpr std::string_view kEmptyBadKey = "empty-bad-key";  // nothing, with a bad rkey
inline constexpr std::string_view kLateReceive = "late-receive";   // posted to a QP in error
inline constexpr std::string_view kSendOverrun = "send-overrun";   // of a CQ, by sends
inline constexpr std::string_view kReceiveOverrun = "receive-overrun";  // likewise by receives
inline constexpr std::string_view kRules[] = {kTooLong, kEmptyBadKey, kLateReceive, kSendOverrun,
                                              kReceiveOverrun};

// "pass" when row.observed is row.expected, "deviation" with the reason when it is listed for the
// device, "fail" otherwise. Fills status and, of a deviation, why.
void Judge(std::string_view device_kind, std::string_view rule, CheckRow& row);

// How the waits of a device kind's senders are known to differ from the timer of an RNR NAK. The
// timer is a minimum: a longer wait is a deviation and never a failure, a shorter one is a failure
// but of a device that is listed for it.
struct WaitLimits {
  std::string_view device_kind;  // empty: of all others, and what passes without a word
  double ratio;                  // to the timer, and
  int64_t extra_ns;              // so much more
  int64_t short_ns;              // one wait may be shorter by this
  std::string_view why;
};
std::span<const WaitLimits> WaitLimitRows();
const WaitLimits& WaitLimitsOf(std::string_view device_kind);
// The longest wait that is known for a timer of nominal_ns.
int64_t LongestNs(const WaitLimits& limits, int64_t nominal_ns);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_EXPECTATIONS_H_
