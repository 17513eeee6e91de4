// A comparison as JSON.
#include "core/record/json_parts.h"

namespace verbscope {
namespace {

using nlohmann::json;

OrderedJson RowJson(const ComparisonRow& row) {
  return {
      {"point", PointJson(row.point)},
      {"side", Name(row.side)},
      {"metric", Name(row.metric)},
      {"unit", Name(row.unit)},
      {"gated", row.gated},
      {"base_runs", row.base_runs},
      {"new_runs", row.new_runs},
      {"base", OrNull(row.base)},
      {"new", OrNull(row.fresh)},
      {"ratio", OrNull(row.ratio)},
      {"ratio_low", OrNull(row.ratio_low)},
      {"ratio_high", OrNull(row.ratio_high)},
      {"margin", Number(row.margin)},
      {"p_worse", OrNull(row.p_worse)},
      {"verdict", Name(row.verdict)},
      {"runs_needed", OrNull(row.runs_needed)},
      {"why", TextOrNull(row.why)},
  };
}

Expected<ComparisonRow> RowFromJson(const json& object) {
  ComparisonRow row;
  JsonFields fields(object, "comparison.rows[]", ErrorClass::kUsage);
  GetName(fields, "side", row.side);
  GetName(fields, "metric", row.metric);
  GetName(fields, "unit", row.unit);
  fields.Get("gated", row.gated);
  fields.Get("base_runs", row.base_runs);
  fields.Get("new_runs", row.new_runs);
  fields.Get("base", row.base);
  fields.Get("new", row.fresh);
  fields.Get("ratio", row.ratio);
  fields.Get("ratio_low", row.ratio_low);
  fields.Get("ratio_high", row.ratio_high);
  GetNumber(fields, "margin", row.margin);
  fields.Get("p_worse", row.p_worse);
  GetName(fields, "verdict", row.verdict);
  fields.Get("runs_needed", row.runs_needed);
  GetText(fields, "why", row.why);
  GetPoint(fields, row.point);
  return Finish(fields, std::move(row));
}

OrderedJson ShiftJson(const ShiftRow& row) {
  return {
      {"point", PointJson(row.point)}, {"side", Name(row.side)}, {"percent", Name(row.percent)},
      {"base_ns", row.base_ns},        {"new_ns", row.fresh_ns},
  };
}

Expected<ShiftRow> ShiftFromJson(const json& object) {
  ShiftRow row;
  JsonFields fields(object, "comparison.shifts[]", ErrorClass::kUsage);
  GetName(fields, "side", row.side);
  GetName(fields, "percent", row.percent);
  fields.Get("base_ns", row.base_ns);
  fields.Get("new_ns", row.fresh_ns);
  GetPoint(fields, row.point);
  return Finish(fields, std::move(row));
}

OrderedJson DifferenceJson(const SetDifference& row) {
  return {{"field", Name(row.field)}, {"base", Name(row.base)}, {"new", Name(row.fresh)}};
}

Expected<SetDifference> DifferenceFromJson(const json& object) {
  SetDifference row;
  JsonFields fields(object, "comparison differences", ErrorClass::kUsage);
  GetName(fields, "field", row.field);
  GetName(fields, "base", row.base);
  GetName(fields, "new", row.fresh);
  return Finish(fields, std::move(row));
}

void GetTexts(JsonFields& fields, const char* key, std::vector<std::string>& texts) {
  fields.GetArray(key, texts, kMaxRows);
  for (std::string& text : texts) text = Printable(text, kMaxTextBytes);
}

}  // namespace

OrderedJson ComparisonJson(const Comparison& comparison) {
  return {
      {"base", Name(comparison.base_name)},
      {"new", Name(comparison.new_name)},
      {"environment", ArrayOf(comparison.environment, DifferenceJson)},
      {"parameters", ArrayOf(comparison.parameters, DifferenceJson)},
      {"rows", ArrayOf(comparison.rows, RowJson)},
      {"shifts", ArrayOf(comparison.shifts, ShiftJson)},
      {"causes", TextsJson(comparison.causes)},
      {"unmatched", TextsJson(comparison.unmatched)},
  };
}

Expected<Comparison> ComparisonFromJson(const json& object) {
  Comparison comparison;
  JsonFields fields(object, "comparison", ErrorClass::kUsage);
  GetName(fields, "base", comparison.base_name);
  GetName(fields, "new", comparison.new_name);
  GetRows(fields, "environment", DifferenceFromJson, comparison.environment);
  GetRows(fields, "parameters", DifferenceFromJson, comparison.parameters);
  GetRows(fields, "rows", RowFromJson, comparison.rows);
  GetRows(fields, "shifts", ShiftFromJson, comparison.shifts);
  GetTexts(fields, "causes", comparison.causes);
  GetTexts(fields, "unmatched", comparison.unmatched);
  return Finish(fields, std::move(comparison));
}

}  // namespace verbscope
