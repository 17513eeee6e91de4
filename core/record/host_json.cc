// What a host is like, as JSON: rows of its preflight, and the verbs objects that exist on it.
#include "core/record/json_parts.h"

namespace verbscope {
namespace {

using nlohmann::json;

OrderedJson ResourceRowJson(const ResourceRow& row) {
  return {
      {"kind", Name(row.kind)},
      {"id", OrNull(row.id)},
      {"owner", TextOrNull(row.owner)},
      {"pid", OrNull(row.pid)},
      {"name", TextOrNull(row.name)},
      {"context", OrNull(row.context)},
      {"pd", OrNull(row.pd)},
      {"port", OrNull(row.port)},
      {"type", TextOrNull(row.type)},
      {"state", TextOrNull(row.state)},
      {"rqpn", OrNull(row.rqpn)},
      {"rq_psn", OrNull(row.rq_psn)},
      {"sq_psn", OrNull(row.sq_psn)},
      {"cqe", OrNull(row.cqe)},
      {"users", OrNull(row.users)},
      {"poll_context", TextOrNull(row.poll_context)},
      {"length_bytes", OrNull(row.length_bytes)},
      {"rkey", OrNull(row.rkey)},
      {"lkey", OrNull(row.lkey)},
  };
}

Expected<ResourceRow> ResourceRowFromJson(const json& object) {
  ResourceRow row;
  JsonFields fields(object, "resources[].objects[]", ErrorClass::kRun);
  GetName(fields, "kind", row.kind);
  fields.Get("id", row.id);
  GetText(fields, "owner", row.owner);
  fields.Get("pid", row.pid);
  GetText(fields, "name", row.name);
  fields.Get("context", row.context);
  fields.Get("pd", row.pd);
  fields.Get("port", row.port);
  GetText(fields, "type", row.type);
  GetText(fields, "state", row.state);
  fields.Get("rqpn", row.rqpn);
  fields.Get("rq_psn", row.rq_psn);
  fields.Get("sq_psn", row.sq_psn);
  fields.Get("cqe", row.cqe);
  fields.Get("users", row.users);
  GetText(fields, "poll_context", row.poll_context);
  fields.Get("length_bytes", row.length_bytes);
  fields.Get("rkey", row.rkey);
  fields.Get("lkey", row.lkey);
  return Finish(fields, std::move(row));
}

}  // namespace

OrderedJson PreflightRowJson(const PreflightRow& row) {
  return {
      {"name", Name(row.name)},
      {"status", Name(row.status)},
      {"about", Name(row.about)},
      {"value", TextOrNull(row.value)},
      {"file", TextOrNull(row.file)},
      {"good", TextOrNull(row.good)},
      {"symptom", TextOrNull(row.symptom)},
      {"fix", TextOrNull(row.fix)},
  };
}

Expected<PreflightRow> PreflightRowFromJson(const json& object) {
  PreflightRow row;
  JsonFields fields(object, "preflight[]", ErrorClass::kRun);
  GetName(fields, "name", row.name);
  GetName(fields, "status", row.status);
  GetName(fields, "about", row.about);
  GetText(fields, "value", row.value);
  GetText(fields, "file", row.file);
  GetText(fields, "good", row.good);
  GetText(fields, "symptom", row.symptom);
  GetText(fields, "fix", row.fix);
  return Finish(fields, std::move(row));
}

OrderedJson DeviceResourcesJson(const DeviceResources& resources) {
  return {
      {"device", Name(resources.device)},
      {"objects", ArrayOf(resources.rows, ResourceRowJson)},
      {"unknown", TextsJson(resources.unknown)},
  };
}

Expected<DeviceResources> DeviceResourcesFromJson(const json& object) {
  DeviceResources resources;
  JsonFields fields(object, "resources[]", ErrorClass::kRun);
  GetName(fields, "device", resources.device);
  GetRows(fields, "objects", ResourceRowFromJson, resources.rows);
  fields.GetArray("unknown", resources.unknown, kMaxRows);
  for (std::string& kind : resources.unknown) kind = Printable(kind, kMaxTextBytes);
  return Finish(fields, std::move(resources));
}

}  // namespace verbscope
