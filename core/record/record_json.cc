#include "core/record/record_json.h"

#include <array>

#include "core/plan/plan_json.h"
#include "core/record/json_parts.h"

namespace verbscope {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> kVerdicts = {"pass", "fail", "inconclusive", "error"};

// The keys of a plan in the order of plan.h, which a reader of the document can follow.
OrderedJson PlanJson(const std::optional<Plan>& plan) {
  if (!plan) return {{"changes", OrderedJson::array()}};
  const json unordered = ToJson(*plan);
  OrderedJson ordered = {
      {"command", nullptr},     {"sizes_bytes", nullptr},       {"iterations", nullptr},
      {"duration_ns", nullptr}, {"warmup_iterations", nullptr}, {"warmup_ns", nullptr},
      {"qps", nullptr},         {"tx_depth", nullptr},          {"rx_depth", nullptr},
      {"post_list", nullptr},   {"signal_every", nullptr},      {"inline", nullptr},
      {"mtu_bytes", nullptr}};
  for (const auto& [key, value] : unordered.items()) {
    if (key != "changes") ordered[key] = value;
  }
  OrderedJson changes = OrderedJson::array();
  for (const PlanChange& change : plan->changes) {
    changes.push_back({{"field", Name(change.field)},
                       {"asked", Name(change.asked)},
                       {"used", Name(change.used)},
                       {"why", Name(change.why)}});
  }
  ordered["changes"] = std::move(changes);
  return ordered;
}

void GetTool(JsonFields& fields, Record& record) {
  const json* tool = fields.Object("tool");
  if (tool == nullptr) return void(fields.Complain("tool", "is missing"));
  JsonFields members(*tool, "tool", ErrorClass::kUsage);
  GetName(members, "name", record.tool_name);
  GetText(members, "version", record.tool_version);
  GetText(members, "build", record.tool_build);
  if (!members.ok()) fields.Adopt(members.TakeError());
}

void GetVerdict(JsonFields& fields, Record& record) {
  fields.Get("verdict", record.verdict);
  fields.Get("exit_code", record.exit_code);
  for (const std::string_view verdict : kVerdicts) {
    if (record.verdict == verdict) return;
  }
  fields.Complain("verdict", "is not pass, fail, inconclusive or error");
}

void GetSides(JsonFields& fields, Record& record) {
  std::optional<SideRecord> local;
  GetObject(fields, "local", SideFromJson, local);
  GetObject(fields, "remote", SideFromJson, record.remote);
  if (fields.ok() && !local) fields.Complain("local", "is missing");
  if (local) record.local = std::move(*local);
}

void GetPlan(JsonFields& fields, Record& record) {
  const json* plan = fields.Object("plan");
  if (plan == nullptr) return void(fields.Complain("plan", "is missing"));
  if (plan->contains("command")) GetObject(fields, "plan", PlanFromJson, record.plan);
}

}  // namespace

OrderedJson ToJson(const Error& error) {
  return {
      {"class", Name(error.error_class)},
      {"side", Name(error.side)},
      {"message", Name(error.message)},
      {"cause", TextOrNull(error.cause)},
      {"next_step", TextOrNull(error.next_step)},
      {"status", TextOrNull(error.status)},
      {"errno", error.errno_value == 0 ? OrderedJson(nullptr) : OrderedJson(error.errno_value)},
  };
}

Expected<Error> ErrorFromJson(const json& object) {
  Error error;
  JsonFields fields(object, "error", ErrorClass::kRun);
  std::string name;
  fields.Get("class", name);
  error.error_class = ErrorClassFromName(name);
  fields.Get("side", name);
  error.side = name == Name(Side::kPeer) ? Side::kPeer : Side::kLocal;
  GetName(fields, "message", error.message);
  GetText(fields, "cause", error.cause);
  GetText(fields, "next_step", error.next_step);
  GetText(fields, "status", error.status);
  std::optional<int> errno_value;
  fields.Get("errno", errno_value);
  error.errno_value = errno_value.value_or(0);
  return Finish(fields, std::move(error));
}

OrderedJson ToJson(const Record& record) {
  OrderedJson object = {
      {"schema_version", kSchemaVersion},
      {"tool",
       {{"name", Name(record.tool_name)},
        {"version", Name(record.tool_version)},
        {"build", Name(record.tool_build)}}},
      {"command", Name(record.command)},
      {"argv", TextsJson(record.argv)},
      {"started_at", Name(record.started_at)},
      {"wall_s", Number(record.wall_s)},
      {"verdict", Name(record.verdict)},
      {"exit_code", record.exit_code},
      {"loopback", record.loopback},
      {"path_mtu_bytes",
       record.path_mtu_bytes == 0 ? OrderedJson(nullptr) : OrderedJson(record.path_mtu_bytes)},
      {"plan", PlanJson(record.plan)},
      {"local", ToJson(record.local)},
      {"remote", record.remote ? ToJson(*record.remote) : OrderedJson(nullptr)},
  };
  if (record.command == "devices") object["devices"] = ArrayOf(record.devices, DeviceSummaryJson);
  if (record.resources) object["resources"] = ArrayOf(*record.resources, DeviceResourcesJson);
  if (record.command == "doctor") object["preflight"] = ArrayOf(record.preflight, PreflightRowJson);
  object["results"] = ArrayOf(record.results, [](const Result& result) { return ToJson(result); });
  object["checks"] = ArrayOf(record.checks, [](const CheckRow& check) { return ToJson(check); });
  if (record.modes) object["modes"] = ModesJson(*record.modes);
  object["gates"] = ArrayOf(record.gates, [](const GateRow& gate) { return ToJson(gate); });
  if (!record.catalog.empty()) object["catalog"] = ArrayOf(record.catalog, CatalogRowJson);
  if (!record.behaviours.empty()) {
    object["behaviours"] = ArrayOf(record.behaviours, BehaviourRowJson);
  }
  if (record.comparison) object["comparison"] = ComparisonJson(*record.comparison);
  object["notices"] = TextsJson(record.notices);
  object["error"] = record.error ? ToJson(*record.error) : OrderedJson(nullptr);
  object["causes"] = ArrayOf(record.causes, CauseJson);
  object["counter_notes"] = ArrayOf(record.counter_notes, CounterNoteJson);
  return object;
}

Expected<Record> RecordFromJson(const json& object) {
  Record record;
  JsonFields fields(object, "report", ErrorClass::kUsage);
  int version = 0;
  fields.Get("schema_version", version);
  if (fields.ok() && version != kSchemaVersion) {
    fields.Complain("schema_version", "is " + std::to_string(version) + "; 1 is known here");
  }
  GetTool(fields, record);
  GetName(fields, "command", record.command);
  fields.GetArray("argv", record.argv, kMaxRows);
  GetName(fields, "started_at", record.started_at);
  GetNumber(fields, "wall_s", record.wall_s);
  GetVerdict(fields, record);
  fields.GetOr("loopback", record.loopback);
  std::optional<uint32_t> path_mtu_bytes;
  fields.Get("path_mtu_bytes", path_mtu_bytes);
  record.path_mtu_bytes = path_mtu_bytes.value_or(0);
  GetPlan(fields, record);
  GetSides(fields, record);
  if (object.is_object() && object.contains("devices")) {
    GetRows(fields, "devices", DeviceSummaryFromJson, record.devices);
  }
  if (object.is_object() && object.contains("resources")) {
    GetRows(fields, "resources", DeviceResourcesFromJson, record.resources.emplace());
  }
  if (object.is_object() && object.contains("preflight")) {
    GetRows(fields, "preflight", PreflightRowFromJson, record.preflight);
  }
  GetRows(fields, "results", ResultFromJson, record.results);
  GetRows(fields, "checks", CheckRowFromJson, record.checks);
  GetObject(fields, "modes", ModesFromJson, record.modes);
  GetRows(fields, "gates", GateRowFromJson, record.gates);
  if (object.is_object() && object.contains("catalog")) {
    GetRows(fields, "catalog", CatalogRowFromJson, record.catalog);
  }
  if (object.is_object() && object.contains("behaviours")) {
    GetRows(fields, "behaviours", BehaviourRowFromJson, record.behaviours);
  }
  GetObject(fields, "comparison", ComparisonFromJson, record.comparison);
  fields.GetArray("notices", record.notices, kMaxRows);
  for (std::string& notice : record.notices) notice = Printable(notice, kMaxTextBytes);
  GetObject(fields, "error", ErrorFromJson, record.error);
  // Documents of before these members came are read all the same.
  if (object.is_object() && object.contains("causes")) {
    GetRows(fields, "causes", CauseFromJson, record.causes);
  }
  if (object.is_object() && object.contains("counter_notes")) {
    GetRows(fields, "counter_notes", CounterNoteFromJson, record.counter_notes);
  }
  return Finish(fields, std::move(record));
}

}  // namespace verbscope
