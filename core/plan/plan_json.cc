#include "core/plan/plan_json.h"

#include <utility>

#include "core/plan/check_plan.h"
#include "core/plan/cq_plan.h"
#include "core/plan/json_fields.h"
#include "core/plan/rnr_plan.h"

namespace verbscope {
namespace {

using nlohmann::json;

template <class T>
json TextsJson(const std::vector<T>& values) {
  json array = json::array();
  for (const T& value : values) array.push_back(ToText(value));
  return array;
}

json ChangeJson(const PlanChange& change) {
  return {
      {"field", change.field}, {"asked", change.asked}, {"used", change.used}, {"why", change.why}};
}

template <class T>
json OrNull(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

// A text member that a parser of plan.h reads; absent: the value stays.
template <class T, class Parser>
void GetParsed(JsonFields& fields, const char* key, Parser parse, T& value) {
  std::optional<std::string> text;
  fields.Get(key, text);
  if (!text) return;
  auto parsed = parse(*text);
  if (parsed) {
    value = std::move(*parsed);
  } else {
    fields.Adopt(std::move(parsed.error()));
  }
}

// A list of such texts; absent: the list stays.
template <class T, class Parser>
void GetParsedList(JsonFields& fields, const json& plan, const char* key, size_t most, Parser parse,
                   std::vector<T>& values) {
  if (!plan.is_object() || !plan.contains(key)) return;
  std::vector<std::string> texts;
  fields.GetArray(key, texts, most);
  if (!fields.ok()) return;
  values.clear();
  for (const std::string& text : texts) {
    auto parsed = parse(text);
    if (!parsed) return fields.Adopt(std::move(parsed.error()));
    values.push_back(std::move(*parsed));
  }
}

template <class T>
void GetNumbers(JsonFields& fields, const json& plan, const char* key, size_t most,
                std::vector<T>& values) {
  if (plan.is_object() && plan.contains(key)) fields.GetArray(key, values, most);
}

void GetChanges(JsonFields& fields, const json& plan, std::vector<PlanChange>& changes) {
  if (!plan.is_object() || !plan.contains("changes")) return;
  const json* array = fields.Array("changes", kMaxChanges);
  if (array == nullptr) return;
  for (const json& element : *array) {
    JsonFields row(element, "plan.changes[]", ErrorClass::kSetup);
    PlanChange change;
    row.Get("field", change.field);
    row.Get("asked", change.asked);
    row.Get("used", change.used);
    row.Get("why", change.why);
    if (!row.ok()) return fields.Adopt(row.TakeError());
    changes.push_back(std::move(change));
  }
}

}  // namespace

json ToJson(const Plan& plan) {
  json changes = json::array();
  for (const PlanChange& change : plan.changes) changes.push_back(ChangeJson(change));
  json object = {
      {"command", plan.command},
      {"sizes_bytes", plan.sizes_bytes},
      {"iterations", OrNull(plan.iterations)},
      {"duration_ns", plan.duration_ns},
      {"warmup_iterations", OrNull(plan.warmup_iterations)},
      {"warmup_ns", plan.warmup_ns},
      {"qps", plan.qps},
      {"tx_depth", plan.tx_depth},
      {"rx_depth", plan.rx_depth},
      {"post_list", plan.post_list},
      {"signal_every", plan.signal_every},
      {"inline", ToText(plan.inline_mode)},
      {"imm", plan.imm},
      {"bidirectional", plan.bidirectional},
      {"verify", plan.verify},
      {"atomic_op", ToText(plan.atomic_op)},
      {"rate_per_s", plan.rate_per_s},
      {"arrival", ToText(plan.arrival)},
      {"quick", plan.quick},
      {"timer_codes", plan.timer_codes},
      {"modes", TextsJson(plan.modes)},
      {"rates_per_s", plan.rates_per_s},
      {"busy_shares_percent", plan.busy_shares_percent},
      {"moderations", TextsJson(plan.moderations)},
      {"p99_limit_ns", plan.p99_limit_ns},
      {"cqs", plan.cqs},
      {"cq_depths", plan.cq_depths},
      {"mtu_bytes", plan.mtu_bytes},
      {"timeout_code", plan.timeout_code},
      {"retry_count", plan.retry_count},
      {"rnr_timer_code", plan.rnr_timer_code},
      {"rnr_retry", plan.rnr_retry},
      {"rd_atomic", plan.rd_atomic},
      {"service_level", plan.service_level},
      {"traffic_class", plan.traffic_class},
      {"flow_label", plan.flow_label},
      {"pkey_index", plan.pkey_index},
      {"hop_limit", plan.hop_limit},
      {"repeat", plan.repeat},
      {"extend_to_ns", plan.extend_to_ns},
      {"interval_ns", plan.interval_ns},
      {"deadline_ns", plan.deadline_ns},
      {"changes", std::move(changes)},
  };
  if (!plan.checks.empty()) object["checks"] = plan.checks;
  return object;
}

Expected<Plan> PlanFromJson(const json& object) {
  Plan plan;
  JsonFields fields(object, "plan", ErrorClass::kSetup);
  fields.Get("command", plan.command);
  fields.GetArray("sizes_bytes", plan.sizes_bytes, kMaxSizes);
  fields.Get("iterations", plan.iterations);
  fields.GetOr("duration_ns", plan.duration_ns);
  fields.Get("warmup_iterations", plan.warmup_iterations);
  fields.GetOr("warmup_ns", plan.warmup_ns);
  fields.GetOr("qps", plan.qps);
  fields.GetOr("tx_depth", plan.tx_depth);
  fields.GetOr("rx_depth", plan.rx_depth);
  fields.GetOr("post_list", plan.post_list);
  fields.GetOr("signal_every", plan.signal_every);
  GetParsed(fields, "inline", ParseInlineMode, plan.inline_mode);
  fields.GetOr("imm", plan.imm);
  fields.GetOr("bidirectional", plan.bidirectional);
  fields.GetOr("verify", plan.verify);
  GetParsed(fields, "atomic_op", ParseAtomicOp, plan.atomic_op);
  fields.GetOr("rate_per_s", plan.rate_per_s);
  GetParsed(fields, "arrival", ParseArrival, plan.arrival);
  fields.GetOr("quick", plan.quick);
  if (object.is_object() && object.contains("checks")) {
    fields.GetArray("checks", plan.checks, kCheckNames.size());
  }
  GetNumbers(fields, object, "timer_codes", kRnrTimerCodes, plan.timer_codes);
  GetParsedList(fields, object, "modes", kMaxModes, ParseWaitMode, plan.modes);
  GetNumbers(fields, object, "rates_per_s", kMaxLoads, plan.rates_per_s);
  GetNumbers(fields, object, "busy_shares_percent", kMaxLoads, plan.busy_shares_percent);
  GetParsedList(fields, object, "moderations", kMaxModes, ParseModeration, plan.moderations);
  fields.GetOr("p99_limit_ns", plan.p99_limit_ns);
  GetNumbers(fields, object, "cqs", kMaxCqRows, plan.cqs);
  GetNumbers(fields, object, "cq_depths", kMaxCqRows, plan.cq_depths);
  fields.GetOr("mtu_bytes", plan.mtu_bytes);
  fields.GetOr("timeout_code", plan.timeout_code);
  fields.GetOr("retry_count", plan.retry_count);
  fields.GetOr("rnr_timer_code", plan.rnr_timer_code);
  fields.GetOr("rnr_retry", plan.rnr_retry);
  fields.GetOr("rd_atomic", plan.rd_atomic);
  fields.GetOr("service_level", plan.service_level);
  fields.GetOr("traffic_class", plan.traffic_class);
  fields.GetOr("flow_label", plan.flow_label);
  fields.GetOr("pkey_index", plan.pkey_index);
  fields.GetOr("hop_limit", plan.hop_limit);
  fields.GetOr("repeat", plan.repeat);
  fields.GetOr("extend_to_ns", plan.extend_to_ns);
  fields.GetOr("interval_ns", plan.interval_ns);
  fields.GetOr("deadline_ns", plan.deadline_ns);
  GetChanges(fields, object, plan.changes);
  if (!fields.ok()) return Fail(fields.TakeError());
  if (Status status = Validate(plan); !status) {
    status.error().error_class = ErrorClass::kSetup;
    status.error().message.insert(0, "plan: ");
    return Fail(std::move(status.error()));
  }
  return plan;
}

json ToJson(const PeerSettings& settings) {
  json result = json::object();
  if (settings.device) result["device"] = *settings.device;
  if (settings.ib_port) result["ib_port"] = *settings.ib_port;
  if (settings.gid_index) result["gid_index"] = *settings.gid_index;
  if (settings.cpus) result["cpus"] = *settings.cpus;
  if (settings.numa_node) result["numa_node"] = *settings.numa_node;
  if (settings.wait) result["wait"] = ToText(*settings.wait);
  if (settings.comp_vector) result["comp_vector"] = *settings.comp_vector;
  return result;
}

Expected<PeerSettings> PeerSettingsFromJson(const json& object) {
  constexpr size_t kMaxCpus = 4096;
  PeerSettings settings;
  JsonFields fields(object, "peer", ErrorClass::kSetup);
  fields.Get("device", settings.device);
  fields.Get("ib_port", settings.ib_port);
  fields.Get("gid_index", settings.gid_index);
  if (object.is_object() && object.contains("cpus")) {
    fields.GetArray("cpus", settings.cpus.emplace(), kMaxCpus);
  }
  fields.Get("numa_node", settings.numa_node);
  GetParsed(fields, "wait", ParseWaitMode, settings.wait);
  fields.Get("comp_vector", settings.comp_vector);
  if (!fields.ok()) return Fail(fields.TakeError());
  if (Status status = Validate(settings); !status) {
    status.error().error_class = ErrorClass::kSetup;
    return Fail(std::move(status.error()));
  }
  return settings;
}

}  // namespace verbscope
