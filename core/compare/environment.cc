#include "core/compare/environment.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/plan/plan.h"
#include "core/statistics/rank_sum.h"

namespace verbscope {
namespace {

template <class T>
std::string OrNone(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "none";
}

void AddDevice(const std::string& side, const DeviceRecord& device, FieldTexts& fields) {
  const std::string at = side + ".device.";
  fields.emplace_back(at + "name", device.name);
  fields.emplace_back(at + "kind", device.kind);
  fields.emplace_back(at + "provider", device.provider);
  fields.emplace_back(at + "firmware", device.firmware);
  fields.emplace_back(at + "port", std::to_string(device.port));
  fields.emplace_back(at + "link_layer", device.link_layer);
  fields.emplace_back(at + "active_mtu_bytes", std::to_string(device.active_mtu_bytes));
  fields.emplace_back(at + "gid.type", device.gid ? device.gid->type : "none");
  fields.emplace_back(at + "numa_node", OrNone(device.numa_node));
  fields.emplace_back(at + "link", OrNone(device.link));
  fields.emplace_back(at + "icrc", OrNone(device.icrc));
  fields.emplace_back(at + "inline_bytes", OrNone(device.inline_bytes));
}

void AddSide(const std::string& name, const SideRecord& side, FieldTexts& fields) {
  fields.emplace_back(name + ".host", side.host);
  fields.emplace_back(name + ".os", side.os);
  fields.emplace_back(name + ".kernel", side.kernel);
  fields.emplace_back(name + ".cpu", side.cpu);
  fields.emplace_back(name + ".governor", side.governor);
  fields.emplace_back(
      name + ".pinned_cpus",
      side.pinned_cpus.empty() ? "none" : fmt::format("{}", fmt::join(side.pinned_cpus, "+")));
  if (side.device) AddDevice(name, *side.device, fields);
  if (side.clock) fields.emplace_back(name + ".clock.source", side.clock->source);
}

// The median of the longest gaps of the reports that watched for them.
std::optional<double> FloorOf(std::span<const Record> records, bool local) {
  std::vector<double> gaps_ns;
  for (const Record& record : records) {
    const SideRecord* side = local ? &record.local : record.remote ? &*record.remote : nullptr;
    if (side == nullptr || !side->jitter_floor) continue;
    gaps_ns.push_back(static_cast<double>(side->jitter_floor->max_gap_ns));
  }
  if (gaps_ns.empty()) return std::nullopt;
  return MedianOf(std::move(gaps_ns));
}

}  // namespace

FieldTexts EnvironmentOf(const Record& record) {
  FieldTexts fields;
  fields.emplace_back("tool.version", record.tool_version);
  fields.emplace_back("tool.build", record.tool_build);
  fields.emplace_back("loopback", record.loopback ? "yes" : "no");
  fields.emplace_back("path_mtu_bytes", std::to_string(record.path_mtu_bytes));
  AddSide("local", record.local, fields);
  if (record.remote) AddSide("remote", *record.remote, fields);
  return fields;
}

std::vector<SetDifference> JitterDifferences(std::span<const Record> base,
                                             std::span<const Record> fresh) {
  constexpr double kFarApart = 3;
  constexpr double kShortNs = 1000;  // below that a gap is no interruption
  std::vector<SetDifference> differences;
  for (const bool local : {true, false}) {
    const std::optional<double> from = FloorOf(base, local);
    const std::optional<double> to = FloorOf(fresh, local);
    if (!from || !to) continue;
    const double low = std::max(std::min(*from, *to), kShortNs);
    if (std::max(*from, *to) < kFarApart * low) continue;
    differences.push_back(
        {local ? "local.jitter_floor.max_gap_ns" : "remote.jitter_floor.max_gap_ns",
         fmt::format("{:.0f}", *from), fmt::format("{:.0f}", *to)});
  }
  return differences;
}

}  // namespace verbscope
