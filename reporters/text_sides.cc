// The head of a report: verdict, both sides with device, port, GID and clock, and the path between.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "core/plan/operation.h"
#include "core/plan/step_commands.h"
#include "reporters/text_parts.h"

namespace verbscope {
namespace {

Ink VerdictInk(std::string_view verdict) {
  if (verdict == "pass") return Ink::kGreen;
  return verdict == "inconclusive" ? Ink::kYellow : Ink::kRed;
}

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return text;
}

// Joins what is known with commas.
std::string Joined(std::vector<std::string> parts) {
  parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string Named(std::string_view name, const std::string& value) {
  return value.empty() ? "" : fmt::format("{} {}", name, value);
}

std::string HostText(const SideRecord& side, std::string_view host, const Canvas& canvas) {
  std::string pinned;
  if (!side.pinned_cpus.empty()) {
    pinned = fmt::format("pinned to {} {}", side.pinned_cpus.size() == 1 ? "CPU" : "CPUs",
                         fmt::join(side.pinned_cpus, "+"));
  }
  const bool verbose = canvas.options().verbose;
  return Joined({std::string(host), canvas.Safe(side.role), canvas.Safe(side.cpu),
                 Named("governor", canvas.Safe(side.governor)), pinned,
                 verbose ? canvas.Safe(side.os) : "", Named("kernel", canvas.Safe(side.kernel))});
}

std::string DeviceText(const DeviceRecord& device, const Canvas& canvas) {
  const auto safe = [&canvas](const std::string& text) { return canvas.Safe(text); };
  return Joined({fmt::format("{} ({})", safe(device.name), safe(device.kind)),
                 Named("provider", safe(device.provider)), Named("firmware", safe(device.firmware)),
                 Named("link", safe(device.link.value_or(""))),
                 Named("packet check", safe(device.icrc.value_or(""))),
                 device.numa_node ? fmt::format("NUMA node {}", *device.numa_node) : ""});
}

std::string PortText(const DeviceRecord& device, const Canvas& canvas) {
  return Joined(
      {fmt::format("port {} {}", device.port, canvas.Safe(device.state)),
       canvas.Safe(device.link_layer),
       device.active_mtu_bytes == 0 ? "" : fmt::format("MTU {}", device.active_mtu_bytes)});
}

std::string GidText(const GidRecord& gid, const Canvas& canvas) {
  const std::string netdev = canvas.Safe(gid.netdev);
  return fmt::format("GID {} {} {}{}", gid.index, canvas.Safe(gid.value), canvas.Safe(gid.type),
                     netdev.empty() ? "" : " on " + netdev);
}

std::string ClockText(const ClockRecord& clock, const Canvas& canvas) {
  std::string rate;
  if (clock.hz) rate = fmt::format(" {:.3f} GHz", *clock.hz / 1e9);
  std::string drift;
  if (clock.drift_ppm && canvas.options().verbose) {
    drift = fmt::format("drift {:.2f} ppm", *clock.drift_ppm);
  }
  const auto time = [](std::string_view name, const std::optional<double>& ns) {
    return ns ? fmt::format("{} {}", name, TimeText(*ns)) : "";
  };
  return Joined({fmt::format("clock {}{}", canvas.Safe(clock.source), rate),
                 clock.invariant ? "invariant" : "not invariant",
                 time("resolution", clock.resolution_ns), time("read", clock.overhead_ns), drift});
}

void DrawDevice(const DeviceRecord& device, Canvas& canvas) {
  canvas.Labelled("", DeviceText(device, canvas));
  canvas.Labelled("", PortText(device, canvas));
  if (device.gid) canvas.Labelled("", GidText(*device.gid, canvas));
}

void DrawLocal(const SideRecord& side, Canvas& canvas) {
  const std::string host = HostText(side, canvas.Safe(side.host), canvas);
  if (host.empty() && !side.device) return;
  canvas.Labelled("local", host);
  if (side.device) DrawDevice(*side.device, canvas);
  if (side.clock) canvas.Labelled("", ClockText(*side.clock, canvas));
}

void DrawRemote(const SideRecord& side, const Record& record, Canvas& canvas) {
  // What both ends of one host share is not said twice.
  if (record.loopback && side.host == record.local.host && !canvas.options().verbose) {
    SideRecord own = side;
    own.cpu.clear();
    own.kernel.clear();
    canvas.Labelled("remote", HostText(own, "same host", canvas));
    if (side.device) DrawDevice(*side.device, canvas);
    return;
  }
  canvas.Labelled("remote", HostText(side, canvas.Safe(side.host), canvas));
  if (side.device) DrawDevice(*side.device, canvas);
  if (side.clock) canvas.Labelled("", ClockText(*side.clock, canvas));
}

// The ways of waiting that occur in the results of one side.
std::string WaitText(const Record& record, std::string_view side, const Canvas& canvas) {
  std::vector<std::string> waits;
  for (const Result& result : record.results) {
    if (result.side != side) continue;
    std::string wait = canvas.Safe(result.point.wait);
    if (result.point.spin_ns) {
      wait += ":" + DurationText(*result.point.spin_ns);
    }
    if (std::find(waits.begin(), waits.end(), wait) == waits.end()) waits.push_back(wait);
  }
  return fmt::format("{}", fmt::join(waits, " and "));
}

void DrawPath(const Record& record, Canvas& canvas) {
  const std::string requester = WaitText(record, "requester", canvas);
  const std::string responder = WaitText(record, "responder", canvas);
  std::string wait = Named("wait", requester);
  if (!responder.empty() && responder != requester) {
    wait = Joined({requester.empty() ? "" : fmt::format("requester waits {}", requester),
                   fmt::format("responder waits {}", responder)});
  }
  std::string inline_text;
  if (record.plan) {
    inline_text = "inline " + ToText(record.plan->inline_mode);
    const auto& device = record.local.device;
    if (device && device->inline_bytes) {
      inline_text += fmt::format(" (limit {} bytes)", *device->inline_bytes);
    }
  }
  const std::string path =
      Joined({record.loopback ? "loopback" : "",
              record.path_mtu_bytes == 0 ? "" : fmt::format("path MTU {}", record.path_mtu_bytes),
              wait, inline_text});
  if (!path.empty()) canvas.Labelled("path", path);
}

void DrawPlan(const Plan& plan, Canvas& canvas) {
  const auto length = [](const std::optional<uint64_t>& iterations, int64_t ns) {
    return iterations ? Plural(*iterations, "iteration") : DurationText(ns);
  };
  if (const StepCommand* steps = FindStepCommand(plan.command); steps != nullptr) {
    if (steps->timed) {
      canvas.Labelled(
          "plan",
          Joined({fmt::format("{} in each step that measures", DurationText(plan.duration_ns)),
                  Plural(plan.qps, "QP"), fmt::format("{} in flight of each", plan.tx_depth),
                  fmt::format("messages of {}", Plural(plan.sizes_bytes.front(), "byte"))}));
      return;
    }
    canvas.Labelled("plan", fmt::format("{} in each step that measures, messages of {}",
                                        length(plan.iterations, plan.duration_ns),
                                        Plural(plan.sizes_bytes.front(), "byte")));
    return;
  }
  std::vector<std::string> parts = {
      fmt::format("{} after a warm-up of {}", length(plan.iterations, plan.duration_ns),
                  length(plan.warmup_iterations, plan.warmup_ns)),
      Plural(plan.qps, "QP"), fmt::format("{} in flight", plan.tx_depth)};
  const bool known = FindOperation(plan.command) != nullptr;
  if (!known || OperationOf(plan).takes_receives) {
    parts.push_back(fmt::format("{} ahead", Plural(plan.rx_depth, "receive")));
  }
  if (plan.repeat > 1) parts.push_back(fmt::format("{} runs", plan.repeat));
  canvas.Labelled("plan", Joined(parts));
}

void DrawChanges(const Plan& plan, Canvas& canvas) {
  for (const PlanChange& change : plan.changes) {
    canvas.Labelled(
        "changed",
        fmt::format("{}: asked {}, used {} ({})", canvas.Safe(change.field),
                    canvas.Safe(change.asked), canvas.Safe(change.used), canvas.Safe(change.why)),
        Ink::kYellow);
  }
}

bool IsSoftware(const std::optional<DeviceRecord>& device) {
  return device && device->kind == "software";
}

}  // namespace

void DrawTitle(const Record& record, Canvas& canvas) {
  const std::string title =
      fmt::format("{} {}", canvas.Safe(record.tool_name), canvas.Safe(record.command));
  // Nothing proven worse is no proof that nothing is.
  const bool open = record.verdict == "pass" && record.comparison &&
                    std::ranges::any_of(record.comparison->rows, [](const ComparisonRow& row) {
                      return row.gated && row.verdict == "undecided";
                    });
  const std::string outcome = open ? "undecided" : record.verdict;
  const std::string verdict = Upper(canvas.Safe(outcome));
  const std::string time = fmt::format("  {:.2f} s", record.wall_s);
  const size_t used = Columns(title) + Columns(verdict) + Columns(time);
  const size_t gap = used < canvas.width() ? canvas.width() - used : 2;
  canvas.Line(canvas.In(Ink::kBold, title) + std::string(gap, ' ') +
              canvas.In(VerdictInk(outcome), verdict) + time);
}

void DrawSides(const Record& record, Canvas& canvas) {
  canvas.Blank();
  DrawLocal(record.local, canvas);
  if (record.remote) DrawRemote(*record.remote, record, canvas);
  DrawPath(record, canvas);
  const bool steps = record.plan && FindStepCommand(record.plan->command) != nullptr;
  if (record.plan && (steps || !record.results.empty())) DrawPlan(*record.plan, canvas);
  if (record.plan) DrawChanges(*record.plan, canvas);
  const bool software =
      IsSoftware(record.local.device) || (record.remote && IsSoftware(record.remote->device));
  if (software && (steps || !record.results.empty())) {
    canvas.Labelled("note", "software device: this result is no statement about hardware",
                    Ink::kYellow);
  }
}

}  // namespace verbscope
