#include "core/record/percentile.h"

namespace verbscope {

HistogramBucket BucketAtRank(const LatencyMetrics& latency, uint64_t rank) {
  HistogramBucket bucket = latency.buckets.empty() ? HistogramBucket{} : latency.buckets.back();
  uint64_t seen = 0;
  for (const HistogramBucket& each : latency.buckets) {
    seen += each.count;
    if (seen < std::max<uint64_t>(rank, 1)) continue;
    bucket = each;
    break;
  }
  if (latency.min_ns) bucket.from_ns = std::max(bucket.from_ns, *latency.min_ns);
  if (latency.max_ns) bucket.to_ns = std::min(bucket.to_ns, *latency.max_ns);
  return bucket;
}

}  // namespace verbscope
