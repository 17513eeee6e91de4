#include "core/scenario/expectations.h"

#include <algorithm>
#include <array>

namespace verbscope {
namespace {

constexpr std::array kDeviations = {
    Deviation{.device_kind = "rxe",
              .rule = kTooLong,
              .observed = "requester REM_OP_ERR, responder LOC_QP_OP_ERR",
              .why = "rxe finds the length only while it copies, and calls every failure of that a "
                     "failed operation (drivers/infiniband/sw/rxe/rxe_resp.c)"},
    Deviation{.device_kind = "rxe",
              .rule = kLateReceive,
              .observed = "no completion",
              .why =
                  "a receive is posted to rxe without a call into the kernel, where nobody looks "
                  "at the queue of a queue pair in error again (providers/rxe/rxe.c); it rescues "
                  "nothing, and a reset drops it"},
    Deviation{.device_kind = "rxe",
              .rule = kSendOverrun,
              .observed = "CQ_ERR, the oldest completions delivered in order, the rest lost, QP in "
                          "RTS, the CQ goes on",
              .why = "rxe raises CQ_ERR for every completion that finds its CQ full and forgets "
                     "it; only a receive's loss fails the queue pair, a send's is ignored "
                     "(drivers/infiniband/sw/rxe/rxe_cq.c, rxe_comp.c)"},
    Deviation{.device_kind = "mlx4",
              .rule = kEmptyBadKey,
              .observed = "requester LOC_QP_OP_ERR, responder no completion",
              .why = "mlx4 refuses a READ of nothing (google/rdma-unit-test lists it)"},
};

constexpr std::array kWaitLimits = {
    // Room for a host that is interrupted now and then.
    WaitLimits{.device_kind = "", .ratio = 1.5, .extra_ns = 2'000'000, .short_ns = 0, .why = ""},
    WaitLimits{.device_kind = "rxe",
               .ratio = 1.25,
               .extra_ns = 30'000'000,
               .short_ns = 4'000'000,
               .why =
                   "rxe waits in ticks of the kernel (jiffies, 4 ms at HZ=250), rounded up, which "
                   "are late together on a busy host, so that a wait may also be short by one "
                   "(drivers/infiniband/sw/rxe/rxe_comp.c)"},
};

}  // namespace

std::span<const Deviation> Deviations() { return kDeviations; }

void Judge(std::string_view device_kind, std::string_view rule, CheckRow& row) {
  row.status = row.observed == row.expected ? "pass" : "fail";
  if (row.status == "pass") return;
  const auto listed = std::ranges::find_if(kDeviations, [&](const Deviation& deviation) {
    return deviation.device_kind == device_kind && deviation.rule == rule &&
           deviation.observed == row.observed;
  });
  if (listed == kDeviations.end()) return;
  row.status = "deviation";
  row.why = listed->why;
}

std::span<const WaitLimits> WaitLimitRows() { return kWaitLimits; }

const WaitLimits& WaitLimitsOf(std::string_view device_kind) {
  const auto found = std::ranges::find(kWaitLimits, device_kind, &WaitLimits::device_kind);
  return found == kWaitLimits.end() ? kWaitLimits.front() : *found;
}

int64_t LongestNs(const WaitLimits& limits, int64_t nominal_ns) {
  return static_cast<int64_t>(limits.ratio * static_cast<double>(nominal_ns)) + limits.extra_ns;
}

}  // namespace verbscope
