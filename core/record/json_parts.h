// What the parsers and writers of this folder share. Private to core/record; any thread.
#ifndef VERBSCOPE_CORE_RECORD_JSON_PARTS_H_
#define VERBSCOPE_CORE_RECORD_JSON_PARTS_H_

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plan/json_fields.h"
#include "core/record/record.h"
#include "core/record/record_json.h"

namespace verbscope {

using OrderedJson = nlohmann::ordered_json;

inline constexpr size_t kMaxTextBytes = 4096;  // of one text read; the rest is cut
inline constexpr size_t kMaxRows = 65536;      // of one array read: results, intervals, buckets …

// A text that identifies: always a text, may be empty.
inline OrderedJson Name(const std::string& text) { return ValidUtf8(text); }
// A text that describes: null when it is not known.
inline OrderedJson TextOrNull(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(ValidUtf8(text));
}
inline OrderedJson TextsJson(const std::vector<std::string>& texts) {
  OrderedJson array = OrderedJson::array();
  for (const std::string& text : texts) array.push_back(ValidUtf8(text));
  return array;
}
inline OrderedJson Number(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}
inline OrderedJson OrNull(const std::optional<double>& value) {
  return value ? Number(*value) : OrderedJson(nullptr);
}
template <class T>
OrderedJson OrNull(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

template <class Rows, class Writer>
OrderedJson ArrayOf(const Rows& rows, Writer write) {
  OrderedJson array = OrderedJson::array();
  for (const auto& row : rows) array.push_back(write(row));
  return array;
}

// Inverse of Name and TextOrNull.
inline void GetName(JsonFields& fields, const char* key, std::string& text) {
  fields.Get(key, text);
  text = Printable(text, kMaxTextBytes);
}
inline void GetText(JsonFields& fields, const char* key, std::string& text) {
  std::optional<std::string> value;
  fields.Get(key, value);
  text = value ? Printable(*value, kMaxTextBytes) : "";
}
// A number that is written as null when it is not finite.
inline void GetNumber(JsonFields& fields, const char* key, double& value) {
  std::optional<double> number;
  fields.Get(key, number);
  value = number.value_or(0);
}

// An object member read by `parse`; null or absent: no value.
template <class T, class Parse>
void GetObject(JsonFields& fields, const char* key, Parse parse, std::optional<T>& value) {
  value.reset();
  const nlohmann::json* object = fields.Object(key);
  if (object == nullptr) return;
  auto parsed = parse(*object);
  if (parsed) {
    value = std::move(*parsed);
  } else {
    fields.Adopt(std::move(parsed.error()));
  }
}
// An array member whose elements `parse` reads.
template <class T, class Parse>
void GetRows(JsonFields& fields, const char* key, Parse parse, std::vector<T>& rows) {
  rows.clear();
  const nlohmann::json* array = fields.Array(key, kMaxRows);
  if (array == nullptr) return;
  for (const nlohmann::json& element : *array) {
    auto parsed = parse(element);
    if (!parsed) return fields.Adopt(std::move(parsed.error()));
    rows.push_back(std::move(*parsed));
  }
}

// The value, or the first problem of its fields.
template <class T>
Expected<T> Finish(JsonFields& fields, T value) {
  if (!fields.ok()) return Fail(fields.TakeError());
  return value;
}

// check_json.cc
OrderedJson CatalogRowJson(const CatalogRow& row);
Expected<CatalogRow> CatalogRowFromJson(const nlohmann::json& json);
OrderedJson BehaviourRowJson(const BehaviourRow& row);
Expected<BehaviourRow> BehaviourRowFromJson(const nlohmann::json& json);

// result_json.cc
OrderedJson PointJson(const Point& point);
Expected<Point> PointFromJson(const nlohmann::json& json);

// The member "point" of a row that must have one.
inline void GetPoint(JsonFields& fields, Point& point) {
  std::optional<Point> read;
  GetObject(fields, "point", PointFromJson, read);
  if (fields.ok() && !read) fields.Complain("point", "is missing");
  if (read) point = std::move(*read);
}

OrderedJson MetricsJson(const Metrics& metrics, ResultForm form);
Expected<Metrics> MetricsFromJson(const nlohmann::json& json);

// The member "counters", of metrics and of a side.
OrderedJson CountersJson(const std::map<std::string, int64_t>& counters);
void GetCounters(JsonFields& fields, std::map<std::string, int64_t>& counters);

// causes_json.cc
OrderedJson CauseJson(const CauseRow& row);
Expected<CauseRow> CauseFromJson(const nlohmann::json& json);
OrderedJson CounterNoteJson(const CounterNote& note);
Expected<CounterNote> CounterNoteFromJson(const nlohmann::json& json);

OrderedJson ModesJson(const ModeSummary& modes);
Expected<ModeSummary> ModesFromJson(const nlohmann::json& json);

OrderedJson LatencyJson(const LatencyMetrics& latency, ResultForm form);
Expected<LatencyMetrics> LatencyFromJson(const nlohmann::json& json);

// cq_json.cc
OrderedJson ScaleJson(const ScaleMetrics& scale);
Expected<ScaleMetrics> ScaleFromJson(const nlohmann::json& json);
OrderedJson OverrunJson(const OverrunMetrics& overrun);
Expected<OverrunMetrics> OverrunFromJson(const nlohmann::json& json);

OrderedJson ComparisonJson(const Comparison& comparison);
Expected<Comparison> ComparisonFromJson(const nlohmann::json& json);

OrderedJson DeviceSummaryJson(const DeviceSummary& summary);
Expected<DeviceSummary> DeviceSummaryFromJson(const nlohmann::json& json);

// host_json.cc
OrderedJson PreflightRowJson(const PreflightRow& row);
Expected<PreflightRow> PreflightRowFromJson(const nlohmann::json& json);
OrderedJson DeviceResourcesJson(const DeviceResources& resources);
Expected<DeviceResources> DeviceResourcesFromJson(const nlohmann::json& json);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_JSON_PARTS_H_
