#include "core/statistics/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace verbscope {
namespace {

using Wide = unsigned __int128;
using rank_internal::kExactVariance;
using rank_internal::Tail;

double Share(Percentile percentile) {
  return static_cast<double>(percentile.parts()) / Percentile::kWhole;
}

// 1 − q from the integer: 1 − Share() would lose the digits that matter for p99.9999.
double Rest(Percentile percentile) {
  return static_cast<double>(Percentile::kWhole - percentile.parts()) / Percentile::kWhole;
}

double Variance(Percentile percentile, uint64_t n) {
  return static_cast<double>(n) * Share(percentile) * Rest(percentile);
}

RankBounds Bounds(Percentile percentile, uint64_t n, Tail tail) {
  return Variance(percentile, n) <= kExactVariance
             ? rank_internal::ExactBounds(percentile, n, tail)
             : rank_internal::ApproximateBounds(percentile, n, tail);
}

// The smallest n with base^n ≤ tail, given ln(base) < 0.
uint64_t SmallestPower(double log_base, double tail) {
  return static_cast<uint64_t>(std::ceil(std::log(tail) / log_base));
}

// Probabilities of Binomial(n, q) around its mode, up to a common factor: weights[i] belongs to
// first + i. What lies outside is below 10^-18 of the mode.
struct Binomial {
  uint64_t first = 0;
  std::vector<double> weights;
  double total = 0;
};

// By the ratio of neighbours, from the mode outwards: no gamma function, which for large n would
// cancel all digits, and some 10^-16 of error per step.
Binomial BinomialAroundMode(Percentile percentile, uint64_t n) {
  constexpr double kNegligible = 1e-18;
  const double odds = Share(percentile) / Rest(percentile);
  const auto mode =
      std::min(n, static_cast<uint64_t>((Wide{n} + 1) * percentile.parts() / Percentile::kWhole));
  Binomial result;
  std::vector<double>& weights = result.weights;
  double weight = 1;
  for (uint64_t k = mode; weight > kNegligible; --k) {
    weights.push_back(weight);
    result.first = k;
    if (k == 0) break;
    weight *= static_cast<double>(k) / (static_cast<double>(n - k + 1) * odds);
  }
  std::reverse(weights.begin(), weights.end());
  weight = 1;
  for (uint64_t k = mode; k < n; ++k) {
    weight *= static_cast<double>(n - k) / static_cast<double>(k + 1) * odds;
    if (weight <= kNegligible) break;
    weights.push_back(weight);
  }
  for (const double w : weights) result.total += w;
  return result;
}

}  // namespace

std::optional<Percentile> Percentile::Parse(std::string_view text) {
  constexpr size_t kFractionDigits = 7;
  const size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view fraction =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  const bool has_fraction = point != std::string_view::npos;
  if (whole.empty() || whole.size() > 2 || has_fraction == fraction.empty() ||
      fraction.size() > kFractionDigits) {
    return std::nullopt;
  }
  uint32_t parts = 0;
  for (size_t i = 0; i < whole.size() + kFractionDigits; ++i) {
    const char digit = i < whole.size()                     ? whole[i]
                       : i - whole.size() < fraction.size() ? fraction[i - whole.size()]
                                                            : '0';
    if (digit < '0' || digit > '9') return std::nullopt;
    parts = parts * 10 + static_cast<uint32_t>(digit - '0');
  }
  if (parts == 0) return std::nullopt;
  return Percentile(parts);
}

std::string Percentile::Text() const {
  constexpr uint32_t kPercent = kWhole / 100;
  std::string text = fmt::format("{}.{:07}", parts_ / kPercent, parts_ % kPercent);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

uint64_t NearestRank(Percentile percentile, uint64_t n) {
  return static_cast<uint64_t>((Wide{n} * percentile.parts() + Percentile::kWhole - 1) /
                               Percentile::kWhole);
}

bool IsResolved(Percentile percentile, uint64_t n) {
  return Wide{n} * (Percentile::kWhole - percentile.parts()) >= Percentile::kWhole;
}

RankBounds TwoSided95(Percentile percentile, uint64_t n) {
  return Bounds(percentile, n, rank_internal::kTail2_5);
}

RankBounds OneSided95(Percentile percentile, uint64_t n) {
  return Bounds(percentile, n, rank_internal::kTail5);
}

uint64_t MinSamplesTwoSided(Percentile percentile) {
  // The upper end exists if P(B ≥ n) = q^n ≤ 2.5 %, the lower if P(B = 0) = (1 − q)^n ≤ 2.5 %.
  const double larger = std::max(std::log1p(-Rest(percentile)), std::log1p(-Share(percentile)));
  return SmallestPower(larger, rank_internal::kTail2_5.probability);
}

uint64_t MinSamplesOneSided(Percentile percentile) {
  return SmallestPower(std::log1p(-Rest(percentile)), rank_internal::kTail5.probability);
}

uint64_t ScaleRankUp(uint64_t rank, uint64_t from, uint64_t to) {
  return static_cast<uint64_t>((Wide{rank} * to + from - 1) / from);
}

uint64_t ScaleRankDown(uint64_t rank, uint64_t from, uint64_t to) {
  return static_cast<uint64_t>(Wide{rank - 1} * to / from) + 1;
}

namespace rank_internal {

RankBounds ExactBounds(Percentile percentile, uint64_t n, Tail tail) {
  if (n == 0) return {};
  const Binomial binomial = BinomialAroundMode(percentile, n);
  const double allowed = tail.probability * binomial.total;
  const uint64_t past_last = binomial.first + binomial.weights.size();
  RankBounds bounds;
  // The largest rank l with P(B < l) ≤ tail.
  uint64_t lower = binomial.first;
  double below = 0;
  for (const double weight : binomial.weights) {
    below += weight;
    if (below > allowed) break;
    ++lower;
  }
  if (lower >= 1) bounds.lower = lower;
  // The smallest rank u with P(B ≥ u) ≤ tail.
  uint64_t upper = past_last;
  double above = 0;
  for (auto weight = binomial.weights.rbegin(); weight != binomial.weights.rend(); ++weight) {
    above += *weight;
    if (above > allowed) break;
    --upper;
  }
  if (upper <= n) bounds.upper = upper;
  return bounds;
}

// Normal quantile with continuity and the skewness term of Cornish and Fisher. The next terms are
// of the order 1 / (10 σ): with a variance above 10^6 less than 10^-4 of a rank, which changes the
// coverage by less than 10^-7.
RankBounds ApproximateBounds(Percentile percentile, uint64_t n, Tail tail) {
  const double deviation = std::sqrt(Variance(percentile, n));
  const double skew = (Rest(percentile) - Share(percentile)) * (tail.z * tail.z - 1) / 6;
  // q n in integers: for large n a double has no digits left for a single rank.
  const Wide product = Wide{n} * percentile.parts();
  const auto whole = static_cast<__int128>(product / Percentile::kWhole);
  const double fraction =
      static_cast<double>(static_cast<uint64_t>(product % Percentile::kWhole)) / Percentile::kWhole;
  const double centre = fraction + skew - 0.5;
  const auto rank = [&](double offset) {
    const __int128 value = whole + static_cast<__int128>(offset) + 1;
    return static_cast<uint64_t>(std::clamp<__int128>(value, 1, n));
  };
  return {rank(std::floor(centre - tail.z * deviation)),
          rank(std::ceil(centre + tail.z * deviation))};
}

}  // namespace rank_internal

}  // namespace verbscope
