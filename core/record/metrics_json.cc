// Metrics as JSON: a group that does not apply to the command is absent.
#include "core/record/json_parts.h"

namespace verbscope {
namespace {

using nlohmann::json;

OrderedJson BandwidthJson(const BandwidthMetrics& bandwidth) {
  return {
      {"bytes", bandwidth.bytes},
      {"messages", bandwidth.messages},
      {"seconds", Number(bandwidth.seconds)},
      {"gbit_per_s", OrNull(bandwidth.gbit_per_s)},
      {"msg_per_s", OrNull(bandwidth.msg_per_s)},
  };
}

Expected<BandwidthMetrics> BandwidthFromJson(const json& object) {
  BandwidthMetrics bandwidth;
  JsonFields fields(object, "bandwidth", ErrorClass::kRun);
  fields.Get("bytes", bandwidth.bytes);
  fields.Get("messages", bandwidth.messages);
  GetNumber(fields, "seconds", bandwidth.seconds);
  fields.Get("gbit_per_s", bandwidth.gbit_per_s);
  fields.Get("msg_per_s", bandwidth.msg_per_s);
  return Finish(fields, bandwidth);
}

OrderedJson LoadJson(const LoadMetrics& load) {
  return {
      {"offered_per_s", OrNull(load.offered_per_s)},
      {"achieved_per_s", OrNull(load.achieved_per_s)},
      {"late_sends", OrNull(load.late_sends)},
  };
}

Expected<LoadMetrics> LoadFromJson(const json& object) {
  LoadMetrics load;
  JsonFields fields(object, "load", ErrorClass::kRun);
  fields.Get("offered_per_s", load.offered_per_s);
  fields.Get("achieved_per_s", load.achieved_per_s);
  fields.Get("late_sends", load.late_sends);
  return Finish(fields, load);
}

OrderedJson CpuJson(const CpuMetrics& cpu) {
  return {
      {"cpu_s", Number(cpu.cpu_s)},
      {"utilization", OrNull(cpu.utilization)},
      {"us_per_message", OrNull(cpu.us_per_message)},
      {"voluntary_switches", cpu.voluntary_switches},
      {"involuntary_switches", cpu.involuntary_switches},
      {"events", cpu.events},
      {"empty_wakeups", cpu.empty_wakeups},
      {"lost_wakeups", cpu.lost_wakeups},
      {"completions_per_event", OrNull(cpu.completions_per_event)},
      {"process_cpu_s", OrNull(cpu.process_cpu_s)},
      {"run_delay_s", OrNull(cpu.run_delay_s)},
      {"core", OrNull(cpu.core)},
      {"vector_core", OrNull(cpu.vector_core)},
  };
}

Expected<CpuMetrics> CpuFromJson(const json& object) {
  CpuMetrics cpu;
  JsonFields fields(object, "cpu", ErrorClass::kRun);
  GetNumber(fields, "cpu_s", cpu.cpu_s);
  fields.Get("utilization", cpu.utilization);
  fields.Get("us_per_message", cpu.us_per_message);
  fields.Get("voluntary_switches", cpu.voluntary_switches);
  fields.Get("involuntary_switches", cpu.involuntary_switches);
  fields.Get("events", cpu.events);
  fields.Get("empty_wakeups", cpu.empty_wakeups);
  fields.Get("lost_wakeups", cpu.lost_wakeups);
  fields.Get("completions_per_event", cpu.completions_per_event);
  fields.Get("process_cpu_s", cpu.process_cpu_s);
  fields.Get("run_delay_s", cpu.run_delay_s);
  fields.Get("core", cpu.core);
  fields.Get("vector_core", cpu.vector_core);
  return Finish(fields, cpu);
}

OrderedJson AttemptJson(const RnrAttempt& attempt) {
  return {
      {"rnr_retry", attempt.rnr_retry},
      {"predicted_ns", attempt.predicted_ns},
      {"time_to_error_ns", OrNull(attempt.time_to_error_ns)},
      {"naks", OrNull(attempt.naks)},
  };
}

Expected<RnrAttempt> AttemptFromJson(const json& object) {
  RnrAttempt attempt;
  JsonFields fields(object, "attempts[]", ErrorClass::kRun);
  fields.Get("rnr_retry", attempt.rnr_retry);
  fields.Get("predicted_ns", attempt.predicted_ns);
  fields.Get("time_to_error_ns", attempt.time_to_error_ns);
  fields.Get("naks", attempt.naks);
  return Finish(fields, attempt);
}

OrderedJson RnrJson(const RnrMetrics& rnr) {
  OrderedJson attempts = OrderedJson::array();
  for (const RnrAttempt& attempt : rnr.attempts) attempts.push_back(AttemptJson(attempt));
  return {
      {"nominal_ns", rnr.nominal_ns},
      {"measured_ns", OrNull(rnr.measured_ns)},
      {"ratio", OrNull(rnr.ratio)},
      {"attempts", std::move(attempts)},
  };
}

Expected<RnrMetrics> RnrFromJson(const json& object) {
  RnrMetrics rnr;
  JsonFields fields(object, "rnr", ErrorClass::kRun);
  fields.Get("nominal_ns", rnr.nominal_ns);
  fields.Get("measured_ns", rnr.measured_ns);
  fields.Get("ratio", rnr.ratio);
  GetRows(fields, "attempts", AttemptFromJson, rnr.attempts);
  return Finish(fields, std::move(rnr));
}

OrderedJson CostJson(const CostMetrics& cost) {
  return {
      {"calls", cost.calls},
      {"per_call_work", cost.per_call_work},
      {"ns_per_request", OrNull(cost.ns_per_request)},
      {"enters_kernel", OrNull(cost.enters_kernel)},
      {"syscalls_per_call", OrNull(cost.syscalls_per_call)},
      {"syscalls_at_most", OrNull(cost.syscalls_at_most)},
      {"overhead_ns", OrNull(cost.overhead_ns)},
  };
}

Expected<CostMetrics> CostFromJson(const json& object) {
  CostMetrics cost;
  JsonFields fields(object, "cost", ErrorClass::kRun);
  fields.Get("calls", cost.calls);
  fields.Get("per_call_work", cost.per_call_work);
  fields.Get("ns_per_request", cost.ns_per_request);
  fields.Get("enters_kernel", cost.enters_kernel);
  fields.Get("syscalls_per_call", cost.syscalls_per_call);
  fields.Get("syscalls_at_most", cost.syscalls_at_most);
  fields.Get("overhead_ns", cost.overhead_ns);
  return Finish(fields, cost);
}

}  // namespace

OrderedJson CountersJson(const std::map<std::string, int64_t>& counters) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [name, change] : counters) object[ValidUtf8(name)] = change;
  return object;
}

void GetCounters(JsonFields& fields, std::map<std::string, int64_t>& counters) {
  const json* object = fields.Object("counters");
  if (object == nullptr) return;
  if (object->size() > kMaxRows) return void(fields.Complain("counters", "has too many members"));
  JsonFields members(*object, "counters", ErrorClass::kRun);
  for (const auto& [key, unused] : object->items()) {
    members.Get(key.c_str(), counters[Printable(key, kMaxTextBytes)]);
  }
  if (!members.ok()) fields.Adopt(members.TakeError());
}

OrderedJson MetricsJson(const Metrics& metrics, ResultForm form) {
  OrderedJson object = OrderedJson::object();
  if (metrics.latency) object["latency"] = LatencyJson(*metrics.latency, form);
  if (metrics.warmup) object["warmup"] = LatencyJson(*metrics.warmup, form);
  if (metrics.bandwidth) object["bandwidth"] = BandwidthJson(*metrics.bandwidth);
  if (metrics.warmup_bandwidth) {
    object["warmup_bandwidth"] = BandwidthJson(*metrics.warmup_bandwidth);
  }
  if (metrics.load) object["load"] = LoadJson(*metrics.load);
  if (metrics.cpu) object["cpu"] = CpuJson(*metrics.cpu);
  if (metrics.rnr) object["rnr"] = RnrJson(*metrics.rnr);
  if (metrics.cost) object["cost"] = CostJson(*metrics.cost);
  if (metrics.scale) object["scale"] = ScaleJson(*metrics.scale);
  if (metrics.overrun) object["overrun"] = OverrunJson(*metrics.overrun);
  object["counters"] = CountersJson(metrics.counters);
  return object;
}

Expected<Metrics> MetricsFromJson(const json& object) {
  Metrics metrics;
  JsonFields fields(object, "metrics", ErrorClass::kRun);
  GetObject(fields, "latency", LatencyFromJson, metrics.latency);
  GetObject(fields, "warmup", LatencyFromJson, metrics.warmup);
  GetObject(fields, "bandwidth", BandwidthFromJson, metrics.bandwidth);
  GetObject(fields, "warmup_bandwidth", BandwidthFromJson, metrics.warmup_bandwidth);
  GetObject(fields, "load", LoadFromJson, metrics.load);
  GetObject(fields, "cpu", CpuFromJson, metrics.cpu);
  GetObject(fields, "rnr", RnrFromJson, metrics.rnr);
  GetObject(fields, "cost", CostFromJson, metrics.cost);
  GetObject(fields, "scale", ScaleFromJson, metrics.scale);
  GetObject(fields, "overrun", OverrunFromJson, metrics.overrun);
  GetCounters(fields, metrics.counters);
  return Finish(fields, std::move(metrics));
}

}  // namespace verbscope
