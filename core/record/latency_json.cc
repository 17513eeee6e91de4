// LatencyMetrics as JSON: statistics, percentiles with their intervals, and every bucket.
#include <algorithm>
#include <charconv>
#include <utility>

#include "core/histogram/hdr_codec.h"
#include "core/histogram/histogram.h"
#include "core/record/json_parts.h"

namespace verbscope {
namespace {

using nlohmann::json;

constexpr char kWhere[] = "latency";

tl::unexpected<Error> Wrong(std::string message) {
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message = std::move(message);
  return Fail(std::move(error));
}

// The percent a key names, 0 < percent <= 100; nullopt for anything but plain digits and a point.
std::optional<double> PercentOf(std::string_view key) {
  if (key.size() > 16 || key.find_first_not_of("0123456789.") != key.npos) return std::nullopt;
  double percent = 0;
  const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), percent);
  if (problem != std::errc() || end != key.data() + key.size()) return std::nullopt;
  if (percent <= 0 || percent > 100) return std::nullopt;
  return percent;
}

// A time in ns: a whole number that fits int64_t.
bool IsTime(const json& value) {
  if (value.is_number_unsigned()) return std::in_range<int64_t>(value.get<uint64_t>());
  return value.is_number_integer();
}

bool IsCount(const json& value) {
  return value.is_number_unsigned() || (IsTime(value) && value.get<int64_t>() >= 0);
}

bool IsPair(const json& value) {
  return value.is_array() && value.size() == 2 && IsTime(value[0]) && IsTime(value[1]);
}

void GetPercentiles(JsonFields& fields, std::vector<PercentileRow>& rows) {
  const json* values = fields.Object("percentiles_ns");
  const json* intervals = fields.Object("interval95_ns");
  const json* effective = fields.Object("effective_samples");
  if (values == nullptr) return void(fields.Complain("percentiles_ns", "is missing"));
  for (const auto& [key, value] : values->items()) {
    if (!PercentOf(key))
      return void(fields.Complain("percentiles_ns", "has a key that is no percent"));
    PercentileRow row;
    row.percent = key;
    JsonFields row_fields(*values, "latency.percentiles_ns", ErrorClass::kRun);
    row_fields.Get(key.c_str(), row.value_ns);
    if (!row_fields.ok()) return fields.Adopt(row_fields.TakeError());
    if (intervals != nullptr && intervals->contains(key) && !(*intervals)[key].is_null()) {
      const json& pair = (*intervals)[key];
      if (!IsPair(pair)) return void(fields.Complain("interval95_ns", "holds no pair of numbers"));
      row.interval = Interval95{pair[0].get<int64_t>(), pair[1].get<int64_t>()};
    }
    if (effective != nullptr && effective->contains(key) && IsCount((*effective)[key])) {
      row.effective_samples = (*effective)[key].get<uint64_t>();
    }
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const PercentileRow& a, const PercentileRow& b) {
    return PercentOf(a.percent) < PercentOf(b.percent);
  });
}

// [from, to, count], in order, without overlap, none empty.
void GetBuckets(JsonFields& fields, const json& array, std::vector<HistogramBucket>& buckets) {
  for (const json& element : array) {
    const bool numbers = element.is_array() && element.size() == 3 && IsTime(element[0]) &&
                         IsTime(element[1]) && IsCount(element[2]);
    if (!numbers)
      return void(fields.Complain("buckets", "holds something else than [from,to,count]"));
    const HistogramBucket bucket = {element[0].get<int64_t>(), element[1].get<int64_t>(),
                                    element[2].get<uint64_t>()};
    const bool follows = buckets.empty() || bucket.from_ns > buckets.back().to_ns;
    if (bucket.from_ns > bucket.to_ns || bucket.count == 0 || !follows) {
      return void(fields.Complain("buckets", "is not in order, or has an empty bucket"));
    }
    buckets.push_back(bucket);
  }
}

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

OrderedJson BlockJson(const LatencyBlock& block) {
  return {{"from_s", Number(block.from_s)}, {"to_s", Number(block.to_s)}, {"hdr_v2", block.hdr_v2}};
}

Expected<LatencyBlock> BlockFromJson(const json& object) {
  LatencyBlock block;
  JsonFields fields(object, "latency.histogram.blocks[]", ErrorClass::kRun);
  GetNumber(fields, "from_s", block.from_s);
  GetNumber(fields, "to_s", block.to_s);
  fields.Get("hdr_v2", block.hdr_v2);
  if (block.hdr_v2.find_first_not_of(kBase64) != std::string::npos) {
    fields.Complain("hdr_v2", "is not base64");
  }
  return Finish(fields, std::move(block));
}

void GetHistogram(const json& object, LatencyMetrics& latency, JsonFields& outer) {
  JsonFields fields(object, "latency.histogram", ErrorClass::kRun);
  fields.Get("significant_digits", latency.significant_digits);
  fields.GetOr("hdr_v2", latency.hdr_v2);
  if (latency.hdr_v2.find_first_not_of(kBase64) != std::string::npos) {
    fields.Complain("hdr_v2", "is not base64");
  }
  if (object.contains("blocks")) GetRows(fields, "blocks", BlockFromJson, latency.blocks);
  if (object.contains("buckets")) {
    const json* array = fields.Array("buckets", kMaxRows);
    if (array != nullptr) GetBuckets(fields, *array, latency.buckets);
  } else if (!latency.hdr_v2.empty()) {
    const auto histogram = DecodeHdrV2(latency.hdr_v2);
    if (!histogram) {
      fields.Adopt(histogram.error());
    } else {
      histogram->ForEachBucket([&latency](int64_t from_ns, int64_t to_ns, uint64_t count) {
        latency.buckets.push_back({from_ns, to_ns, count});
      });
    }
  }
  if (!fields.ok()) outer.Adopt(fields.TakeError());
}

}  // namespace

OrderedJson LatencyJson(const LatencyMetrics& latency, ResultForm form) {
  OrderedJson percentiles = OrderedJson::object();
  OrderedJson intervals = OrderedJson::object();
  OrderedJson effective = OrderedJson::object();
  for (const PercentileRow& row : latency.percentiles) {
    percentiles[row.percent] = OrNull(row.value_ns);
    intervals[row.percent] = row.interval
                                 ? OrderedJson::array({row.interval->low_ns, row.interval->high_ns})
                                 : OrderedJson(nullptr);
    effective[row.percent] = OrNull(row.effective_samples);
  }
  OrderedJson histogram = {{"significant_digits", latency.significant_digits}};
  if (form == ResultForm::kDocument) {
    OrderedJson& buckets = histogram["buckets"] = OrderedJson::array();
    for (const HistogramBucket& bucket : latency.buckets) {
      buckets.push_back(OrderedJson::array({bucket.from_ns, bucket.to_ns, bucket.count}));
    }
  }
  histogram["hdr_v2"] = latency.hdr_v2;
  if (form == ResultForm::kDocument && !latency.blocks.empty())
    histogram["blocks"] = ArrayOf(latency.blocks, BlockJson);
  return {
      {"definition", Name(latency.definition)},
      {"ended_by", Name(latency.ended_by)},
      {"samples", latency.samples},
      {"min_ns", OrNull(latency.min_ns)},
      {"mean_ns", OrNull(latency.mean_ns)},
      {"stdev_ns", OrNull(latency.stdev_ns)},
      {"max_ns", OrNull(latency.max_ns)},
      {"percentiles_ns", std::move(percentiles)},
      {"interval95_ns", std::move(intervals)},
      {"effective_samples", std::move(effective)},
      {"histogram", std::move(histogram)},
  };
}

Expected<LatencyMetrics> LatencyFromJson(const json& object) {
  LatencyMetrics latency;
  JsonFields fields(object, kWhere, ErrorClass::kRun);
  GetName(fields, "definition", latency.definition);
  GetName(fields, "ended_by", latency.ended_by);
  fields.Get("samples", latency.samples);
  fields.Get("min_ns", latency.min_ns);
  fields.Get("mean_ns", latency.mean_ns);
  fields.Get("stdev_ns", latency.stdev_ns);
  fields.Get("max_ns", latency.max_ns);
  GetPercentiles(fields, latency.percentiles);
  const nlohmann::json* histogram = fields.Object("histogram");
  if (histogram != nullptr) {
    GetHistogram(*histogram, latency, fields);
  } else {
    fields.Complain("histogram", "is missing");
  }
  if (!fields.ok()) return Fail(fields.TakeError());

  uint64_t total = 0;
  for (const HistogramBucket& bucket : latency.buckets) {
    if (__builtin_add_overflow(total, bucket.count, &total)) return Wrong("latency.histogram: sum");
  }
  if (total != latency.samples) {
    return Wrong("latency.histogram holds " + std::to_string(total) + " samples, but samples is " +
                 std::to_string(latency.samples));
  }
  // A sample above the histogram's range counts in its last bucket, which hdr_v2 cannot stretch.
  if (!latency.buckets.empty() && latency.max_ns) {
    int64_t& last_ns = latency.buckets.back().to_ns;
    last_ns = std::max(last_ns, *latency.max_ns);
  }
  return latency;
}

}  // namespace verbscope
