#include "core/compare/verdict.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "core/statistics/holm.h"

namespace verbscope {
namespace {

std::vector<double> Logarithms(const std::vector<double>& values) {
  std::vector<double> logarithms;
  for (const double value : values) logarithms.push_back(std::log(value));
  return logarithms;
}

bool AllAboveZero(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return value > 0; });
}

std::optional<double> Finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// The z of which this share of a normal distribution lies above, 0 < level < 0.5.
double UpperQuantile(double level) {
  double low = 0;
  double high = 40;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(middle / std::sqrt(2.0)) > level ? low : high) = middle;
  }
  return low;
}

// The part of the interval that is in the way of a verdict, over the room there is for it: from the
// estimate to the edge of the margin. Infinite without room.
double Obstacle(const Evidence& evidence, double edge, double change_z) {
  const double below = evidence.shift - *evidence.low;
  const double above = *evidence.high - evidence.shift;
  if (std::abs(evidence.shift) < edge) {
    return std::max(below / (evidence.shift + edge), above / (edge - evidence.shift));
  }
  // Each end is 1.96 deviations away; the test of a change is at another level.
  const double scale = change_z / UpperQuantile(0.025);
  const double part = evidence.shift > 0 ? below : above;
  return scale * part / (std::abs(evidence.shift) - edge);
}

// How many runs of each set would bring the interval out of the way, if it narrows with the square
// root of their number and the estimate stays.
std::optional<uint64_t> RunsNeeded(const Evidence& evidence, const ComparisonRow& row,
                                   size_t family) {
  constexpr double kMost = 10'000;  // beyond that a number is no help
  const double level = kChangeLevel / static_cast<double>(family);
  const uint64_t least = std::max<uint64_t>(kMinRuns, row.gated ? MinFiguresFor(level) : 0);
  const double smaller = std::min(row.base_runs, row.new_runs);
  if (!evidence.tested) return smaller < kMinRuns ? std::optional(least) : std::nullopt;
  if (!evidence.low || !evidence.high) return std::nullopt;
  const double obstacle = Obstacle(evidence, std::log1p(row.margin), UpperQuantile(level));
  const double needed = std::ceil(smaller * obstacle * obstacle);
  if (!std::isfinite(needed) || needed > kMost) return std::nullopt;
  return std::max(static_cast<uint64_t>(std::max(needed, smaller + 1)), least);
}

void DecideRow(const Evidence& evidence, double p_worse, double p_better, size_t family,
               ComparisonRow& row) {
  if (evidence.tested) row.p_worse = p_worse;
  row.verdict = "undecided";
  if (evidence.tested && p_worse <= kChangeLevel) row.verdict = "worse";
  if (evidence.tested && p_better <= kChangeLevel) row.verdict = "better";
  if (evidence.tested && evidence.p_outside <= kSameLevel) row.verdict = "same";
  if (row.verdict != "undecided") return;
  row.runs_needed = RunsNeeded(evidence, row, family);
  if (!row.runs_needed && evidence.tested) {
    if (!row.why.empty()) row.why += "; ";
    row.why += "the estimate lies at the edge of the margin: no number of runs is sure to decide";
  }
}

}  // namespace

const RankSumNull& Judge::Null(size_t n, size_t m) {
  return nulls_.try_emplace({n, m}, n, m).first->second;
}

Evidence Judge::Weigh(const std::vector<double>& base, const std::vector<double>& fresh,
                      double margin, bool less_is_better, ComparisonRow& row) {
  row.base_runs = static_cast<uint32_t>(base.size());
  row.new_runs = static_cast<uint32_t>(fresh.size());
  row.base = MedianOf(base);
  row.fresh = MedianOf(fresh);
  row.margin = margin;
  Evidence evidence{.less_is_better = less_is_better, .low = {}, .high = {}};
  if (!AllAboveZero(base) || !AllAboveZero(fresh)) {
    row.why = "a run has 0, of which there is no ratio";
    return evidence;
  }
  const std::vector<double> from = Logarithms(base);
  const std::vector<double> to = Logarithms(fresh);
  const RankSumNull& null = Null(base.size(), fresh.size());
  const ShiftEstimate estimate = EstimateShift(from, to, null);
  evidence.shift = estimate.shift;
  evidence.low = estimate.low;
  evidence.high = estimate.high;
  row.ratio = Finite(std::exp(estimate.shift));
  if (estimate.low) row.ratio_low = Finite(std::exp(*estimate.low));
  if (estimate.high) row.ratio_high = Finite(std::exp(*estimate.high));
  if (std::min(base.size(), fresh.size()) < kMinRuns) {
    row.why = fmt::format(
        "{} and {} runs: a verdict takes {} of each set; below 4 no such test can reject",
        base.size(), fresh.size(), kMinRuns);
    return evidence;
  }
  const double edge = std::log1p(margin);
  const double above = null.AtLeast(PairsAbove(from, to, edge));
  const double below = null.AtLeast(PairsAbove(to, from, edge));
  // Seen from the other end: pairs that lie below the upper edge, and above the lower one.
  const double not_above = null.AtLeast(PairsAbove(to, from, -edge));
  const double not_below = null.AtLeast(PairsAbove(from, to, -edge));
  evidence.tested = true;
  evidence.p_worse = less_is_better ? above : below;
  evidence.p_better = less_is_better ? below : above;
  evidence.p_outside = std::max(not_above, not_below);
  return evidence;
}

void Decide(const std::vector<Evidence>& evidence, std::vector<ComparisonRow>& rows) {
  std::vector<size_t> family;
  std::vector<double> worse;
  std::vector<double> better;
  size_t gated = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    gated += rows[i].gated ? 1 : 0;
    if (!rows[i].gated || !evidence[i].tested) continue;
    family.push_back(i);
    worse.push_back(evidence[i].p_worse);
    better.push_back(evidence[i].p_better);
  }
  const std::vector<double> worse_adjusted = HolmAdjusted(worse);
  const std::vector<double> better_adjusted = HolmAdjusted(better);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].gated)
      DecideRow(evidence[i], evidence[i].p_worse, evidence[i].p_better, 1, rows[i]);
    if (rows[i].gated && !evidence[i].tested) DecideRow(evidence[i], 1, 1, gated, rows[i]);
  }
  for (size_t k = 0; k < family.size(); ++k) {
    const size_t i = family[k];
    DecideRow(evidence[i], worse_adjusted[k], better_adjusted[k], family.size(), rows[i]);
  }
}

}  // namespace verbscope
