// Several results as a table: one line each.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/record/percentile.h"
#include "reporters/text_parts.h"

namespace verbscope {
namespace {

constexpr size_t kTimeColumns = 10;

// Results that differ in size and run only.
struct Group {
  std::vector<const Result*> rows;
  bool by_run = false;  // one size: the first column is the run
};

bool SameTable(const Result& a, const Result& b) {
  Point x = a.point;
  Point y = b.point;
  x.size_bytes = y.size_bytes = 0;
  const auto definition = [](const Result& result) {
    return result.metrics.latency ? result.metrics.latency->definition : std::string();
  };
  return x == y && a.side == b.side && a.set == b.set && definition(a) == definition(b);
}

std::vector<Group> Grouped(const std::vector<Result>& results) {
  std::vector<Group> groups;
  for (const Result& result : results) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&result](const Group& g) {
      return SameTable(*g.rows.front(), result);
    });
    if (group == groups.end()) {
      groups.push_back({{&result}, false});
    } else {
      group->rows.push_back(&result);
    }
  }
  for (Group& group : groups) {
    std::set<uint64_t> sizes;
    for (const Result* row : group.rows) sizes.insert(row->point.size_bytes);
    group.by_run = sizes.size() == 1 && group.rows.size() > 1;
  }
  return groups;
}

std::string LatencyLine(const std::string& head, const LatencyMetrics& latency) {
  std::string line = head;
  for (const std::optional<double>& ns :
       {Real(latency.min_ns), Real(AtPercent(latency, "50")), Real(AtPercent(latency, "99")),
        Real(AtPercent(latency, "99.9")), Real(latency.max_ns), latency.mean_ns}) {
    line += PadLeft(TimeColumn(ns), kTimeColumns);
  }
  return line + PadLeft(ShortCountText(latency.samples), 11);
}

std::string BandwidthLine(const std::string& head, const BandwidthMetrics& bandwidth) {
  const auto number = [](std::optional<double> value, int decimals, size_t columns) {
    return PadLeft(value ? fmt::format("{:.{}f}", *value, decimals) : "-", columns);
  };
  std::optional<double> mebibytes;
  if (bandwidth.seconds > 0 && bandwidth.bytes > 0) {
    mebibytes = static_cast<double>(bandwidth.bytes) / bandwidth.seconds / (1 << 20);
  }
  return head + number(bandwidth.gbit_per_s, 3, 12) + number(mebibytes, 1, 13) +
         number(bandwidth.msg_per_s, 0, 15) + PadLeft(CountText(bandwidth.messages), 18);
}

// The first column: size or run, and a mark for what is incomplete.
std::string Head(const Result& result, bool by_run) {
  const std::string text =
      by_run ? std::to_string(result.run) : std::to_string(result.point.size_bytes);
  return PadLeft(text, 7) + (result.complete ? " " : "*");
}

// What the waiting cost, in one line for all rows.
void DrawWakeUps(const Group& group, Canvas& canvas) {
  uint64_t events = 0;
  uint64_t empty = 0;
  uint64_t lost = 0;
  std::optional<double> least;
  std::optional<double> most;
  bool say = false;
  for (const Result* row : group.rows) {
    if (!SaysCpu(*row, canvas)) continue;
    say = true;
    const CpuMetrics& cpu = *row->metrics.cpu;
    events += cpu.events;
    empty += cpu.empty_wakeups;
    lost += cpu.lost_wakeups;
    if (!cpu.utilization) continue;
    least = std::min(least.value_or(*cpu.utilization), *cpu.utilization);
    most = std::max(most.value_or(*cpu.utilization), *cpu.utilization);
  }
  if (!say) return;
  std::string text = fmt::format("{}, {}, {} in all", Plural(events, "event"),
                                 Plural(empty, "empty wake-up"), Plural(lost, "lost wake-up"));
  if (least) text += fmt::format("; {:.1f} to {:.1f} % of one CPU", *least * 100, *most * 100);
  canvas.Wrapped(2, text, lost > 0 ? Ink::kRed : Ink::kPlain);
}

void DrawGroup(const Group& group, Canvas& canvas) {
  const Result& first = *group.rows.front();
  canvas.Blank();
  canvas.Wrapped(0, PointText(first, /*with_size=*/group.by_run, canvas), Ink::kBold);
  if (first.metrics.latency) {
    canvas.Wrapped(2, DefinitionText(*first.metrics.latency, canvas.Safe(first.point.op)));
  }
  if (first.metrics.bandwidth) canvas.Wrapped(2, BandwidthText(first));
  canvas.Blank();
  const std::string head = PadLeft(group.by_run ? "run" : "bytes", 7) + " ";
  const bool latency = first.metrics.latency.has_value();
  if (latency) {
    std::string titles = head;
    for (const char* title : {"min", "p50", "p99", "p99.9", "max", "mean"}) {
      titles += PadLeft(title, kTimeColumns);
    }
    canvas.Line(canvas.In(Ink::kDim, titles + PadLeft("samples", 11)));
  } else {
    canvas.Line(canvas.In(Ink::kDim, head + PadLeft("Gb/s", 12) + PadLeft("MiB/s", 13) +
                                         PadLeft("messages/s", 15) + PadLeft("messages", 18)));
  }
  bool incomplete = false;
  std::optional<uint32_t> run;
  for (const Result* row : group.rows) {
    if (!group.by_run && run && row->run != *run) canvas.Line("");
    run = row->run;
    incomplete = incomplete || !row->complete;
    const std::string start = Head(*row, group.by_run);
    if (latency && row->metrics.latency) {
      canvas.Line(LatencyLine(start, *row->metrics.latency));
    } else if (row->metrics.bandwidth) {
      canvas.Line(BandwidthLine(start, *row->metrics.bandwidth));
    }
  }
  DrawWakeUps(group, canvas);
  if (incomplete) {
    canvas.Wrapped(2, "* incomplete: the run broke, these are the samples until then", Ink::kRed);
  }
}

}  // namespace

void DrawTable(const std::vector<Result>& results, Canvas& canvas) {
  for (const Group& group : Grouped(results)) {
    const Metrics& metrics = group.rows.front()->metrics;
    if (metrics.latency || metrics.bandwidth) {
      DrawGroup(group, canvas);
    } else {
      for (const Result* row : group.rows) {
        if (IsWorthABlock(*row, canvas)) DrawResult(*row, canvas);
      }
    }
  }
}

}  // namespace verbscope
