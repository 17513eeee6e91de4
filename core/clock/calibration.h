// Calibration of a counter against a reference clock, as pure functions of readings: nothing here
// asks the hardware, so that tests decide what the clocks say (wrong scale, a frequency step, a
// step back). core/clock/clock.h feeds them the real ones. Any thread.
#ifndef VERBSCOPE_CORE_CLOCK_CALIBRATION_H_
#define VERBSCOPE_CORE_CLOCK_CALIBRATION_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace verbscope {

// Two calibrations that differ by more are two rates: a notice, or no use of the counter.
inline constexpr double kAgreePpm = 200;
// Results with a rate that is off by more (0.1 %, the histogram's precision) are refused.
inline constexpr double kRefusePpm = 1000;

// The same moment on both clocks.
struct Reading {
  uint64_t counter = 0;  // ticks, middle of the bracket
  uint64_t raw_ns = 0;   // reference clock
  // Ticks between the counter reads around the read of the reference: the pair is off by at most
  // half of this.
  uint64_t width = std::numeric_limits<uint64_t>::max();
  bool went_back = false;  // the counter decreased in some bracket
};

// Reads the reference between two reads of the counter and keeps the tightest of `tries` brackets,
// ≥ 1, the one that neither an interrupt nor a cache miss widened.
template <class ReadCounter, class ReadRaw>
Reading TightestReading(ReadCounter&& read_counter, ReadRaw&& read_raw, int tries) {
  Reading best;
  for (int i = 0; i < tries; ++i) {
    const uint64_t before = read_counter();
    const uint64_t raw_ns = read_raw();
    const uint64_t after = read_counter();
    if (after < before) {
      best.went_back = true;
      continue;
    }
    const uint64_t width = after - before;
    if (width >= best.width) continue;
    best.counter = before + width / 2;
    best.raw_ns = raw_ns;
    best.width = width;
  }
  return best;
}

struct Rate {
  double hz = 0;               // ticks per second of the reference
  double uncertainty_ppm = 0;  // from the widths of both readings
};

// The counter's rate from `a` to the later `b`; nullopt if either clock did not advance, or if the
// counter went back within a reading.
std::optional<Rate> RateBetween(const Reading& a, const Reading& b);

enum class ClockSource { kTsc, kCntvct, kClockGettime };
// "tsc", "cntvct", "clock_gettime", as in the document.
std::string_view Name(ClockSource source);

// What is known at the start of a run.
struct StartReadings {
  // The CPU's counter; kClockGettime if this architecture has none that we read.
  ClockSource counter = ClockSource::kClockGettime;
  bool invariant = false;  // the CPU promises one rate in all frequency and idle states
  Reading begin;
  Reading middle;
  Reading end;
};

struct ClockChoice {
  ClockSource source = ClockSource::kClockGettime;
  bool invariant = true;
  double hz = 1e9;
  std::string notice;  // why the counter is not used, or is used without a promise; may be empty
};

// The counter if the CPU promises one rate and both halves do not contradict it by more than
// kRefusePpm, or if both halves agree within kAgreePpm although nothing is promised; else
// clock_gettime.
ClockChoice ChooseClock(const StartReadings& readings);

struct Drift {
  std::optional<double> ppm;  // whole-run rate against `start_hz`; absent if the counter went back
  std::string notice;         // above kAgreePpm, by how much results are off; may be empty
};

// The second calibration, over the whole run.
Drift MeasureDrift(double start_hz, const Reading& begin, const Reading& end);

// Smallest non-zero difference of consecutive reads, in ticks; 0 if the clock does not advance
// within 100,000 reads.
template <class Read>
uint64_t SmallestStep(Read&& read) {
  constexpr int kReads = 512;
  constexpr int kMaxReads = 100'000;
  uint64_t smallest = 0;
  uint64_t previous = read();
  for (int i = 0; i < kReads || (smallest == 0 && i < kMaxReads); ++i) {
    const uint64_t now = read();
    if (now > previous && (smallest == 0 || now - previous < smallest)) smallest = now - previous;
    previous = now;
  }
  return smallest;
}

// Cost of one read in ticks: the median over batches, each long enough for a coarse clock.
template <class Read>
double MedianCost(Read&& read) {
  constexpr size_t kBatches = 15;
  constexpr size_t kReads = 64;
  std::array<uint64_t, kBatches> costs{};
  for (uint64_t& cost : costs) {
    const uint64_t begin = read();
    for (size_t i = 1; i < kReads; ++i) read();
    const uint64_t end = read();
    cost = end > begin ? end - begin : 0;
  }
  std::nth_element(costs.begin(), costs.begin() + kBatches / 2, costs.end());
  return static_cast<double>(costs[kBatches / 2]) / kReads;
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CLOCK_CALIBRATION_H_
