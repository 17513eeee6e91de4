#include "core/modes/advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "core/modes/mode_summary.h"

namespace verbscope {
namespace {

using Rows = std::vector<const ModeRow*>;

// "+6.1 us", "-240 ns", "+1.25 ms".
std::string SignedTime(double ns) {
  const double size = std::abs(ns);
  const char sign = ns < 0 ? '-' : '+';
  if (size < 1e3) return fmt::format("{}{:.0f} ns", sign, size);
  if (size < 1e6) return fmt::format("{}{:.1f} us", sign, size / 1e3);
  return fmt::format("{}{:.1f} ms", sign, size / 1e6);
}

std::string TimeText(int64_t ns) {
  std::string text = SignedTime(static_cast<double>(ns));
  return text.substr(1);
}

std::string Percent(double share) { return fmt::format("{:.0f} %", share); }

bool Sustains(const ModeRow& row) {
  return row.achieved_per_s && row.offered_per_s &&
         *row.achieved_per_s >= kSustained * *row.offered_per_s;
}

// Whether the runs agree on the sign of a difference; a single run cannot be doubted.
bool IsCertain(const Difference& difference) {
  if (!difference.low || !difference.high) return true;
  return *difference.low > 0 || *difference.high < 0;
}

bool Pays(const ModeRow& row) {
  const std::optional<Difference>& saved = row.cpu_saved_percent;
  return saved && saved->value >= kPaysPercent && IsCertain(*saved) && Sustains(row);
}

// "+6.1 us p50".
std::string More(const ModeRow& row) {
  if (!row.p50_more_ns) return "an unknown time";
  if (!IsCertain(*row.p50_more_ns)) return "no p50 that the runs agree on";
  return SignedTime(row.p50_more_ns->value) + " p50";
}

std::string Cost(const ModeRow& row) { return "costs " + More(row); }

std::string Rate(const ModeRow& row) { return RateText(row.offered_per_s.value_or(0)) + "/s"; }

// "saves 97 % CPU", or of several loads "saves 97 to 40 % CPU".
std::string Saving(const Rows& rows) {
  const auto saved = [](const ModeRow* row) { return row->cpu_saved_percent->value; };
  const std::string first = fmt::format("{:.0f}", saved(rows.front()));
  const std::string last = fmt::format("{:.0f}", saved(rows.back()));
  return first == last ? fmt::format("saves {} % CPU", first)
                       : fmt::format("saves {} to {} % CPU", first, last);
}

// What a mode does where it does not pay.
std::string WithoutGain(const ModeRow& row) {
  if (!Sustains(row)) {
    return fmt::format("does not keep up: {} of {}",
                       row.achieved_per_s ? RateText(*row.achieved_per_s) : "nothing", Rate(row));
  }
  if (!row.cpu_saved_percent) return "saves an unknown share of CPU";
  const double saved = row.cpu_saved_percent->value;
  if (saved >= kPaysPercent) {
    return fmt::format("may save {} CPU, on which the runs do not agree", Percent(saved));
  }
  return saved < kPaysPercent / 2 ? "saves nothing"
                                  : fmt::format("saves {} CPU only", Percent(saved));
}

// Of a mode that does not pay at the lowest rate.
std::string NoGain(const std::string& mode, const Rows& loads) {
  const ModeRow& first = *loads.front();
  const auto later = std::ranges::find_if(loads, [](const ModeRow* row) { return Pays(*row); });
  std::string text = fmt::format("{} {} {}: it {} and {}", later == loads.end() ? "from" : "at",
                                 Rate(first), mode, WithoutGain(first), Cost(first));
  if (later == loads.end()) return text + "; nor does it pay at any higher rate measured";
  return text +
         fmt::format("; yet at {} it {} and {}", Rate(**later), Cost(**later), Saving({*later}));
}

std::string Sentence(const std::string& mode, const Rows& loads) {
  size_t paying = 0;
  while (paying < loads.size() && Pays(*loads[paying])) ++paying;
  const Rows gains(loads.begin(), loads.begin() + static_cast<std::ptrdiff_t>(paying));
  if (gains.empty()) return NoGain(mode, loads);
  const ModeRow& last = *gains.back();
  std::string cost = Cost(*gains.front());
  if (gains.size() > 1) {
    cost += fmt::format(" at {} and {} at {}", Rate(*gains.front()), More(last), Rate(last));
  }
  const std::string text =
      fmt::format("up to {} {} {} and {}", Rate(last), mode, cost, Saving(gains));
  if (paying == loads.size()) return text + "; it still pays at the highest rate measured";
  const ModeRow& lost = *loads[paying];
  return text + fmt::format("; at {} it {}", Rate(lost), WithoutGain(lost));
}

Rows OpenRowsOf(const std::vector<ModeRow>& rows, const std::string& mode) {
  Rows open;
  for (const ModeRow& row : rows) {
    if (row.mode == mode && row.offered_per_s) open.push_back(&row);
  }
  std::ranges::stable_sort(open, std::less<>(),
                           [](const ModeRow* row) { return *row->offered_per_s; });
  return open;
}

Rows RowsOf(const std::vector<ModeRow>& rows, const std::string& load) {
  Rows of_load;
  for (const ModeRow& row : rows) {
    if (row.load == load) of_load.push_back(&row);
  }
  return of_load;
}

// The row with the least of a figure that rows may lack.
template <class Get>
const ModeRow* Least(const Rows& rows, Get get) {
  const ModeRow* least = nullptr;
  for (const ModeRow* row : rows) {
    if (get(*row) && (least == nullptr || *get(*row) < *get(*least))) least = row;
  }
  return least;
}

std::optional<int64_t> P50(const ModeRow& row) { return row.p50_ns; }
std::optional<int64_t> P99(const ModeRow& row) { return row.p99_ns; }
std::optional<double> Busy(const ModeRow& row) { return row.utilization; }

std::string CpuText(const ModeRow& row) {
  return fmt::format("{:.1f} % of one CPU", *row.utilization * 100);
}

// The cheapest of what keeps up with a load within a p99.
std::optional<std::string> WithinP99(const Rows& rows, int64_t p99_limit_ns) {
  Rows able;
  std::ranges::copy_if(rows, std::back_inserter(able),
                       [](const ModeRow* row) { return Sustains(*row) && row->p99_ns; });
  const ModeRow* best = Least(able, P99);
  if (rows.empty()) return std::nullopt;
  const std::string rate = Rate(*rows.front());
  if (best == nullptr) {
    return fmt::format("at {} nothing that was tried keeps up with enough samples for a p99", rate);
  }
  const int64_t limit_ns = p99_limit_ns > 0 ? p99_limit_ns : 2 * *best->p99_ns;
  std::erase_if(able, [limit_ns](const ModeRow* row) { return *row->p99_ns > limit_ns; });
  if (able.empty()) {
    return fmt::format("at {} nothing stays within a p99 of {}: the best, {}, has {}", rate,
                       TimeText(limit_ns), best->mode, TimeText(*best->p99_ns));
  }
  const ModeRow* cheapest = Least(able, Busy);
  if (cheapest == nullptr) return std::nullopt;
  return fmt::format("at {} within a p99 of {}: {} (p99 {}, {})", rate, TimeText(limit_ns),
                     cheapest->mode, TimeText(*cheapest->p99_ns), CpuText(*cheapest));
}

}  // namespace

std::vector<std::string> CrossoverSentences(const std::vector<ModeRow>& rows) {
  std::vector<std::string> sentences;
  std::vector<std::string> seen;
  for (const ModeRow& row : rows) {
    if (!row.cpu_saved_percent || std::ranges::find(seen, row.mode) != seen.end()) continue;
    seen.push_back(row.mode);
    const Rows open = OpenRowsOf(rows, row.mode);
    if (!open.empty()) sentences.push_back(Sentence(row.mode, open));
  }
  return sentences;
}

std::vector<std::string> Advice(const std::vector<ModeRow>& rows, int64_t p99_limit_ns) {
  std::vector<std::string> advice;
  std::vector<std::string> open_loads;
  for (const ModeRow& row : rows) {
    const bool listed = std::ranges::find(open_loads, row.load) != open_loads.end();
    if (row.offered_per_s && !listed) open_loads.push_back(row.load);
  }
  if (const ModeRow* fastest = Least(RowsOf(rows, "closed loop"), P50)) {
    advice.push_back(fmt::format("lowest latency: {} (p50 {} in a closed loop)", fastest->mode,
                                 TimeText(*fastest->p50_ns)));
  }
  if (!open_loads.empty()) {
    Rows slow = RowsOf(rows, open_loads.front());
    std::erase_if(slow, [](const ModeRow* row) { return !Sustains(*row); });
    if (const ModeRow* cheapest = Least(slow, Busy)) {
      advice.push_back(fmt::format("least CPU: {} ({} at {})", cheapest->mode, CpuText(*cheapest),
                                   Rate(*cheapest)));
    }
  }
  for (const std::string& load : open_loads) {
    if (auto text = WithinP99(RowsOf(rows, load), p99_limit_ns)) advice.push_back(*text);
  }
  return advice;
}

}  // namespace verbscope
