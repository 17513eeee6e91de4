// What came of assertions, as JSON.
#include "core/record/json_parts.h"

namespace verbscope {
namespace {

using nlohmann::json;

void PutOutcome(const GateOutcome& outcome, OrderedJson& object) {
  object["status"] = Name(outcome.status);
  object["observed"] = OrNull(outcome.observed);
  object["bound"] = OrNull(outcome.bound);
  object["limit"] = OrNull(outcome.limit);
  object["samples"] = OrNull(outcome.samples);
  object["effective_samples"] = OrNull(outcome.effective_samples);
  object["samples_needed"] = OrNull(outcome.samples_needed);
  object["why"] = TextOrNull(outcome.why);
}

void GetOutcome(JsonFields& fields, GateOutcome& outcome) {
  GetName(fields, "status", outcome.status);
  fields.Get("observed", outcome.observed);
  fields.Get("bound", outcome.bound);
  fields.Get("limit", outcome.limit);
  fields.Get("samples", outcome.samples);
  fields.Get("effective_samples", outcome.effective_samples);
  fields.Get("samples_needed", outcome.samples_needed);
  GetText(fields, "why", outcome.why);
}

OrderedJson GateResultJson(const GateResult& result) {
  OrderedJson object = {
      {"point", PointJson(result.point)}, {"side", Name(result.side)}, {"run", result.run}};
  PutOutcome(result.outcome, object);
  return object;
}

Expected<GateResult> GateResultFromJson(const json& object) {
  GateResult result;
  JsonFields fields(object, "gates[].results[]", ErrorClass::kRun);
  GetName(fields, "side", result.side);
  fields.Get("run", result.run);
  GetOutcome(fields, result.outcome);
  GetPoint(fields, result.point);
  return Finish(fields, std::move(result));
}

}  // namespace

OrderedJson ToJson(const GateRow& gate) {
  OrderedJson object = {{"expression", Name(gate.expression)}, {"unit", TextOrNull(gate.unit)}};
  PutOutcome(gate.outcome, object);
  object["results"] = ArrayOf(gate.results, GateResultJson);
  return object;
}

Expected<GateRow> GateRowFromJson(const json& object) {
  GateRow gate;
  JsonFields fields(object, "gates[]", ErrorClass::kRun);
  GetName(fields, "expression", gate.expression);
  GetText(fields, "unit", gate.unit);
  GetOutcome(fields, gate.outcome);
  GetRows(fields, "results", GateResultFromJson, gate.results);
  return Finish(fields, std::move(gate));
}

}  // namespace verbscope
