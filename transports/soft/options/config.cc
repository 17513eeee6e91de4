// The sections of a config file.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transports/soft/options/draft.h"
#include "transports/soft/options/json_reader.h"
#include "transports/soft/options/parse.h"
#include "transports/soft/options/value_text.h"

namespace verbscope::soft {
namespace {

constexpr size_t kMaxRules = 1024;

std::optional<std::string> PathFromText(std::string_view text) {
  if (!IsPath(text)) return std::nullopt;
  return std::string(text);
}

// A name that is safe as a file name, as the kernel's device names are.
std::optional<std::string> NameFromText(std::string_view text) {
  constexpr size_t kMaxBytes = IBV_SYSFS_NAME_MAX - 1;
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (text.empty() || text.size() > kMaxBytes) return std::nullopt;
  if (text.find_first_not_of(kLetters) != text.npos) return std::nullopt;
  return std::string(text);
}

std::optional<std::string> NetdevFromText(std::string_view text) {
  constexpr size_t kMaxBytes = 15;  // IFNAMSIZ without the final zero
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~' && c != '/'; });
  if (text.empty() || text.size() > kMaxBytes || !plain) return std::nullopt;
  return std::string(text);
}

void ReadLimits(ObjectReader& json, SoftLimits& limits) {
  constexpr uint64_t kMaxWr = 1u << 20;
  DeviceLimits& device = limits.device;
  json.Count("max_qp", device.max_qp, 1, 65536);
  json.Count("max_cq", device.max_cq, 1, 65536);
  json.Count("max_qp_wr", device.max_qp_wr, 1, kMaxWr);
  json.Count("max_sge", device.max_sge, 1, 256);
  json.Count("max_cqe", device.max_cqe, 1, kLargestMaxCqe);
  json.Count("max_mr", device.max_mr, 1, 1u << 20);
  json.Count("max_pd", device.max_pd, 1, 65536);
  json.Count("max_srq", device.max_srq, 0, 65536);
  json.Count("max_srq_wr", limits.max_srq_wr, 1, kMaxWr);
  json.Count("max_rd_atomic_initiator", device.max_rd_atomic_initiator, 0, 255);
  json.Count("max_rd_atomic_responder", device.max_rd_atomic_responder, 0, 255);
  json.Count("comp_vectors", device.comp_vectors, 1, 64);
  json.Flag("atomics", device.atomics);
  json.Count("max_mr_bytes", device.max_mr_bytes, 1, UINT64_MAX);
  json.Count("max_message_bytes", limits.max_message_bytes, 1, uint64_t{1} << 31);
  json.Count("max_registered_bytes", limits.max_registered_bytes, 0, UINT64_MAX);
  uint32_t reported = 0;
  if (json.Count("reported_inline_bytes", reported, 0, kMaxInlineBytes)) {
    limits.reported_inline_bytes = reported;
  }
}

void ReadGid(ObjectReader& json, std::vector<GidSlot>& slots) {
  GidSlot slot;
  json.Require("index");
  json.Count("index", slot.index, 0, kGidTableEntries - 1);
  const bool unreadable = json.Errno("unreadable", slot.unreadable_errno);
  json.Text("gid", slot.gid, GidFromText,
            "allowed: 16 bytes written as an IPv6 address, or an IPv4 address");
  if (!unreadable) json.Require("gid");
  if (unreadable && json.Has("gid")) {
    json.Complain("gid", "is refused", "a slot with unreadable has no value");
  }
  const nlohmann::json* type = json.Find("type");
  if (type == nullptr) {
    if (!unreadable) json.Require("type");
  } else if (type->is_string() &&
             std::find(kGidTypes.begin(), kGidTypes.end(), json.TextOf(*type)) != kGidTypes.end()) {
    slot.type = json.TextOf(*type);
  } else {
    json.RefuseWord("type", *type, kGidTypes);
  }
  json.Text("netdev", slot.netdev, NetdevFromText,
            "allowed: the name of a network interface, 1 to 15 bytes");
  const bool taken = std::any_of(slots.begin(), slots.end(),
                                 [&](const GidSlot& other) { return other.index == slot.index; });
  if (taken) json.Complain("index", fmt::format("{} is given twice", slot.index), "");
  slots.push_back(std::move(slot));
}

void ReadPort(ObjectReader& json, Draft& draft) {
  SoftPort& port = draft.options.port;
  json.Word<ibv_port_state>("state", port.state, kPortStates);
  json.Word<LinkLayer>("link_layer", port.link_layer, kLinkLayers);
  draft.lid_given = json.Count("lid", port.lid, 0, 65535);
  draft.sm_lid_given = json.Count("sm_lid", port.sm_lid, 0, 65535);
  json.Mtu("max_mtu", port.max_mtu_bytes);
  std::vector<GidSlot> slots;
  const bool given =
      json.Array("gids", kGidTableEntries, [&slots](ObjectReader& gid) { ReadGid(gid, slots); });
  if (!given) return;
  std::sort(slots.begin(), slots.end(),
            [](const GidSlot& a, const GidSlot& b) { return a.index < b.index; });
  port.gids = std::move(slots);
}

void ReadRule(ObjectReader& json, std::vector<FaultRule>& rules) {
  FaultRule rule;
  json.Require("action");
  json.Word<FaultAction>("action", rule.action, kFaultActions);
  json.Word<FaultDirection>("direction", rule.direction, kFaultDirections);
  json.Word<FaultClass>("packets", rule.packets, kFaultClasses);
  json.Count("nth", rule.nth, 0, UINT64_MAX);
  json.Count("transmission", rule.transmission, 0, UINT64_MAX);
  json.Count("min_bytes", rule.min_bytes, 0, 4096);
  json.Count("hits", rule.hits, 0, UINT64_MAX);
  json.Delay("delay", rule.delay);
  if (rule.action == FaultAction::kDelay || rule.action == FaultAction::kStall) {
    json.Require("delay");
  } else if (json.Has("delay")) {
    json.Complain("delay", "is refused", "only the actions delay and stall have one");
  }
  rules.push_back(rule);
}

void ReadFault(ObjectReader& json, FaultOptions& fault) {
  json.Chance("drop", fault.drop);
  json.Chance("duplicate", fault.duplicate);
  json.Chance("reorder", fault.reorder);
  json.Chance("corrupt", fault.corrupt);
  json.Delay("delay", fault.delay);
  json.Count("seed", fault.seed, 0, UINT64_MAX);
  json.Array("rules", kMaxRules, [&fault](ObjectReader& rule) { ReadRule(rule, fault.rules); });
}

void ReadControlFault(ObjectReader& json, std::vector<ControlFault>& faults) {
  constexpr std::string_view kAny = "any";
  ControlFault fault;
  json.Require("call");
  if (const nlohmann::json* call = json.Find("call")) {
    std::vector<std::string_view> names = {kAny};
    names.insert(names.end(), kControlCalls.begin(), kControlCalls.end());
    const std::string_view name = call->is_string() ? json.TextOf(*call) : "";
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      json.RefuseWord("call", *call, names);
    } else if (name != kAny) {
      fault.call = name;
    }
  }
  json.Count("nth", fault.nth, 0, UINT64_MAX);
  json.Require("errno");
  json.Errno("errno", fault.errno_value);
  faults.push_back(std::move(fault));
}

// The immediate of a completion.
void ReadImmediateFault(ObjectReader& json, CompletionFault& fault) {
  json.Count("imm_xor", fault.imm_xor, 1, UINT32_MAX);
  json.Flag("imm_swap", fault.imm_swap);
  json.Flag("drop_imm_flag", fault.drop_imm_flag);
  if (fault.kind != CompletionKind::kSend) return;
  for (const std::string_view key : {"imm_xor", "imm_swap", "drop_imm_flag"}) {
    if (json.Has(key)) json.Complain(key, "is refused", "only receives have an immediate");
  }
}

void ReadByteLenFault(ObjectReader& json, CompletionFault& fault) {
  constexpr int64_t kMax = UINT32_MAX;
  uint32_t byte_len = 0;
  if (json.Count("byte_len", byte_len, 0, UINT32_MAX)) fault.byte_len = byte_len;
  const bool add = json.Integer("byte_len_add", fault.byte_len_add, -kMax, kMax);
  if (add && fault.byte_len) {
    json.Complain("byte_len_add", "is refused", "byte_len says the length already");
  }
}

void ReadCompletionFault(ObjectReader& json, std::vector<CompletionFault>& faults) {
  CompletionFault fault;
  json.Count("nth", fault.nth, 0, UINT64_MAX);
  CompletionKind kind = {};
  if (json.Word<CompletionKind>("kind", kind, kCompletionKinds)) fault.kind = kind;
  if (const nlohmann::json* status = json.Find("status")) {
    if (status->is_string()) fault.status = CompletionStatusFromText(json.TextOf(*status));
    if (!fault.status) json.RefuseWord("status", *status, kCompletionStatuses);
  }
  const bool vendor = json.Count("vendor_err", fault.vendor_err, 0, UINT32_MAX);
  if (vendor && !fault.status) json.Complain("vendor_err", "is refused", "it goes with status");
  json.Flag("garbage", fault.garbage);
  ibv_wc_opcode opcode = {};
  if (json.Word<ibv_wc_opcode>("opcode", opcode, kCompletionOpcodes)) fault.opcode = opcode;
  json.Count("wr_id_xor", fault.wr_id_xor, 1, UINT64_MAX);
  json.Count("qp_num_xor", fault.qp_num_xor, 1, 0xffffff);
  ReadByteLenFault(json, fault);
  ReadImmediateFault(json, fault);
  json.Flag("drop", fault.drop);
  json.Flag("hold_behind", fault.hold_behind);
  const CompletionFault nothing = {.nth = fault.nth, .kind = fault.kind};
  if (fault == nothing) {
    json.Complain("", "changes nothing", "it says only which completions it means");
  }
  CompletionFault dropped = nothing;
  dropped.drop = true;
  if (fault.drop && fault != dropped) {
    json.Complain("drop", "is refused", "of a completion that never comes nothing else is seen");
  }
  faults.push_back(fault);
}

void ReadDataFault(ObjectReader& json, DataFault& fault) {
  const auto count = [&json](std::string_view key, std::optional<uint64_t>& value, uint64_t min) {
    uint64_t number = 0;
    if (json.Count(key, number, min, UINT64_MAX)) value = number;
  };
  count("flip_bit", fault.flip_bit, 0);
  count("skip_last", fault.skip_last, 0);
  count("write_past", fault.write_past, 0);
  count("max_access_bytes", fault.max_access_bytes, 1);
  for (const auto& [key, nth] : {std::pair(std::string_view("flip_bit"), fault.flip_bit),
                                 std::pair(std::string_view("write_past"), fault.write_past)}) {
    if (nth && nth == fault.skip_last) {
      json.Complain(key, "is refused", "of the same message skip_last stores nothing");
    }
  }
}

void ReadEvents(ObjectReader& json, EventTiming& events) {
  json.Delay("late", events.late);
  json.Flag("coalesce", events.coalesce);
  json.Flag("between_poll_and_arm", events.between_poll_and_arm);
}

void ReadHooks(ObjectReader& json, HookOptions& hooks) {
  json.Array("control", kMaxRules,
             [&hooks](ObjectReader& fault) { ReadControlFault(fault, hooks.control); });
  json.Array("completions", kMaxRules,
             [&hooks](ObjectReader& fault) { ReadCompletionFault(fault, hooks.completions); });
  json.Object("data", [&hooks](ObjectReader& data) { ReadDataFault(data, hooks.data); });
  json.Object("events", [&hooks](ObjectReader& events) { ReadEvents(events, hooks.events); });
}

void ReadTop(ObjectReader& json, Draft& draft) {
  SoftOptions& options = draft.options;
  json.Text("name", options.name, NameFromText,
            "allowed: 1 to 63 letters, digits, underscores or hyphens");
  json.Text(
      "link", options.link,
      [](std::string_view text) { return FindChoice<LinkKind>(text, kLinks); }, kLinkAllowed);
  json.Text("addr", options.address, AddressFromText, kAddressAllowed);
  json.Word<UdpGso>("gso", options.gso, kGsoChoices);
  draft.mtu_given = json.Mtu("mtu", options.port.active_mtu_bytes);
  json.Count("inline", options.limits.max_inline_bytes, 0, kMaxInlineBytes);
  json.Word<Profile>("profile", options.profile, kProfiles);
  json.Text("pcap", options.pcap_path, PathFromText, kPathAllowed);
  json.Object("limits", [&](ObjectReader& limits) { ReadLimits(limits, options.limits); });
  json.Object("port", [&](ObjectReader& port) { ReadPort(port, draft); });
  json.Object("fault", [&](ObjectReader& fault) { ReadFault(fault, options.fault); });
  json.Object("hooks", [&](ObjectReader& hooks) { ReadHooks(hooks, options.hooks); });
  json.Words<Defect>("defects", kDefectChoices,
                     [&options](Defect defect) { options.defects.Add(defect); });
  if (options.address && options.port.gids) {
    json.Complain("addr", "is refused", "the file also has port.gids, and both make the GID table");
  }
}

Error RuleError(std::string message, std::string cause) {
  return UsageError("soft device: " + std::move(message), std::move(cause));
}

}  // namespace

Status ReadConfig(std::string_view text, std::string_view file_name, Draft& draft) {
  ConfigFile file(file_name);
  if (text.size() > kMaxConfigBytes) file.Complain("is larger than 1 MiB", "");
  if (!file.error()) {
    const nlohmann::json json = ReadJson(text, file);
    if (!file.error()) {
      ObjectReader reader(json, "", file);
      ReadTop(reader, draft);
      reader.Finish();
    }
  }
  if (file.error()) return Fail(*file.error());
  return {};
}

Expected<SoftOptions> Finish(Draft draft) {
  SoftPort& port = draft.options.port;
  if (!draft.mtu_given) {
    port.active_mtu_bytes = std::min(port.active_mtu_bytes, port.max_mtu_bytes);
  }
  if (port.active_mtu_bytes > port.max_mtu_bytes) {
    return Fail(RuleError(fmt::format("mtu={} is refused", port.active_mtu_bytes),
                          fmt::format("port.max_mtu is {}", port.max_mtu_bytes)));
  }
  port.active_mtu_given = draft.mtu_given;
  const bool infiniband = port.link_layer == LinkLayer::kInfiniBand;
  if (infiniband) {
    if (!draft.lid_given) port.lid = 1;
    if (!draft.sm_lid_given) port.sm_lid = 1;
  }
  if (infiniband && draft.options.address) {
    return Fail(RuleError("addr is refused", "port.link_layer is InfiniBand, which has no IP"));
  }
  if (draft.options.link == LinkKind::kUdp) {
    if (infiniband) {
      return Fail(
          RuleError("link=udp is refused", "port.link_layer is InfiniBand, which has no IP"));
    }
    if (port.gids) {
      return Fail(RuleError("port.gids is refused",
                            "with link=udp the GID is the address of the device, addr"));
    }
  }
  for (const GidSlot& slot : port.gids.value_or(std::vector<GidSlot>())) {
    if (slot.type.empty() || (slot.type == "IB") == infiniband) continue;
    return Fail(RuleError(
        fmt::format("the type {} of GID index {} is refused", Quoted(slot.type), slot.index),
        fmt::format("port.link_layer is {}", verbscope::Name(port.link_layer))));
  }
  return std::move(draft.options);
}

}  // namespace verbscope::soft
