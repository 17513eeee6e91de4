#include "reporters/openmetrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/record/record_json.h"
#include "reporters/result_name.h"
#include "reporters/start_time.h"

namespace verbscope {
namespace {

// A number both formats read, with a point or an exponent as OpenMetrics writes it.
std::string Real(double value) {
  std::string text = fmt::format("{}", std::isfinite(value) ? value : 0.0);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

double SecondsOf(int64_t ns) { return static_cast<double>(ns) / 1e9; }

// name="value" joined by commas.
class Labels {
 public:
  void Add(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    text_ += fmt::format("{}{}=\"", text_.empty() ? "" : ",", name);
    for (const char c : Printable(value)) {
      if (c == '\\' || c == '"') text_ += '\\';
      text_ += c;
    }
    text_ += '"';
  }
  Labels With(std::string_view name, std::string_view value) const {
    Labels more = *this;
    more.Add(name, value);
    return more;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// The families in the order of their first sample; the samples of one stand together.
class Families {
 public:
  void Sample(std::string_view name, const Labels& labels, const std::string& value) {
    Family& family = Of(name);
    family.lines += fmt::format("{}{{{}}} {}\n", name, labels.text(), value);
  }
  void Gauge(std::string_view name, const Labels& labels, const std::optional<double>& value) {
    if (value && std::isfinite(*value)) Sample(name, labels, Real(*value));
  }
  void Histogram(std::string_view name, const std::string& lines) { Of(name).lines += lines; }

  std::string Text() const;

 private:
  struct Family {
    std::string name;
    std::string lines;
  };
  Family& Of(std::string_view name) {
    const auto found = std::ranges::find(families_, name, &Family::name);
    if (found != families_.end()) return *found;
    return families_.emplace_back(Family{std::string(name), ""});
  }
  std::vector<Family> families_;
};

struct Description {
  std::string_view name;
  std::string_view help;
};

constexpr char kLatency[] = "verbscope_latency_seconds";

constexpr Description kDescriptions[] = {
    {"verbscope_run_info", "One for each run: what ran where."},
    {"verbscope_exit_code", "Exit code of the run; 0 is passed."},
    {"verbscope_start_time_seconds", "When the run began, Unix time."},
    {"verbscope_wall_seconds", "How long the command took."},
    {"verbscope_gate_status", "One for the status that the assertion has."},
    {"verbscope_gate_observed", "What an assertion looked at, in the unit of the label."},
    {"verbscope_check_status", "One for the status that the check has."},
    {"verbscope_result_complete", "0: the run broke, the result is what came until then."},
    {kLatency, "Latency samples; label definition says of what."},
    {"verbscope_latency_quantile_seconds", "Quantiles of the same samples, exact to 0.1 %."},
    {"verbscope_latency_min_seconds", "Smallest sample, exact."},
    {"verbscope_latency_max_seconds", "Largest sample, exact."},
    {"verbscope_bandwidth_bytes_per_second", "Payload moved per second."},
    {"verbscope_rate_messages_per_second", "Messages per second."},
    {"verbscope_offered_messages_per_second", "Offered load of an open loop."},
    {"verbscope_achieved_messages_per_second", "Load that was achieved."},
    {"verbscope_cpu_seconds", "CPU time of the measuring threads."},
    {"verbscope_cpu_utilization_ratio", "CPU time over measured time."},
    {"verbscope_cpu_per_message_seconds", "CPU time per message."},
    {"verbscope_lost_wakeups", "Waits that no event ended."},
    {"verbscope_counter_delta", "Change of a device counter over the run."},
};

// OpenMetrics wants the unit at the end of the name; what has none gets no line.
std::string_view UnitOf(std::string_view name) {
  for (const std::string_view unit :
       {"bytes_per_second", "messages_per_second", "seconds", "ratio"}) {
    if (name.ends_with(unit)) return unit;
  }
  return "";
}

std::string Families::Text() const {
  std::string text;
  for (const Description& description : kDescriptions) {
    const auto family = std::ranges::find(families_, description.name, &Family::name);
    if (family == families_.end()) continue;
    text += fmt::format("# HELP {} {}\n", description.name, description.help);
    text += fmt::format("# TYPE {} {}\n", description.name,
                        description.name == kLatency ? "histogram" : "gauge");
    if (const std::string_view unit = UnitOf(description.name); !unit.empty()) {
      text += fmt::format("# UNIT {} {}\n", description.name, unit);
    }
    text += family->lines;
  }
  return text + "# EOF\n";
}

// 1-2-5 steps from 10 ns to 100 s.
std::vector<int64_t> Edges() {
  std::vector<int64_t> edges;
  for (int64_t decade = 10; decade < 100'000'000'000; decade *= 10) {
    for (const int64_t step : {1, 2, 5}) edges.push_back(step * decade);
  }
  edges.push_back(100'000'000'000);
  return edges;
}

double SumSeconds(const LatencyMetrics& latency) {
  double sum_ns = 0;
  if (latency.mean_ns) {
    sum_ns = *latency.mean_ns * static_cast<double>(latency.samples);
  } else {
    for (const HistogramBucket& bucket : latency.buckets) {
      sum_ns += (static_cast<double>(bucket.from_ns) + static_cast<double>(bucket.to_ns)) / 2 *
                static_cast<double>(bucket.count);
    }
  }
  return std::max(0.0, sum_ns / 1e9);
}

std::string HistogramLines(const LatencyMetrics& latency, const Labels& labels) {
  std::string lines;
  uint64_t below = 0;
  size_t next = 0;
  for (const int64_t edge_ns : Edges()) {
    while (next < latency.buckets.size() && latency.buckets[next].to_ns <= edge_ns) {
      below += latency.buckets[next++].count;
    }
    lines += fmt::format("{}_bucket{{{}}} {}\n", kLatency,
                         labels.With("le", Real(SecondsOf(edge_ns))).text(), below);
  }
  lines += fmt::format("{}_bucket{{{}}} {}\n", kLatency, labels.With("le", "+Inf").text(),
                       latency.samples);
  lines += fmt::format("{}_sum{{{}}} {}\n", kLatency, labels.text(), Real(SumSeconds(latency)));
  lines += fmt::format("{}_count{{{}}} {}\n", kLatency, labels.text(), latency.samples);
  return lines;
}

void AddLatency(const LatencyMetrics& latency, const Labels& common, Families& families) {
  if (latency.samples == 0) return;
  const Labels labels = common.With("definition", latency.definition);
  families.Histogram(kLatency, HistogramLines(latency, labels));
  std::set<std::string> quantiles;
  for (const PercentileRow& row : latency.percentiles) {
    if (!row.value_ns) continue;
    // Rounded, so that 99.9 % is 0.999 and not one digit beside it.
    const std::string quantile =
        fmt::format("{:.10g}", std::strtod(row.percent.c_str(), nullptr) / 100);
    if (!quantiles.insert(quantile).second) continue;
    families.Gauge("verbscope_latency_quantile_seconds", labels.With("quantile", quantile),
                   SecondsOf(*row.value_ns));
  }
  if (latency.min_ns) {
    families.Gauge("verbscope_latency_min_seconds", labels, SecondsOf(*latency.min_ns));
  }
  if (latency.max_ns) {
    families.Gauge("verbscope_latency_max_seconds", labels, SecondsOf(*latency.max_ns));
  }
}

std::optional<double> Times(const std::optional<double>& value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}

void AddResult(const Result& result, const Labels& labels, Families& families) {
  const Metrics& metrics = result.metrics;
  families.Gauge("verbscope_result_complete", labels, result.complete ? 1 : 0);
  if (metrics.latency) AddLatency(*metrics.latency, labels, families);
  if (metrics.bandwidth) {
    families.Gauge("verbscope_bandwidth_bytes_per_second", labels,
                   Times(metrics.bandwidth->gbit_per_s, 1e9 / 8));
    families.Gauge("verbscope_rate_messages_per_second", labels, metrics.bandwidth->msg_per_s);
  }
  if (metrics.load) {
    families.Gauge("verbscope_offered_messages_per_second", labels, metrics.load->offered_per_s);
    families.Gauge("verbscope_achieved_messages_per_second", labels, metrics.load->achieved_per_s);
  }
  if (metrics.cpu) {
    families.Gauge("verbscope_cpu_seconds", labels, metrics.cpu->cpu_s);
    families.Gauge("verbscope_cpu_utilization_ratio", labels, metrics.cpu->utilization);
    families.Gauge("verbscope_cpu_per_message_seconds", labels,
                   Times(metrics.cpu->us_per_message, 1e-6));
    families.Gauge("verbscope_lost_wakeups", labels,
                   static_cast<double>(metrics.cpu->lost_wakeups));
  }
  std::set<std::string> names;
  for (const auto& [name, delta] : metrics.counters) {
    // Names that differ only in what is not printable would be one series.
    if (!names.insert(Printable(name)).second) continue;
    families.Gauge("verbscope_counter_delta", labels.With("counter", name),
                   static_cast<double>(delta));
  }
}

void AddStatus(std::string_view family, const std::string& status,
               std::initializer_list<std::string_view> known, const Labels& labels,
               Families& families) {
  for (const std::string_view name : known) {
    families.Gauge(family, labels.With("status", name), name == status ? 1 : 0);
  }
}

// Gates and checks carry their place in the record: expressions may be given twice.
void AddFindings(const Record& record, const Labels& common, Families& families) {
  for (size_t i = 0; i < record.gates.size(); ++i) {
    const GateRow& gate = record.gates[i];
    const Labels labels =
        common.With("gate", std::to_string(i + 1)).With("expression", gate.expression);
    AddStatus("verbscope_gate_status", gate.outcome.status, {"pass", "fail", "inconclusive"},
              labels, families);
    families.Gauge("verbscope_gate_observed", labels.With("unit", gate.unit),
                   gate.outcome.observed);
  }
  for (size_t i = 0; i < record.checks.size(); ++i) {
    const CheckRow& check = record.checks[i];
    const Labels labels = common.With("number", std::to_string(i + 1)).With("check", check.name);
    AddStatus("verbscope_check_status", check.status, {"pass", "fail", "deviation", "skip"}, labels,
              families);
  }
}

void AddRun(const Record& record, const Labels& common, Families& families) {
  Labels info = common;
  info.Add("version", record.tool_version);
  info.Add("build", record.tool_build);
  info.Add("verdict", record.verdict);
  info.Add("kernel", record.local.kernel);
  info.Add("cpu", record.local.cpu);
  if (record.local.device) {
    info.Add("device_kind", record.local.device->kind);
    info.Add("provider", record.local.device->provider);
    info.Add("firmware", record.local.device->firmware);
  }
  if (record.remote) info.Add("remote_host", record.remote->host);
  families.Gauge("verbscope_run_info", info, 1);
  families.Gauge("verbscope_exit_code", common, record.exit_code);
  families.Gauge("verbscope_start_time_seconds", common, UnixSeconds(record.started_at));
  families.Gauge("verbscope_wall_seconds", common, record.wall_s);
}

void AddRecord(const Record& record, const std::string& report, Families& families) {
  Labels common;
  common.Add("report", report);
  common.Add("command", record.command);
  common.Add("host", record.local.host);
  if (record.local.device) common.Add("device", record.local.device->name);
  AddRun(record, common, families);
  AddFindings(record, common, families);
  UniqueNames names;
  for (const Result& result : record.results) {
    Labels labels = common;
    for (const NamedText& member : PointColumns(result.point)) {
      labels.Add(member.name, member.value);
    }
    labels.Add("side", result.side);
    labels.Add("run", std::to_string(result.run));
    if (result.set) labels.Add("set", *result.set);
    // Two results of one identity: only a document of somebody else has them.
    const std::string unique = names.Take(labels.text());
    if (unique != labels.text()) labels.Add("again", unique.substr(labels.text().size() + 1));
    AddResult(result, labels, families);
  }
}

}  // namespace

std::string RenderOpenMetrics(std::span<const Record> records) {
  Families families;
  for (size_t i = 0; i < records.size(); ++i) {
    AddRecord(records[i], records.size() > 1 ? std::to_string(i + 1) : "", families);
  }
  return families.Text();
}

}  // namespace verbscope
