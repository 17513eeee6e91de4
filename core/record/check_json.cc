// Checks, and the list of them, as JSON.
#include "core/record/json_parts.h"

namespace verbscope {

using nlohmann::json;

namespace {

OrderedJson PartJson(const CheckPart& part) {
  return {
      {"name", Name(part.name)},
      {"status", Name(part.status)},
      {"expected", TextOrNull(part.expected)},
      {"observed", TextOrNull(part.observed)},
      {"why", TextOrNull(part.why)},
  };
}

Expected<CheckPart> PartFromJson(const json& object) {
  CheckPart part;
  JsonFields fields(object, "checks[].parts[]", ErrorClass::kRun);
  GetName(fields, "name", part.name);
  GetName(fields, "status", part.status);
  GetText(fields, "expected", part.expected);
  GetText(fields, "observed", part.observed);
  GetText(fields, "why", part.why);
  return Finish(fields, std::move(part));
}

}  // namespace

OrderedJson ToJson(const CheckRow& check) {
  OrderedJson object = {
      {"name", Name(check.name)},
      {"status", Name(check.status)},
      {"expected", TextOrNull(check.expected)},
      {"observed", TextOrNull(check.observed)},
      {"why", TextOrNull(check.why)},
      {"source", TextOrNull(check.source)},
  };
  if (!check.parts.empty()) {
    object["parts"] = ArrayOf(check.parts, PartJson);
  }
  return object;
}

Expected<CheckRow> CheckRowFromJson(const json& object) {
  CheckRow check;
  JsonFields fields(object, "checks[]", ErrorClass::kRun);
  GetName(fields, "name", check.name);
  GetName(fields, "status", check.status);
  GetText(fields, "expected", check.expected);
  GetText(fields, "observed", check.observed);
  GetText(fields, "why", check.why);
  GetText(fields, "source", check.source);
  if (object.is_object() && object.contains("parts")) {
    GetRows(fields, "parts", PartFromJson, check.parts);
  }
  return Finish(fields, std::move(check));
}

OrderedJson CatalogRowJson(const CatalogRow& row) {
  return {
      {"name", Name(row.name)},
      {"does", Name(row.does)},
      {"expected", Name(row.expect)},
      {"source", Name(row.source)},
  };
}

Expected<CatalogRow> CatalogRowFromJson(const json& object) {
  CatalogRow row;
  JsonFields fields(object, "catalog[]", ErrorClass::kRun);
  GetName(fields, "name", row.name);
  GetName(fields, "does", row.does);
  GetName(fields, "expected", row.expect);
  GetName(fields, "source", row.source);
  return Finish(fields, std::move(row));
}

OrderedJson BehaviourRowJson(const BehaviourRow& row) {
  return {
      {"id", Name(row.id)},
      {"behaviour", Name(row.behaviour)},
      {"shown_by", ArrayOf(row.shown_by, [](const std::string& text) { return Name(text); })},
  };
}

Expected<BehaviourRow> BehaviourRowFromJson(const json& object) {
  constexpr size_t kMostCommands = 64;
  BehaviourRow row;
  JsonFields fields(object, "behaviours[]", ErrorClass::kRun);
  GetName(fields, "id", row.id);
  GetName(fields, "behaviour", row.behaviour);
  fields.GetArray("shown_by", row.shown_by, kMostCommands);
  for (std::string& text : row.shown_by) text = Printable(text, kMaxTextBytes);
  return Finish(fields, std::move(row));
}

}  // namespace verbscope
