// What `check` may be asked for, as far as a plan must know it before the run: the names. What each
// of them does is core/checks.
//
// Constant data and pure functions of the plan; any thread.
#ifndef VERBSCOPE_CORE_PLAN_CHECK_PLAN_H_
#define VERBSCOPE_CORE_PLAN_CHECK_PLAN_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/error.h"
#include "core/plan/plan.h"

namespace verbscope {

inline constexpr std::string_view kCheck = "check";

// In the order in which they run.
inline constexpr std::array<std::string_view, 33> kCheckNames = {
    "qp-states",
    "teardown",
    "limits",
    "post-vs-complete",
    "inline",
    "bad-wr",
    "selective-signal",
    "recv",
    "data-placement",
    "scatter-gather",
    "mtu",
    "write-imm",
    "imm",
    "zero-length",
    "ordering",
    "wc-fields",
    "access",
    "bounds",
    "pd",
    "atomics",
    "shared-cq",
    "cq-threads",
    "srq",
    "comp-channel",
    "event-race",
    "solicited",
    "errors",
    "flush",
    "async",
    "rnr",
    "ownership",
    "fence",
    "overrun",
};
inline bool IsCheckName(std::string_view name) {
  return std::ranges::find(kCheckNames, name) != kCheckNames.end();
}

// Of the whole command, in ns: a device that breaks promises is waited for in many places.
int64_t CheckPlannedNs(const Plan& plan);

// kUsage: names that are not known, or for a command without checks.
Status CheckNamesOf(const Plan& plan);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_PLAN_CHECK_PLAN_H_
