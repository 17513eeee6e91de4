#include "core/session/messages.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <utility>

#include "core/gates/assertion.h"
#include "core/plan/plan_json.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

using nlohmann::json;

constexpr size_t kMaxGids = 512;

Error BadMember(const char* member, std::string_view rule) {
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message = fmt::format("the peer sent a frame whose \"{}\" is not {}", member, rule);
  error.cause = "two versions that do not understand each other, or a damaged connection";
  error.next_step = "run the same verbscope version on both hosts";
  return error;
}

std::string Text(const json& object, const char* member) {
  const auto it = object.find(member);
  if (it == object.end() || !it->is_string()) return {};
  return Printable(it->get_ref<const std::string&>(), 256);
}

std::string Hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

Expected<std::vector<std::byte>> Bytes(const json& object, const char* member, size_t most) {
  const auto it = object.find(member);
  if (it == object.end() || !it->is_string()) return Fail(BadMember(member, "hexadecimal text"));
  const std::string& text = it->get_ref<const std::string&>();
  if (text.size() % 2 != 0 || text.size() / 2 > most) {
    return Fail(BadMember(member, fmt::format("at most {} bytes in hexadecimal", most)));
  }
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    unsigned value = 0;
    const auto [end, code] = std::from_chars(&text[i], &text[i] + 2, value, 16);
    if (code != std::errc() || end != &text[i] + 2) {
      return Fail(BadMember(member, "hexadecimal text"));
    }
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

json GidToJson(const GidEntry& gid) {
  return {{"index", gid.index},
          {"value", gid.value},
          {"raw", Hex(std::as_bytes(std::span(gid.raw.raw)))},
          {"type", gid.type},
          {"netdev", gid.netdev}};
}

Expected<GidEntry> GidFromJson(const json& object, const char* member) {
  if (!object.is_object()) return Fail(BadMember(member, "a GID entry"));
  GidEntry gid;
  const Expected<uint64_t> index = Unsigned(object, "index", 0, 0xffff);
  if (!index) return Fail(index.error());
  gid.index = static_cast<int>(*index);
  const Expected<std::vector<std::byte>> raw = Bytes(object, "raw", sizeof(gid.raw.raw));
  if (!raw) return Fail(raw.error());
  if (raw->size() != sizeof(gid.raw.raw)) return Fail(BadMember("raw", "16 bytes"));
  for (size_t i = 0; i < raw->size(); ++i) gid.raw.raw[i] = std::to_integer<uint8_t>((*raw)[i]);
  gid.value = Text(object, "value");
  gid.type = Text(object, "type");
  gid.netdev = Text(object, "netdev");
  return gid;
}

json PortToJson(const PortInfo& port) {
  json gids = json::array();
  for (const GidEntry& gid : port.gids) {
    if (gids.size() < kMaxGids) gids.push_back(GidToJson(gid));
  }
  return {{"number", port.number},
          {"state", port.state},
          {"active", port.active},
          {"link_layer", std::string(Name(port.link_layer))},
          {"active_mtu_bytes", port.active_mtu_bytes},
          {"max_message_bytes", port.max_message_bytes},
          {"gbit_per_s", port.gbit_per_s},
          {"lid", port.lid},
          {"gids", std::move(gids)}};
}

Expected<PortInfo> PortFromJson(const json& json_message) {
  const auto it = json_message.find("port");
  if (it == json_message.end() || !it->is_object()) return Fail(BadMember("port", "a port"));
  const json& object = *it;
  PortInfo port;
  const Expected<uint64_t> number = Unsigned(object, "number", 1, 255);
  const Expected<uint64_t> mtu = Unsigned(object, "active_mtu_bytes", 0, 65536);
  const Expected<uint64_t> most = Unsigned(object, "max_message_bytes", 0, kMaxMessageBytes * 2);
  const Expected<uint64_t> lid = Unsigned(object, "lid", 0, 0xffff);
  for (const auto* value : {&number, &mtu, &most, &lid}) {
    if (!*value) return Fail(value->error());
  }
  port.number = static_cast<int>(*number);
  port.active_mtu_bytes = static_cast<uint32_t>(*mtu);
  port.max_message_bytes = *most;
  port.lid = static_cast<uint32_t>(*lid);
  port.state = Text(object, "state");
  port.active = port.state == "ACTIVE";
  const std::string layer = Text(object, "link_layer");
  for (const LinkLayer candidate : {LinkLayer::kInfiniBand, LinkLayer::kEthernet}) {
    if (layer == Name(candidate)) port.link_layer = candidate;
  }
  const auto gids = object.find("gids");
  if (gids == object.end() || !gids->is_array() || gids->size() > kMaxGids) {
    return Fail(BadMember("gids", fmt::format("a list of at most {} entries", kMaxGids)));
  }
  for (const json& entry : *gids) {
    Expected<GidEntry> gid = GidFromJson(entry, "gids");
    if (!gid) return Fail(std::move(gid.error()));
    port.gids.push_back(std::move(*gid));
  }
  return port;
}

const json& Member(const json& object, const char* member) {
  static const json null;
  const auto it = object.find(member);
  return it == object.end() ? null : *it;
}

}  // namespace

Expected<uint64_t> Unsigned(const json& object, const char* member, uint64_t low, uint64_t high) {
  const auto it = object.find(member);
  if (it != object.end() && it->is_number_integer()) {
    const bool negative = !it->is_number_unsigned() && it->get<int64_t>() < 0;
    const uint64_t value = it->get<uint64_t>();
    if (!negative && value >= low && value <= high) return value;
  }
  return Fail(BadMember(member, fmt::format("an integer from {} to {}", low, high)));
}

json ToJson(const PlanMessage& message) {
  return {{"type", "plan"}, {"plan", ToJson(message.plan)}, {"peer", ToJson(message.peer)}};
}

Expected<PlanMessage> PlanMessageFromJson(const json& object) {
  PlanMessage message;
  Expected<Plan> plan = PlanFromJson(Member(object, "plan"));
  if (!plan) return Fail(std::move(plan.error()));
  message.plan = std::move(*plan);
  if (object.contains("peer")) {
    Expected<PeerSettings> peer = PeerSettingsFromJson(Member(object, "peer"));
    if (!peer) return Fail(std::move(peer.error()));
    message.peer = std::move(*peer);
  }
  return message;
}

json ToJson(const PlanOkMessage& message) {
  return {{"type", "plan_ok"},
          {"plan", ToJson(message.plan)},
          {"port", PortToJson(message.port)},
          {"gid_index", message.gid_index ? json(*message.gid_index) : json()},
          {"netdev", message.netdev}};
}

Expected<PlanOkMessage> PlanOkMessageFromJson(const json& object) {
  PlanOkMessage message;
  Expected<Plan> plan = PlanFromJson(Member(object, "plan"));
  if (!plan) return Fail(std::move(plan.error()));
  message.plan = std::move(*plan);
  Expected<PortInfo> port = PortFromJson(object);
  if (!port) return Fail(std::move(port.error()));
  message.port = std::move(*port);
  if (!Member(object, "gid_index").is_null()) {
    const Expected<uint64_t> index = Unsigned(object, "gid_index", 0, 0xffff);
    if (!index) return Fail(index.error());
    message.gid_index = static_cast<int>(*index);
  }
  message.netdev = Text(object, "netdev");
  return message;
}

json ToJson(const SetupMessage& message, const std::string& type) {
  return {{"type", type},
          {"port", PortToJson(message.port)},
          {"gid", GidToJson(message.gid)},
          {"peer_gid", GidToJson(message.peer_gid)},
          {"path_mtu_bytes", message.path_mtu_bytes},
          {"wait", ToText(message.wait)},
          {"side", ToJson(message.side)}};
}

Expected<SetupMessage> SetupMessageFromJson(const json& object) {
  SetupMessage message;
  Expected<PortInfo> port = PortFromJson(object);
  if (!port) return Fail(std::move(port.error()));
  message.port = std::move(*port);
  Expected<GidEntry> gid = GidFromJson(Member(object, "gid"), "gid");
  if (!gid) return Fail(std::move(gid.error()));
  message.gid = std::move(*gid);
  Expected<GidEntry> peer_gid = GidFromJson(Member(object, "peer_gid"), "peer_gid");
  if (!peer_gid) return Fail(std::move(peer_gid.error()));
  message.peer_gid = std::move(*peer_gid);
  const Expected<uint64_t> mtu = Unsigned(object, "path_mtu_bytes", 256, 4096);
  if (!mtu) return Fail(mtu.error());
  message.path_mtu_bytes = static_cast<uint32_t>(*mtu);
  Expected<WaitMode> wait = ParseWaitMode(Text(object, "wait"));
  if (!wait) return Fail(BadMember("wait", "a way of waiting"));
  message.wait = *wait;
  Expected<SideRecord> side = SideFromJson(Member(object, "side"));
  if (!side) return Fail(std::move(side.error()));
  message.side = std::move(*side);
  return message;
}

// Addresses and keys travel as hexadecimal text: 64-bit integers do not survive every JSON reader.
json ToJson(const EndpointInfo& info) {
  json qps = json::array();
  for (const QpInfo& qp : info.qps) {
    qps.push_back({{"qpn", qp.qpn}, {"psn", qp.psn}, {"blob", Hex(qp.blob)}});
  }
  return {{"type", "endpoint"},
          {"qps", std::move(qps)},
          {"lid", info.lid},
          {"gid", GidToJson(info.gid)},
          {"mtu_bytes", info.mtu_bytes},
          {"rkey", fmt::format("{:08x}", info.rkey)},
          {"address", fmt::format("{:016x}", info.address)},
          {"buffer_bytes", info.buffer_bytes},
          {"rd_atomic", info.rd_atomic},
          {"receives", info.receives},
          {"wants_solicited", info.wants_solicited}};
}

namespace {

Expected<QpInfo> QpInfoFromJson(const json& object) {
  const Expected<uint64_t> qpn = Unsigned(object, "qpn", 0, 0xffffff);
  if (!qpn) return Fail(qpn.error());
  const Expected<uint64_t> psn = Unsigned(object, "psn", 0, 0xffffff);
  if (!psn) return Fail(psn.error());
  Expected<std::vector<std::byte>> blob = Bytes(object, "blob", Device::kMaxBlobBytes);
  if (!blob) return Fail(std::move(blob.error()));
  return QpInfo{.qpn = static_cast<uint32_t>(*qpn),
                .psn = static_cast<uint32_t>(*psn),
                .blob = std::move(*blob)};
}

}  // namespace

Expected<EndpointInfo> EndpointInfoFromJson(const json& object) {
  const Expected<uint64_t> lid = Unsigned(object, "lid", 0, 0xffff);
  const Expected<uint64_t> mtu = Unsigned(object, "mtu_bytes", 256, 4096);
  const Expected<uint64_t> buffer = Unsigned(object, "buffer_bytes", 0, UINT64_MAX);
  const Expected<uint64_t> rd_atomic = Unsigned(object, "rd_atomic", 0, 255);
  const Expected<uint64_t> receives = Unsigned(object, "receives", 0, 2 * kMaxDepth);
  for (const auto* value : {&lid, &mtu, &buffer, &rd_atomic, &receives}) {
    if (!*value) return Fail(value->error());
  }
  EndpointInfo info;
  const json& qps = Member(object, "qps");
  if (!qps.is_array() || qps.empty() || qps.size() > kMaxQps) {
    return Fail(BadMember("qps", fmt::format("a list of 1 to {} queue pairs", kMaxQps)));
  }
  for (const json& element : qps) {
    Expected<QpInfo> qp = QpInfoFromJson(element);
    if (!qp) return Fail(std::move(qp.error()));
    info.qps.push_back(std::move(*qp));
  }
  info.lid = static_cast<uint32_t>(*lid);
  info.mtu_bytes = static_cast<uint32_t>(*mtu);
  info.buffer_bytes = *buffer;
  info.rd_atomic = static_cast<uint32_t>(*rd_atomic);
  info.receives = static_cast<uint32_t>(*receives);
  Expected<GidEntry> gid = GidFromJson(Member(object, "gid"), "gid");
  if (!gid) return Fail(std::move(gid.error()));
  info.gid = std::move(*gid);
  Expected<std::vector<std::byte>> rkey = Bytes(object, "rkey", 4);
  Expected<std::vector<std::byte>> address = Bytes(object, "address", 8);
  for (const auto* value : {&rkey, &address}) {
    if (!*value) return Fail(value->error());
  }
  for (const std::byte b : *rkey) info.rkey = (info.rkey << 8) | std::to_integer<uint32_t>(b);
  for (const std::byte b : *address)
    info.address = (info.address << 8) | std::to_integer<uint64_t>(b);
  const json& solicited = Member(object, "wants_solicited");
  info.wants_solicited = solicited.is_boolean() && solicited.get<bool>();
  return info;
}

nlohmann::json VerdictMessage(const Record& record) {
  nlohmann::json gates = nlohmann::json::array();
  for (GateRow row : record.gates) {
    row.results.clear();
    gates.push_back(nlohmann::json(ToJson(row)));
  }
  return {{"type", "verdict"},
          {"verdict", record.verdict},
          {"exit_code", record.exit_code},
          {"gates", std::move(gates)}};
}

Status TakeGates(const nlohmann::json& frame, Record& record) {
  const auto gates = frame.find("gates");
  if (gates == frame.end()) return {};  // an older client
  if (!gates->is_array() || gates->size() > kMaxAssertions) {
    Error error;
    error.error_class = ErrorClass::kRun;
    error.message = "the client's verdict has a bad member gates";
    return Fail(std::move(error));
  }
  for (const nlohmann::json& row : *gates) {
    Expected<GateRow> gate = GateRowFromJson(row);
    if (!gate) return Fail(std::move(gate.error()));
    record.gates.push_back(std::move(*gate));
  }
  return {};
}

}  // namespace verbscope
