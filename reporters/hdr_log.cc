#include "reporters/hdr_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/histogram/hdr_codec.h"
#include "core/histogram/histogram.h"
#include "core/record/record_json.h"
#include "reporters/result_name.h"
#include "reporters/start_time.h"

namespace verbscope {
namespace {

// Letters, digits and "._-+": all that a tag may hold for readers that split at commas and blanks.
std::string Tag(const std::string& name) {
  std::string tag;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '+' || c == '_';
    if (plain) {
      tag += c;
    } else if (!tag.empty() && tag.back() != '_') {
      tag += '_';
    }
  }
  return tag;
}

double Finite(double value) { return std::isfinite(value) ? std::max(0.0, value) : 0.0; }

std::string IntervalLine(const std::string& tag, double from_s, double length_s, int64_t max_ns,
                         const std::string& encoded) {
  return fmt::format("Tag={},{:.3f},{:.3f},{:.3f},{}\n", tag, from_s, length_s,
                     static_cast<double>(max_ns) / 1e6, encoded);
}

// The text for the whole of a result. A record that came without it has its buckets.
std::string Encoded(const LatencyMetrics& latency) {
  if (!latency.hdr_v2.empty()) return latency.hdr_v2;
  Histogram histogram;
  for (const HistogramBucket& bucket : latency.buckets) {
    const int64_t ns = std::clamp<int64_t>(bucket.from_ns, 0, Histogram::kRangeNs);
    histogram.AddToBucket(Histogram::IndexOf(ns), std::min(bucket.count, kHdrMaxCount));
  }
  return EncodeHdrV2(histogram);
}

// How long the result was measured for, as far as it says.
double SecondsOf(const Record& record, const Result& result) {
  if (result.metrics.bandwidth && result.metrics.bandwidth->seconds > 0) {
    return Finite(result.metrics.bandwidth->seconds);
  }
  if (!result.intervals.empty()) return Finite(result.intervals.back().to_s);
  return Finite(record.wall_s);
}

std::string ResultLines(const Record& record, const Result& result, const std::string& tag,
                        double start_s) {
  const LatencyMetrics& latency = *result.metrics.latency;
  std::string lines;
  for (const LatencyBlock& block : latency.blocks) {
    const Expected<Histogram> histogram = DecodeHdrV2(block.hdr_v2);
    if (!histogram) {
      lines += fmt::format("# {}: a stretch of time could not be read\n", tag);
      continue;
    }
    lines += IntervalLine(tag, start_s + Finite(block.from_s), Finite(block.to_s - block.from_s),
                          histogram->max(), block.hdr_v2);
  }
  if (!latency.blocks.empty()) return lines;
  return IntervalLine(tag, start_s, SecondsOf(record, result), latency.max_ns.value_or(0),
                      Encoded(latency));
}

bool HasSamples(const Result& result) {
  return result.metrics.latency && result.metrics.latency->samples > 0;
}

// One step of the distribution: five between a level and the half of what is left above it.
double NextLevel(double level) {
  constexpr double kTicksPerHalf = 5;
  const double half = std::pow(2, std::floor(std::log2(100 / (100 - level))) + 1);
  return level + 100 / (kTicksPerHalf * half);
}

std::string DistributionLines(const LatencyMetrics& latency) {
  std::string lines = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n";
  const auto total = static_cast<double>(latency.samples);
  const int64_t top_ns =
      latency.max_ns.value_or(latency.buckets.empty() ? 0 : latency.buckets.back().to_ns);
  uint64_t reached = 0;
  double level = 0;
  for (const HistogramBucket& bucket : latency.buckets) {
    reached += bucket.count;
    const double percentile = 100 * (static_cast<double>(reached) / total);
    // The last bucket ends above the largest sample, which is known exactly.
    const double value_us = static_cast<double>(std::min(bucket.to_ns, top_ns)) / 1e3;
    while (level < 100 && level <= percentile) {
      lines += fmt::format("{:12.3f} {:2.12f} {:10d} {:14.2f}\n", value_us, level / 100, reached,
                           1 / (1 - level / 100));
      level = NextLevel(level);
      // All is counted: the line of 100 % says the rest.
      if (reached >= latency.samples) break;
    }
  }
  const double max_us = static_cast<double>(top_ns) / 1e3;
  lines += fmt::format("{:12.3f} {:2.12f} {:10d}\n", max_us, 1.0, reached);
  lines += fmt::format("#[Mean    = {:12.3f}, StdDeviation   = {:12.3f}]\n",
                       latency.mean_ns.value_or(0) / 1e3, latency.stdev_ns.value_or(0) / 1e3);
  lines += fmt::format("#[Max     = {:12.3f}, Total count    = {:12d}]\n", max_us, latency.samples);
  lines += fmt::format("#[Buckets = {:12d}, SubBuckets     = {:12d}]\n", Histogram::kBuckets,
                       2 * Histogram::kHalf);
  return lines;
}

}  // namespace

std::string RenderHdrLog(std::span<const Record> records) {
  std::optional<double> start;
  for (const Record& record : records) {
    const double seconds = UnixSeconds(record.started_at).value_or(0);
    start = std::min(start.value_or(seconds), seconds);
  }
  const double start_s = start.value_or(0);
  std::string text = fmt::format(
      "#[Histogram log format version 1.3]\n"
      "#[verbscope: values in ns, Interval_Max in ms; a tag for each result]\n"
      "#[BaseTime: {0:.3f} (seconds since epoch)]\n"
      "#[StartTime: {0:.3f} (seconds since epoch)]\n"
      "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
      start_s);
  UniqueNames tags;
  for (const Record& record : records) {
    for (const Result& result : record.results) {
      if (!HasSamples(result)) continue;
      const std::string tag = Tag(tags.Take(Tag(ResultName(record, result))));
      text +=
          ResultLines(record, result, tag, UnixSeconds(record.started_at).value_or(0) - start_s);
    }
  }
  return text;
}

std::string RenderHgrm(std::span<const Record> records) {
  std::string text = "# verbscope: values in us\n";
  UniqueNames names;
  for (const Record& record : records) {
    for (const Result& result : record.results) {
      if (!HasSamples(result)) continue;
      text += fmt::format("# {}\n", names.Take(ResultName(record, result)));
      text += DistributionLines(*result.metrics.latency);
    }
  }
  return text;
}

}  // namespace verbscope
