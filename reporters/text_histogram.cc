#include "reporters/text_histogram.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace verbscope {
namespace {

constexpr int64_t kBodySteps = 9;
constexpr int kTailRows = 6;

// The smallest of 1, 2, 5, 10, 20, 50 … that is at least `least`: edges people can read.
int64_t NiceStep(double least) {
  double step = 1;
  while (true) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (step * factor >= least) return static_cast<int64_t>(step * factor);
    }
    step *= 10;
  }
}

// `value` rounded to `digits` significant digits.
int64_t Rounded(double value, int digits) {
  const double unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(value)) - digits + 1));
  return static_cast<int64_t>(std::round(value / unit) * unit);
}

uint64_t Total(const std::vector<HistogramBucket>& buckets) {
  uint64_t total = 0;
  for (const HistogramBucket& bucket : buckets) total += bucket.count;
  return total;
}

// The bucket that holds the sample of rank ceil(0.99 n).
const HistogramBucket& BucketOfP99(const std::vector<HistogramBucket>& buckets) {
  const uint64_t total = Total(buckets);
  const uint64_t rank = total - total / 100;
  uint64_t seen = 0;
  for (const HistogramBucket& bucket : buckets) {
    seen += bucket.count;
    if (seen >= rank) return bucket;
  }
  return buckets.back();
}

// Where rows begin: even steps over [lowest, p99], then growing ones up to `highest`.
std::vector<HistogramRow> EmptyRows(int64_t lowest, const HistogramBucket& p99, int64_t highest) {
  // Steps finer than a bucket would show the buckets' edges instead of the distribution.
  const auto bucket_ns = static_cast<double>(p99.to_ns - p99.from_ns + 1);
  const double even = static_cast<double>(p99.from_ns - lowest) / kBodySteps;
  const int64_t step = NiceStep(std::max({even, bucket_ns, 1.0}));
  int64_t edge = lowest / step * step;
  const bool all_even = (highest - edge) / step < static_cast<int64_t>(kMaxHistogramRows);
  const int64_t body_end = all_even ? highest : p99.from_ns;
  std::vector<HistogramRow> rows;
  for (; edge <= body_end; edge += step) rows.push_back({edge, 0, edge > p99.from_ns});
  if (all_even) return rows;

  const auto start = static_cast<double>(edge);
  const double growth = std::pow(static_cast<double>(highest) / start, 1.0 / kTailRows);
  const int digits = growth < 1.1 ? 4 : growth < 1.5 ? 3 : 2;
  rows.push_back({edge, 0, true});
  for (int i = 1; i < kTailRows; ++i) {
    const int64_t next = Rounded(start * std::pow(growth, i), digits);
    if (next > rows.back().from_ns && next <= highest) rows.push_back({next, 0, true});
  }
  return rows;
}

// "99.998 %": rounded down, so that only the last row says 100 %.
std::string UpToHere(uint64_t seen, uint64_t total) {
  if (seen == total) return "100 %";
  const double percent = 100.0 * static_cast<double>(seen) / static_cast<double>(total);
  return fmt::format("{:.3f} %", std::min(std::floor(percent * 1000) / 1000, 99.999));
}

}  // namespace

std::vector<HistogramRow> HistogramRows(const LatencyMetrics& latency) {
  const std::vector<HistogramBucket>& buckets = latency.buckets;
  if (buckets.empty()) return {};
  const HistogramBucket& last = buckets.back();
  const int64_t lowest = std::max<int64_t>(0, latency.min_ns.value_or(buckets.front().from_ns));
  const int64_t highest = std::clamp(latency.max_ns.value_or(last.to_ns), last.from_ns, last.to_ns);
  std::vector<HistogramRow> rows =
      EmptyRows(std::min(lowest, buckets.front().to_ns), BucketOfP99(buckets), highest);
  for (const HistogramBucket& bucket : buckets) {
    auto row = std::upper_bound(rows.begin(), rows.end(), bucket.from_ns,
                                [](int64_t ns, const HistogramRow& r) { return ns < r.from_ns; });
    if (row != rows.begin()) --row;  // the first bucket may begin before the minimum does
    row->count += bucket.count;
  }
  while (rows.size() > 1 && rows.back().count == 0) rows.pop_back();
  while (rows.size() > 1 && rows.front().count == 0) rows.erase(rows.begin());
  return rows;
}

std::string Bar(uint64_t count, uint64_t largest, size_t columns, bool unicode) {
  if (count == 0 || largest == 0) return "";
  const double share = static_cast<double>(count) / static_cast<double>(largest);
  if (!unicode) {
    const auto whole = static_cast<size_t>(std::lround(share * static_cast<double>(columns)));
    return whole == 0 ? "." : std::string(std::min(whole, columns), '#');
  }
  constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<size_t>(std::clamp(
      std::lround(share * static_cast<double>(columns) * 8), 1L, static_cast<long>(columns * 8)));
  std::string bar;
  for (size_t i = 0; i < eighths / 8; ++i) bar += "█";
  return bar.append(kEighths[eighths % 8]);
}

void DrawHistogram(const LatencyMetrics& latency, Canvas& canvas) {
  const std::vector<HistogramRow> rows = HistogramRows(latency);
  if (rows.empty()) return;
  const uint64_t total = Total(latency.buckets);
  uint64_t largest = 0;
  for (const HistogramRow& row : rows) largest = std::max(largest, row.count);
  const size_t count_columns = std::max<size_t>(CountText(largest).size(), 7);
  // indent, label, gap, bar, gap, count, gap, "100.000 %"
  const size_t bar_columns = canvas.width() - 2 - 8 - 2 - 2 - count_columns - 2 - 9;
  canvas.Line(canvas.In(
      Ink::kDim, fmt::format("  {}  {}  {}  {}", PadRight("  from", 8), PadRight("", bar_columns),
                             PadLeft("samples", count_columns), PadLeft("to here", 9))));
  uint64_t seen = 0;
  for (const HistogramRow& row : rows) {
    seen += row.count;
    const std::string bar =
        PadRight(Bar(row.count, largest, bar_columns, canvas.options().unicode), bar_columns);
    canvas.Line(fmt::format("  {}  {}  {}  {}", TimeColumn(static_cast<double>(row.from_ns)),
                            canvas.In(row.tail ? Ink::kYellow : Ink::kCyan, bar),
                            PadLeft(CountText(row.count), count_columns),
                            PadLeft(UpToHere(seen, total), 9)));
  }
}

}  // namespace verbscope
