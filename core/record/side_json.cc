// SideRecord as JSON: who measured, on which host, device and clock.
#include "core/record/json_parts.h"

namespace verbscope {
namespace {

using nlohmann::json;

OrderedJson GidJson(const GidRecord& gid) {
  return {
      {"index", gid.index},
      {"value", Name(gid.value)},
      {"type", TextOrNull(gid.type)},
      {"netdev", TextOrNull(gid.netdev)},
  };
}

Expected<GidRecord> GidFromJson(const json& object) {
  GidRecord gid;
  JsonFields fields(object, "gid", ErrorClass::kRun);
  fields.Get("index", gid.index);
  GetName(fields, "value", gid.value);
  GetText(fields, "type", gid.type);
  GetText(fields, "netdev", gid.netdev);
  return Finish(fields, std::move(gid));
}

OrderedJson OptionalText(const std::optional<std::string>& text) {
  return text ? TextOrNull(*text) : OrderedJson(nullptr);
}

void GetOptionalText(JsonFields& fields, const char* key, std::optional<std::string>& text) {
  fields.Get(key, text);
  if (text) text = Printable(*text, kMaxTextBytes);
}

OrderedJson DeviceJson(const DeviceRecord& device) {
  return {
      {"name", Name(device.name)},
      {"kind", Name(device.kind)},
      {"provider", TextOrNull(device.provider)},
      {"firmware", TextOrNull(device.firmware)},
      {"link_layer", TextOrNull(device.link_layer)},
      {"port", device.port},
      {"state", TextOrNull(device.state)},
      {"active_mtu_bytes", device.active_mtu_bytes},
      {"gid", device.gid ? GidJson(*device.gid) : OrderedJson(nullptr)},
      {"numa_node", OrNull(device.numa_node)},
      {"link", OptionalText(device.link)},
      {"icrc", OptionalText(device.icrc)},
      {"inline_bytes", OrNull(device.inline_bytes)},
  };
}

Expected<DeviceRecord> DeviceFromJson(const json& object) {
  DeviceRecord device;
  JsonFields fields(object, "device", ErrorClass::kRun);
  GetName(fields, "name", device.name);
  GetName(fields, "kind", device.kind);
  GetText(fields, "provider", device.provider);
  GetText(fields, "firmware", device.firmware);
  GetText(fields, "link_layer", device.link_layer);
  fields.Get("port", device.port);
  GetText(fields, "state", device.state);
  fields.Get("active_mtu_bytes", device.active_mtu_bytes);
  GetObject(fields, "gid", GidFromJson, device.gid);
  fields.Get("numa_node", device.numa_node);
  GetOptionalText(fields, "link", device.link);
  GetOptionalText(fields, "icrc", device.icrc);
  fields.Get("inline_bytes", device.inline_bytes);
  return Finish(fields, std::move(device));
}

OrderedJson ClockJson(const ClockRecord& clock) {
  return {
      {"source", Name(clock.source)},
      {"invariant", clock.invariant},
      {"hz", OrNull(clock.hz)},
      {"drift_ppm", OrNull(clock.drift_ppm)},
      {"resolution_ns", OrNull(clock.resolution_ns)},
      {"overhead_ns", OrNull(clock.overhead_ns)},
  };
}

Expected<ClockRecord> ClockFromJson(const json& object) {
  ClockRecord clock;
  JsonFields fields(object, "clock", ErrorClass::kRun);
  GetName(fields, "source", clock.source);
  fields.Get("invariant", clock.invariant);
  fields.Get("hz", clock.hz);
  fields.Get("drift_ppm", clock.drift_ppm);
  fields.Get("resolution_ns", clock.resolution_ns);
  fields.Get("overhead_ns", clock.overhead_ns);
  return Finish(fields, std::move(clock));
}

OrderedJson FloorJson(const JitterFloor& floor) {
  return {
      {"seconds", Number(floor.seconds)},
      {"max_gap_ns", floor.max_gap_ns},
      {"gaps_over_1us_per_s", Number(floor.gaps_over_1us_per_s)},
      {"gaps_over_10us_per_s", Number(floor.gaps_over_10us_per_s)},
      {"gaps_over_100us_per_s", Number(floor.gaps_over_100us_per_s)},
      {"lost_share", Number(floor.lost_share)},
  };
}

Expected<JitterFloor> FloorFromJson(const json& object) {
  JitterFloor floor;
  JsonFields fields(object, "jitter_floor", ErrorClass::kRun);
  GetNumber(fields, "seconds", floor.seconds);
  fields.Get("max_gap_ns", floor.max_gap_ns);
  GetNumber(fields, "gaps_over_1us_per_s", floor.gaps_over_1us_per_s);
  GetNumber(fields, "gaps_over_10us_per_s", floor.gaps_over_10us_per_s);
  GetNumber(fields, "gaps_over_100us_per_s", floor.gaps_over_100us_per_s);
  GetNumber(fields, "lost_share", floor.lost_share);
  return Finish(fields, floor);
}

}  // namespace

OrderedJson ToJson(const SideRecord& side) {
  OrderedJson object = {
      {"role", Name(side.role)},
      {"host", TextOrNull(side.host)},
      {"os", TextOrNull(side.os)},
      {"kernel", TextOrNull(side.kernel)},
      {"cpu", TextOrNull(side.cpu)},
      {"governor", TextOrNull(side.governor)},
      {"pinned_cpus", side.pinned_cpus},
      {"device", side.device ? DeviceJson(*side.device) : OrderedJson(nullptr)},
      {"clock", side.clock ? ClockJson(*side.clock) : OrderedJson(nullptr)},
      {"jitter_floor", side.jitter_floor ? FloorJson(*side.jitter_floor) : OrderedJson(nullptr)},
  };
  if (!side.counters.empty()) object["counters"] = CountersJson(side.counters);
  return object;
}

Expected<SideRecord> SideFromJson(const json& object) {
  constexpr size_t kMaxCpus = 4096;
  SideRecord side;
  JsonFields fields(object, "side", ErrorClass::kRun);
  GetName(fields, "role", side.role);
  GetText(fields, "host", side.host);
  GetText(fields, "os", side.os);
  GetText(fields, "kernel", side.kernel);
  GetText(fields, "cpu", side.cpu);
  if (object.contains("governor")) GetText(fields, "governor", side.governor);
  fields.GetArray("pinned_cpus", side.pinned_cpus, kMaxCpus);
  GetObject(fields, "device", DeviceFromJson, side.device);
  GetObject(fields, "clock", ClockFromJson, side.clock);
  GetObject(fields, "jitter_floor", FloorFromJson, side.jitter_floor);
  if (object.is_object() && object.contains("counters")) GetCounters(fields, side.counters);
  return Finish(fields, std::move(side));
}

}  // namespace verbscope
