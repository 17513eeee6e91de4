#include "core/scenario/expectations.h"

#include <algorithm>
#include <array>

namespace verbscope {
namespace {

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

std::span<const DeviceDeviations> AllDeviations() {
  static const std::array kAll = {DeviceDeviations{"rxe", RxeDeviations()},
                                  DeviceDeviations{"mlx4", Mlx4Deviations()}};
  return kAll;
}

void Judge(std::string_view device_kind, std::string_view rule, CheckRow& row) {
  row.status = row.observed == row.expected ? "pass" : "fail";
  if (row.status == "pass") return;
  for (const DeviceDeviations& device : AllDeviations()) {
    if (device.device_kind != device_kind) continue;
    for (const Deviation& deviation : device.rows) {
      if (deviation.rule != rule || deviation.observed != row.observed) continue;
      row.status = "deviation";
      row.why = deviation.why;
      return;
    }
  }
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
