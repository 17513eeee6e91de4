// DeviceSummary as JSON: one row of the `devices` command.
#include <array>

#include "core/record/json_parts.h"

namespace verbscope {
namespace {

using nlohmann::json;

OrderedJson LimitsJson(const DeviceLimits& limits) {
  return {
      {"max_qp_wr", limits.max_qp_wr},
      {"max_sge", limits.max_sge},
      {"max_cqe", limits.max_cqe},
      {"max_qp", limits.max_qp},
      {"max_cq", limits.max_cq},
      {"max_mr", limits.max_mr},
      {"max_pd", limits.max_pd},
      {"max_srq", limits.max_srq},
      {"max_mr_bytes", limits.max_mr_bytes},
      {"max_rd_atomic_initiator", limits.max_rd_atomic_initiator},
      {"max_rd_atomic_responder", limits.max_rd_atomic_responder},
      {"comp_vectors", limits.comp_vectors},
      {"atomics", limits.atomics},
  };
}

Expected<DeviceLimits> LimitsFromJson(const json& object) {
  DeviceLimits limits;
  JsonFields fields(object, "limits", ErrorClass::kRun);
  fields.Get("max_qp_wr", limits.max_qp_wr);
  fields.Get("max_sge", limits.max_sge);
  fields.Get("max_cqe", limits.max_cqe);
  fields.Get("max_qp", limits.max_qp);
  fields.Get("max_cq", limits.max_cq);
  fields.Get("max_mr", limits.max_mr);
  fields.Get("max_pd", limits.max_pd);
  fields.Get("max_srq", limits.max_srq);
  fields.Get("max_mr_bytes", limits.max_mr_bytes);
  fields.Get("max_rd_atomic_initiator", limits.max_rd_atomic_initiator);
  fields.Get("max_rd_atomic_responder", limits.max_rd_atomic_responder);
  fields.Get("comp_vectors", limits.comp_vectors);
  fields.Get("atomics", limits.atomics);
  return Finish(fields, limits);
}

OrderedJson GidJson(const GidEntry& gid) {
  return {
      {"index", gid.index},
      {"value", Name(gid.value)},
      {"type", TextOrNull(gid.type)},
      {"netdev", TextOrNull(gid.netdev)},
  };
}

Expected<GidEntry> GidFromJson(const json& object) {
  GidEntry gid;
  JsonFields fields(object, "gids[]", ErrorClass::kRun);
  fields.Get("index", gid.index);
  GetName(fields, "value", gid.value);
  GetText(fields, "type", gid.type);
  GetText(fields, "netdev", gid.netdev);
  return Finish(fields, std::move(gid));
}

OrderedJson PortJson(const PortInfo& port) {
  OrderedJson gids = OrderedJson::array();
  for (const GidEntry& gid : port.gids) gids.push_back(GidJson(gid));
  return {
      {"number", port.number},
      {"state", Name(port.state)},
      {"link_layer", Name(port.link_layer)},
      {"active_mtu_bytes", port.active_mtu_bytes},
      {"max_mtu_bytes", port.max_mtu_bytes},
      {"max_message_bytes", port.max_message_bytes},
      {"gbit_per_s", port.gbit_per_s > 0 ? Number(port.gbit_per_s) : OrderedJson(nullptr)},
      {"lid", port.lid},
      {"sm_lid", port.sm_lid},
      {"gids", std::move(gids)},
  };
}

Expected<PortInfo> PortFromJson(const json& object) {
  PortInfo port;
  JsonFields fields(object, "ports[]", ErrorClass::kRun);
  fields.Get("number", port.number);
  GetName(fields, "state", port.state);
  port.active = port.state == "ACTIVE";
  std::string link_layer;
  fields.Get("link_layer", link_layer);
  for (const LinkLayer layer : {LinkLayer::kInfiniBand, LinkLayer::kEthernet}) {
    if (link_layer == Name(layer)) port.link_layer = layer;
  }
  fields.Get("active_mtu_bytes", port.active_mtu_bytes);
  fields.Get("max_mtu_bytes", port.max_mtu_bytes);
  fields.Get("max_message_bytes", port.max_message_bytes);
  GetNumber(fields, "gbit_per_s", port.gbit_per_s);
  fields.Get("lid", port.lid);
  fields.Get("sm_lid", port.sm_lid);
  GetRows(fields, "gids", GidFromJson, port.gids);
  return Finish(fields, std::move(port));
}

Expected<DeviceInfo> InfoFromJson(const json& object, const std::string& name) {
  DeviceInfo info;
  info.name = name;
  JsonFields fields(object, "devices[]", ErrorClass::kRun);
  std::string kind;
  fields.Get("kind", kind);
  info.kind = kind == Name(DeviceKind::kSoftware) ? DeviceKind::kSoftware : DeviceKind::kHardware;
  GetText(fields, "provider", info.provider);
  GetText(fields, "firmware", info.firmware);
  std::optional<int> numa_node;
  fields.Get("numa_node", numa_node);
  info.numa_node = numa_node.value_or(-1);
  fields.Get("vendor_id", info.vendor_id);
  fields.Get("vendor_part_id", info.vendor_part_id);
  std::optional<DeviceLimits> limits;
  GetObject(fields, "limits", LimitsFromJson, limits);
  if (limits) info.limits = *limits;
  GetRows(fields, "ports", PortFromJson, info.ports);
  return Finish(fields, std::move(info));
}

}  // namespace

OrderedJson DeviceSummaryJson(const DeviceSummary& summary) {
  OrderedJson ports = OrderedJson::array();
  OrderedJson object = {{"name", Name(summary.name)}};
  if (summary.info) {
    const DeviceInfo& info = *summary.info;
    for (const PortInfo& port : info.ports) ports.push_back(PortJson(port));
    object["kind"] = Name(info.kind);
    object["provider"] = TextOrNull(info.provider);
    object["firmware"] = TextOrNull(info.firmware);
    object["numa_node"] = info.numa_node < 0 ? OrderedJson(nullptr) : OrderedJson(info.numa_node);
    object["vendor_id"] = info.vendor_id;
    object["vendor_part_id"] = info.vendor_part_id;
    object["limits"] = LimitsJson(info.limits);
  } else {
    for (const char* key :
         {"kind", "provider", "firmware", "numa_node", "vendor_id", "vendor_part_id", "limits"}) {
      object[key] = nullptr;
    }
  }
  object["ports"] = std::move(ports);
  object["error"] = summary.error ? ToJson(*summary.error) : OrderedJson(nullptr);
  return object;
}

Expected<DeviceSummary> DeviceSummaryFromJson(const json& object) {
  DeviceSummary summary;
  JsonFields fields(object, "devices[]", ErrorClass::kRun);
  GetName(fields, "name", summary.name);
  GetObject(fields, "error", ErrorFromJson, summary.error);
  if (!fields.ok()) return Fail(fields.TakeError());
  if (summary.error) return summary;
  auto info = InfoFromJson(object, summary.name);
  if (!info) return Fail(std::move(info.error()));
  summary.info = std::move(*info);
  return summary;
}

}  // namespace verbscope
