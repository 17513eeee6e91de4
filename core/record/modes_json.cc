// ModeSummary as JSON: what event-vs-poll makes of its results.
#include "core/record/json_parts.h"

namespace verbscope {
namespace {

using nlohmann::json;

OrderedJson DifferenceJson(const std::optional<Difference>& difference) {
  if (!difference) return nullptr;
  return {
      {"value", Number(difference->value)},
      {"low95", OrNull(difference->low)},
      {"high95", OrNull(difference->high)},
  };
}

Expected<Difference> DifferenceFromJson(const json& object) {
  Difference difference;
  JsonFields fields(object, "modes.rows[]", ErrorClass::kRun);
  GetNumber(fields, "value", difference.value);
  fields.Get("low95", difference.low);
  fields.Get("high95", difference.high);
  return Finish(fields, difference);
}

OrderedJson RowJson(const ModeRow& row) {
  return {
      {"load", Name(row.load)},
      {"mode", Name(row.mode)},
      {"offered_per_s", OrNull(row.offered_per_s)},
      {"achieved_per_s", OrNull(row.achieved_per_s)},
      {"samples", row.samples},
      {"p50_ns", OrNull(row.p50_ns)},
      {"p99_ns", OrNull(row.p99_ns)},
      {"p99_9_ns", OrNull(row.p99_9_ns)},
      {"max_ns", OrNull(row.max_ns)},
      {"utilization", OrNull(row.utilization)},
      {"us_per_message", OrNull(row.us_per_message)},
      {"completions_per_event", OrNull(row.completions_per_event)},
      {"lost_wakeups", row.lost_wakeups},
      {"p50_more_ns", DifferenceJson(row.p50_more_ns)},
      {"cpu_saved_percent", DifferenceJson(row.cpu_saved_percent)},
  };
}

Expected<ModeRow> RowFromJson(const json& object) {
  ModeRow row;
  JsonFields fields(object, "modes.rows[]", ErrorClass::kRun);
  GetName(fields, "load", row.load);
  GetName(fields, "mode", row.mode);
  fields.Get("offered_per_s", row.offered_per_s);
  fields.Get("achieved_per_s", row.achieved_per_s);
  fields.Get("samples", row.samples);
  fields.Get("p50_ns", row.p50_ns);
  fields.Get("p99_ns", row.p99_ns);
  fields.Get("p99_9_ns", row.p99_9_ns);
  fields.Get("max_ns", row.max_ns);
  fields.Get("utilization", row.utilization);
  fields.Get("us_per_message", row.us_per_message);
  fields.Get("completions_per_event", row.completions_per_event);
  fields.Get("lost_wakeups", row.lost_wakeups);
  GetObject(fields, "p50_more_ns", DifferenceFromJson, row.p50_more_ns);
  GetObject(fields, "cpu_saved_percent", DifferenceFromJson, row.cpu_saved_percent);
  return Finish(fields, std::move(row));
}

void GetTexts(JsonFields& fields, const char* key, std::vector<std::string>& texts) {
  fields.GetArray(key, texts, kMaxRows);
  for (std::string& text : texts) text = Printable(text, kMaxTextBytes);
}

}  // namespace

OrderedJson ModesJson(const ModeSummary& modes) {
  OrderedJson rows = OrderedJson::array();
  for (const ModeRow& row : modes.rows) rows.push_back(RowJson(row));
  return {
      {"busy_sustains_per_s", OrNull(modes.busy_sustains_per_s)},
      {"rows", std::move(rows)},
      {"unsuited", TextsJson(modes.unsuited)},
      {"sentences", TextsJson(modes.sentences)},
      {"advice", TextsJson(modes.advice)},
  };
}

Expected<ModeSummary> ModesFromJson(const json& object) {
  ModeSummary modes;
  JsonFields fields(object, "modes", ErrorClass::kRun);
  fields.Get("busy_sustains_per_s", modes.busy_sustains_per_s);
  GetRows(fields, "rows", RowFromJson, modes.rows);
  GetTexts(fields, "unsuited", modes.unsuited);
  GetTexts(fields, "sentences", modes.sentences);
  GetTexts(fields, "advice", modes.advice);
  return Finish(fields, std::move(modes));
}

}  // namespace verbscope
