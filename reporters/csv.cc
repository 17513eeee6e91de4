#include "reporters/csv.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/record/percentile.h"
#include "core/record/record_json.h"
#include "reporters/result_name.h"

namespace verbscope {
namespace {

// One row: (column, text), in the order of the columns.
using Row = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kPercents[] = {"50", "90", "99", "99.9", "99.99"};

std::string YesNo(bool value) { return value ? "true" : "false"; }

std::string Device(const SideRecord& side) {
  return side.device ? Printable(side.device->name) : std::string();
}

void AddIdentity(size_t index, const Record& record, const Result& result, Row& row) {
  row.insert(row.end(), {{"record", std::to_string(index)},
                         {"started_at", Printable(record.started_at)},
                         {"command", Printable(record.command)},
                         {"verdict", Printable(record.verdict)},
                         {"exit_code", std::to_string(record.exit_code)},
                         {"local_host", Printable(record.local.host)},
                         {"local_device", Device(record.local)},
                         {"remote_host", record.remote ? Printable(record.remote->host) : ""},
                         {"remote_device", record.remote ? Device(*record.remote) : ""},
                         {"side", Printable(result.side)},
                         {"run", std::to_string(result.run)},
                         {"set", result.set ? Printable(*result.set) : ""},
                         {"complete", YesNo(result.complete)}});
  for (NamedText& member : PointColumns(result.point)) {
    row.emplace_back(member.name, std::move(member.value));
  }
}

void AddLatency(const LatencyMetrics* latency, Row& row) {
  const LatencyMetrics none;
  const LatencyMetrics& from = latency != nullptr ? *latency : none;
  row.insert(row.end(), {{"latency_definition", Printable(from.definition)},
                         {"latency_ended_by", Printable(from.ended_by)},
                         {"samples", latency != nullptr ? std::to_string(from.samples) : ""},
                         {"min_ns", NumberText(from.min_ns)},
                         {"mean_ns", NumberText(from.mean_ns)},
                         {"stdev_ns", NumberText(from.stdev_ns)},
                         {"max_ns", NumberText(from.max_ns)}});
  for (const std::string_view percent : kPercents) {
    const PercentileRow value = RowOfPercent(from, percent);
    const std::string name = "p" + std::string(percent);
    row.emplace_back(name + "_ns", NumberText(value.value_ns));
    row.emplace_back(name + "_low95_ns",
                     value.interval ? std::to_string(value.interval->low_ns) : "");
    row.emplace_back(name + "_high95_ns",
                     value.interval ? std::to_string(value.interval->high_ns) : "");
    row.emplace_back(name + "_effective_samples", NumberText(value.effective_samples));
  }
}

template <class Metric, class Member>
std::string Of(const std::optional<Metric>& metric, Member member) {
  if (!metric) return "";
  return NumberText(std::optional((*metric).*member));
}
template <class Metric, class Value>
std::string Of(const std::optional<Metric>& metric, std::optional<Value> Metric::*member) {
  return metric ? NumberText((*metric).*member) : std::string();
}

void AddRates(const Metrics& metrics, Row& row) {
  row.insert(row.end(), {{"bytes", Of(metrics.bandwidth, &BandwidthMetrics::bytes)},
                         {"messages", Of(metrics.bandwidth, &BandwidthMetrics::messages)},
                         {"seconds", Of(metrics.bandwidth, &BandwidthMetrics::seconds)},
                         {"gbit_per_s", Of(metrics.bandwidth, &BandwidthMetrics::gbit_per_s)},
                         {"msg_per_s", Of(metrics.bandwidth, &BandwidthMetrics::msg_per_s)},
                         {"offered_per_s", Of(metrics.load, &LoadMetrics::offered_per_s)},
                         {"achieved_per_s", Of(metrics.load, &LoadMetrics::achieved_per_s)},
                         {"late_sends", Of(metrics.load, &LoadMetrics::late_sends)}});
}

void AddCpu(const std::optional<CpuMetrics>& cpu, Row& row) {
  row.insert(row.end(), {{"cpu_s", Of(cpu, &CpuMetrics::cpu_s)},
                         {"cpu_utilization", Of(cpu, &CpuMetrics::utilization)},
                         {"cpu_us_per_message", Of(cpu, &CpuMetrics::us_per_message)},
                         {"voluntary_switches", Of(cpu, &CpuMetrics::voluntary_switches)},
                         {"involuntary_switches", Of(cpu, &CpuMetrics::involuntary_switches)},
                         {"events", Of(cpu, &CpuMetrics::events)},
                         {"empty_wakeups", Of(cpu, &CpuMetrics::empty_wakeups)},
                         {"lost_wakeups", Of(cpu, &CpuMetrics::lost_wakeups)},
                         {"completions_per_event", Of(cpu, &CpuMetrics::completions_per_event)},
                         {"process_cpu_s", Of(cpu, &CpuMetrics::process_cpu_s)},
                         {"run_delay_s", Of(cpu, &CpuMetrics::run_delay_s)}});
}

// The figures of single commands, and the counters.
void AddRest(const Metrics& metrics, Row& row) {
  const auto& overrun = metrics.overrun;
  std::string counters;
  for (const auto& [name, delta] : metrics.counters) {
    // The separators are ours.
    std::string safe = Printable(name);
    std::ranges::replace_if(
        safe, [](char c) { return c == ';' || c == '='; }, '_');
    counters += (counters.empty() ? "" : ";") + safe + "=" + std::to_string(delta);
  }
  row.insert(
      row.end(),
      {{"rnr_nominal_ns", Of(metrics.rnr, &RnrMetrics::nominal_ns)},
       {"rnr_measured_ns", Of(metrics.rnr, &RnrMetrics::measured_ns)},
       {"cost_calls", Of(metrics.cost, &CostMetrics::calls)},
       {"cost_per_call_work", Of(metrics.cost, &CostMetrics::per_call_work)},
       {"cost_ns_per_request", Of(metrics.cost, &CostMetrics::ns_per_request)},
       {"cost_enters_kernel", Of(metrics.cost, &CostMetrics::enters_kernel)},
       {"cost_syscalls_per_call", Of(metrics.cost, &CostMetrics::syscalls_per_call)},
       {"cost_overhead_ns", Of(metrics.cost, &CostMetrics::overhead_ns)},
       {"scale_threads", Of(metrics.scale, &ScaleMetrics::threads)},
       {"scale_cqe", Of(metrics.scale, &ScaleMetrics::cqe)},
       {"scale_speedup", Of(metrics.scale, &ScaleMetrics::speedup)},
       {"scale_cpu_us_per_message", Of(metrics.scale, &ScaleMetrics::cpu_us_per_message)},
       {"scale_completions_per_poll", Of(metrics.scale, &ScaleMetrics::completions_per_poll)},
       {"overrun_cqe", Of(overrun, &OverrunMetrics::cqe)},
       {"overrun_outstanding", Of(overrun, &OverrunMetrics::outstanding)},
       {"overrun_delivered", Of(overrun, &OverrunMetrics::delivered)},
       {"overrun_flushed", Of(overrun, &OverrunMetrics::flushed)},
       {"overrun_lost", Of(overrun, &OverrunMetrics::lost)},
       {"counters", counters}});
}

Row MakeRow(size_t index, const Record& record, const Result& result) {
  Row row;
  AddIdentity(index, record, result, row);
  AddLatency(result.metrics.latency ? &*result.metrics.latency : nullptr, row);
  AddRates(result.metrics, row);
  AddCpu(result.metrics.cpu, row);
  AddRest(result.metrics, row);
  return row;
}

std::string Field(const std::string& text) {
  const bool edges = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (!edges && text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

template <class Member>
void AppendLine(const Row& row, Member member, std::string& text) {
  for (size_t i = 0; i < row.size(); ++i) {
    if (i > 0) text += ',';
    text += Field(row[i].*member);
  }
  text += "\r\n";
}

}  // namespace

std::string RenderCsv(std::span<const Record> records) {
  std::string text;
  using Cell = Row::value_type;
  AppendLine(MakeRow(0, Record(), Result()), &Cell::first, text);
  for (size_t i = 0; i < records.size(); ++i) {
    for (const Result& result : records[i].results) {
      AppendLine(MakeRow(i, records[i], result), &Cell::second, text);
    }
  }
  return text;
}

}  // namespace verbscope
