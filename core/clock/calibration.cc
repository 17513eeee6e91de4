#include "core/clock/calibration.h"

#include <fmt/format.h>

#include <cmath>

#include "core/clock/tick_scale.h"

namespace verbscope {
namespace {

constexpr double kMillion = 1e6;

ClockChoice Fallback(std::string_view why) {
  ClockChoice choice;
  choice.notice = fmt::format(
      "clock: {}; times come from clock_gettime(CLOCK_MONOTONIC_RAW), which costs more per read",
      why);
  return choice;
}

}  // namespace

std::string_view Name(ClockSource source) {
  switch (source) {
    case ClockSource::kTsc:
      return "tsc";
    case ClockSource::kCntvct:
      return "cntvct";
    case ClockSource::kClockGettime:
      return "clock_gettime";
  }
  return "clock_gettime";
}

std::optional<Rate> RateBetween(const Reading& a, const Reading& b) {
  if (a.went_back || b.went_back || b.counter <= a.counter || b.raw_ns <= a.raw_ns) {
    return std::nullopt;
  }
  const auto ticks = static_cast<double>(b.counter - a.counter);
  const auto span_ns = static_cast<double>(b.raw_ns - a.raw_ns);
  const double doubt = (static_cast<double>(a.width) + static_cast<double>(b.width)) / 2;
  return Rate{ticks / span_ns * 1e9, doubt / ticks * kMillion};
}

ClockChoice ChooseClock(const StartReadings& readings) {
  if (readings.counter == ClockSource::kClockGettime) {
    return Fallback("this CPU has no counter that programs may read");
  }
  const std::string_view name = Name(readings.counter);
  const std::optional<Rate> first = RateBetween(readings.begin, readings.middle);
  const std::optional<Rate> second = RateBetween(readings.middle, readings.end);
  const std::optional<Rate> whole = RateBetween(readings.begin, readings.end);
  if (!first || !second || !whole) {
    return Fallback(fmt::format("the CPU counter {} went back or stood still", name));
  }
  if (whole->hz < TickScale::kMinHz || whole->hz > TickScale::kMaxHz) {
    return Fallback(
        fmt::format("the CPU counter {} runs at an impossible {:.4g} Hz", name, whole->hz));
  }
  const double differ_ppm = std::abs(second->hz / first->hz - 1) * kMillion;
  const double doubt_ppm = first->uncertainty_ppm + second->uncertainty_ppm;
  const auto disagreement = [&] {
    return fmt::format("two calibrations of the CPU counter {} differ by {:.0f} ppm (± {:.0f})",
                       name, differ_ppm, doubt_ppm);
  };
  if (readings.invariant) {
    // A promise is overruled only by a difference that the readings cannot explain.
    if (differ_ppm > kRefusePpm + doubt_ppm) {
      return Fallback("although the CPU promises a constant rate, " + disagreement());
    }
    return {readings.counter, /*invariant=*/true, whole->hz, ""};
  }
  if (differ_ppm + doubt_ppm > kAgreePpm) {
    return Fallback("the CPU promises no constant rate and " + disagreement());
  }
  return {readings.counter, /*invariant=*/false, whole->hz,
          fmt::format("clock: the CPU does not promise a constant rate of its counter {} (common "
                      "in virtual machines); it is used since two calibrations agree within {:.0f} "
                      "ppm, and checked again at the end of the run",
                      name, kAgreePpm)};
}

Drift MeasureDrift(double start_hz, const Reading& begin, const Reading& end) {
  const std::optional<Rate> rate = RateBetween(begin, end);
  if (!rate) {
    return {std::nullopt,
            "clock: the CPU counter went back or stood still during the run; its times cannot be "
            "trusted"};
  }
  Drift drift;
  const double ppm = (rate->hz / start_hz - 1) * kMillion;
  drift.ppm = ppm;
  if (std::abs(ppm) > kAgreePpm) {
    // Times were computed with the rate of the start: a counter that then ran faster made them
    // longer.
    drift.notice = fmt::format(
        "clock: over the whole run the CPU counter ran {:.0f} ppm {} than at its start; reported "
        "times are too {} by {:.3g} % on average",
        std::abs(ppm), ppm > 0 ? "faster" : "slower", ppm > 0 ? "long" : "short",
        std::abs(ppm) / 1e4);
  }
  return drift;
}

}  // namespace verbscope
