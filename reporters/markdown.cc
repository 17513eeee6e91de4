#include "reporters/markdown.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/record/percentile.h"
#include "core/record/point_text.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

constexpr size_t kMaxRows = 200;
constexpr size_t kMaxTextBytes = 400;

// Text as text: what Markdown or HTML would take for their own is an entity, which every renderer
// shows as the character. A backslash would do for some of them, but not inside of tables.
std::string Safe(std::string_view text) {
  std::string safe;
  for (const char c : Printable(text, kMaxTextBytes)) {
    if (std::string_view("&<>|`@\\*_[]{}#~!\"'$").find(c) != std::string_view::npos) {
      safe += fmt::format("&#{};", static_cast<int>(c));
    } else {
      safe += c;
    }
  }
  return safe;
}

// "✅ pass": a mark is no word, and some fonts do not have it.
std::string Marked(const std::string& status) {
  std::string_view mark = "❔";
  if (status == "pass" || status == "better" || status == "same") mark = "✅";
  if (status == "fail" || status == "worse" || status == "error") mark = "❌";
  if (status == "skip") mark = "⏭️";
  if (status == "deviation") mark = "⚠️";
  return fmt::format("{} {}", mark, Safe(status));
}

std::string Time(const std::optional<double>& ns) {
  if (!ns) return "-";
  if (*ns < 1e3) return fmt::format("{:.4g} ns", *ns);
  if (*ns < 1e6) return fmt::format("{:.4g} us", *ns / 1e3);
  if (*ns < 1e9) return fmt::format("{:.4g} ms", *ns / 1e6);
  return fmt::format("{:.4g} s", *ns / 1e9);
}
std::string Time(const std::optional<int64_t>& ns) {
  return Time(ns ? std::optional(static_cast<double>(*ns)) : std::nullopt);
}

std::string Value(const std::optional<double>& value, const std::string& unit) {
  if (!value) return "-";
  if (unit == "ns") return Time(value);
  return fmt::format("{:.4g}{}{}", *value, unit.empty() ? "" : " ", Safe(unit));
}

// Rows of cells under a head. Cells are safe already.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : head_(std::move(head)) {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  // With an empty line behind it; nothing without a row.
  std::string Text() const {
    if (rows_.empty()) return "";
    std::string text = Line(head_) + "|";
    for (size_t i = 0; i < head_.size(); ++i) text += " --- |";
    text += "\n";
    for (size_t i = 0; i < std::min(rows_.size(), kMaxRows); ++i) text += Line(rows_[i]);
    if (rows_.size() > kMaxRows) {
      text += fmt::format("\n{} more rows are left out here.\n", rows_.size() - kMaxRows);
    }
    return text + "\n";
  }

 private:
  static std::string Line(const std::vector<std::string>& cells) {
    std::string line = "|";
    for (const std::string& cell : cells) line += " " + (cell.empty() ? "-" : cell) + " |";
    return line + "\n";
  }

  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

std::string Percentile(const LatencyMetrics& latency, std::string_view percent) {
  const PercentileRow row = RowOfPercent(latency, percent);
  if (!row.value_ns) return "-";
  std::string text = Time(row.value_ns);
  if (row.interval) {
    text += fmt::format(" ({} to {})", Time(std::optional(row.interval->low_ns)),
                        Time(std::optional(row.interval->high_ns)));
  }
  return text;
}

// "send 64 bytes, …, requester, run 1": the columns before the figures.
std::string Subject(const Result& result) {
  std::string text = PointText(result.point);
  text += ", " + result.side;
  if (result.set) text += ", set " + *result.set;
  if (result.run > 0) text += fmt::format(", run {}", result.run);
  return Safe(text) + (result.complete ? "" : " **(incomplete)**");
}

std::string LatencyTable(const Record& record) {
  Table table({"latency of", "samples", "p50 (95 %)", "p99 (95 %)", "p99.9 (95 %)", "maximum"});
  for (const Result& result : record.results) {
    if (!result.metrics.latency || result.metrics.latency->samples == 0) continue;
    const LatencyMetrics& latency = *result.metrics.latency;
    table.Add({Subject(result), std::to_string(latency.samples), Percentile(latency, "50"),
               Percentile(latency, "99"), Percentile(latency, "99.9"), Time(latency.max_ns)});
  }
  return table.Text();
}

std::string BandwidthTable(const Record& record) {
  Table table({"bandwidth of", "messages", "Gb/s", "messages/s", "CPU us/message"});
  for (const Result& result : record.results) {
    const auto& bandwidth = result.metrics.bandwidth;
    if (!bandwidth || bandwidth->messages == 0) continue;
    const auto& cpu = result.metrics.cpu;
    table.Add({Subject(result), std::to_string(bandwidth->messages),
               Value(bandwidth->gbit_per_s, ""), Value(bandwidth->msg_per_s, ""),
               Value(cpu ? cpu->us_per_message : std::nullopt, "")});
  }
  return table.Text();
}

// The figures of single commands.
std::string OtherTable(const Record& record) {
  Table table({"figures of", ""});
  for (const Result& result : record.results) {
    const Metrics& metrics = result.metrics;
    std::vector<std::string> figures;
    if (metrics.rnr) {
      figures.push_back(fmt::format("RNR wait {} measured, {} by the specification",
                                    Time(metrics.rnr->measured_ns),
                                    Time(std::optional(metrics.rnr->nominal_ns))));
    }
    if (metrics.scale) {
      figures.push_back(fmt::format("{} times the message rate of one thread at one CQ",
                                    Value(metrics.scale->speedup, "")));
    }
    if (metrics.overrun) {
      const OverrunMetrics& overrun = *metrics.overrun;
      figures.push_back(fmt::format("CQ of {}: {} due, {} delivered, {} flushed, {} lost",
                                    overrun.cqe, overrun.outstanding, overrun.delivered,
                                    overrun.flushed, overrun.lost));
    }
    if (!figures.empty()) {
      table.Add({Subject(result), fmt::format("{}", fmt::join(figures, "; "))});
    }
  }
  return table.Text();
}

std::string GateTable(const Record& record) {
  Table table({"assertion", "", "observed", "95 % bound", "limit", "samples (effective)", "why"});
  for (const GateRow& gate : record.gates) {
    const GateOutcome& outcome = gate.outcome;
    std::string samples = outcome.samples ? std::to_string(*outcome.samples) : "-";
    if (outcome.effective_samples) samples += fmt::format(" ({})", *outcome.effective_samples);
    if (outcome.samples_needed) samples += fmt::format(", needs {}", *outcome.samples_needed);
    table.Add({Safe(gate.expression), Marked(outcome.status), Value(outcome.observed, gate.unit),
               Value(outcome.bound, gate.unit), Value(outcome.limit, gate.unit), samples,
               Safe(outcome.why)});
  }
  return table.Text();
}

// Those that passed are a number; the others are rows.
std::string CheckTable(const Record& record) {
  if (record.checks.empty()) return "";
  Table table({"check", "", "expected", "observed", "why"});
  size_t passed = 0;
  for (const CheckRow& check : record.checks) {
    if (check.status == "pass") {
      ++passed;
      continue;
    }
    table.Add({Safe(check.name), Marked(check.status), Safe(check.expected), Safe(check.observed),
               Safe(check.why)});
  }
  return fmt::format("{} of {} checks passed.\n\n", passed, record.checks.size()) + table.Text();
}

std::string ComparisonTable(const Comparison& comparison) {
  Table table({"compared", "metric", "", "base", "new", "ratio (95 %)", "gated", "why"});
  for (const ComparisonRow& row : comparison.rows) {
    std::string ratio = Value(row.ratio, "");
    if (row.ratio_low && row.ratio_high) {
      ratio += fmt::format(" ({:.4g} to {:.4g})", *row.ratio_low, *row.ratio_high);
    }
    table.Add({Safe(PointText(row.point) + ", " + row.side), Safe(row.metric), Marked(row.verdict),
               Value(row.base, row.unit), Value(row.fresh, row.unit), ratio,
               row.gated ? "yes" : "no", Safe(row.why)});
  }
  std::string text =
      fmt::format("Base: {}. New: {}.\n\n", Safe(comparison.base_name), Safe(comparison.new_name)) +
      table.Text();
  for (const auto* lines : {&comparison.causes, &comparison.unmatched}) {
    for (size_t i = 0; i < std::min(lines->size(), kMaxRows); ++i) {
      text += "- " + Safe((*lines)[i]) + "\n";
    }
    if (!lines->empty()) text += "\n";
  }
  return text;
}

std::vector<std::string> SideRow(const SideRecord& side) {
  std::string device;
  std::string link;
  if (side.device) {
    device = fmt::format("{} ({}), {} {}", Safe(side.device->name), Safe(side.device->kind),
                         Safe(side.device->provider), Safe(side.device->firmware));
    link = fmt::format("{} port {}, MTU {}", Safe(side.device->link_layer), side.device->port,
                       side.device->active_mtu_bytes);
  }
  return {Safe(side.role), Safe(side.host), Safe(side.os + ", " + side.kernel),
          Safe(side.cpu),  device,          link};
}

std::string Environment(const Record& record) {
  Table table({"side", "host", "system", "processor", "device", "link"});
  table.Add(SideRow(record.local));
  if (record.remote) table.Add(SideRow(*record.remote));
  std::string words;
  for (const std::string& word : record.argv) words += (words.empty() ? "" : " ") + word;
  std::string text = "<details><summary>What ran where</summary>\n\n" + table.Text();
  text += fmt::format("Command line: {}\n\n", Safe(words));
  text += fmt::format("verbscope {} ({}), {}\n\n", Safe(record.tool_version),
                      Safe(record.tool_build), Safe(record.started_at));
  for (size_t i = 0; i < std::min(record.notices.size(), kMaxRows); ++i) {
    text += "- " + Safe(record.notices[i]) + "\n";
  }
  return text + "\n</details>\n\n";
}

std::string Section(const Record& record) {
  std::string text =
      fmt::format("## verbscope {}: {}\n\n", Safe(record.command), Marked(record.verdict));
  text += fmt::format("Exit code {}, {:.2f} s.", record.exit_code, record.wall_s);
  text += record.results.empty() && record.checks.empty() && !record.comparison &&
                  record.devices.empty()
              ? " Nothing was measured.\n\n"
              : "\n\n";
  if (record.error) {
    text +=
        fmt::format("**Error{}:** {}\n\n", record.error->side == Side::kPeer ? " of the peer" : "",
                    Safe(record.error->ToText()));
  }
  text += GateTable(record);
  text += CheckTable(record);
  if (record.comparison) text += ComparisonTable(*record.comparison);
  text += LatencyTable(record);
  text += BandwidthTable(record);
  text += OtherTable(record);
  return text + Environment(record);
}

}  // namespace

std::string RenderMarkdown(std::span<const Record> records) {
  std::string text;
  for (const Record& record : records) text += Section(record);
  return text;
}

}  // namespace verbscope
