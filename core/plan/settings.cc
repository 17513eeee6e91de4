// Settings of one side: what --peer and --cpu take. The text of --peer reaches another host, which
// checks it again (Validate) before it uses anything of it.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/plan/input_text.h"
#include "core/plan/plan.h"

namespace verbscope {
namespace {

constexpr int kMaxCpu = 4095;
constexpr size_t kMaxDeviceNameBytes = 64;
constexpr std::string_view kPeerKeys =
    "device, ib-port, gid-index, cpu, numa, wait and comp-vector are known; the value follows '='";

struct IntRange {
  std::string_view key;
  int low;
  int high;
};
constexpr IntRange kIbPort = {"ib-port", 1, 255};
constexpr IntRange kGidIndex = {"gid-index", 0, 65535};
constexpr IntRange kNuma = {"numa", 0, 1023};
constexpr IntRange kCompVector = {"comp-vector", 0, 4095};

bool IsBareName(std::string_view name) {
  // The two names that mean a folder are refused although their letters are allowed.
  if (name.empty() || name.size() > kMaxDeviceNameBytes || name == "." || name == "..")
    return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

Status CheckRange(const std::optional<int>& value, const IntRange& range) {
  if (!value || (*value >= range.low && *value <= range.high)) return {};
  return Fail(UsageError(
      fmt::format("--peer {}: {} is outside {} to {}", range.key, *value, range.low, range.high)));
}

Expected<int> ParseInt(std::string_view text, const IntRange& range) {
  std::string_view rest = text;
  uint64_t number = 0;
  if (!TakeDigits(rest, number) || !rest.empty() || number < static_cast<uint64_t>(range.low) ||
      number > static_cast<uint64_t>(range.high)) {
    return Fail(UsageError(fmt::format("--peer {}: {} is not a number from {} to {}", range.key,
                                       Quoted(text), range.low, range.high)));
  }
  return static_cast<int>(number);
}

template <class T>
Status Store(Expected<T> parsed, std::optional<T>& field) {
  if (!parsed) return Fail(std::move(parsed.error()));
  field = std::move(*parsed);
  return {};
}

Status SetOne(std::string_view key, std::string_view value, PeerSettings& settings) {
  if (key == "device") {
    settings.device = std::string(value);
    return Validate(settings);
  }
  if (key == "ib-port") return Store(ParseInt(value, kIbPort), settings.ib_port);
  if (key == "gid-index") return Store(ParseInt(value, kGidIndex), settings.gid_index);
  if (key == "cpu") return Store(ParseCpuList(value, '+'), settings.cpus);
  if (key == "numa") return Store(ParseInt(value, kNuma), settings.numa_node);
  if (key == "wait") return Store(ParseWaitMode(value), settings.wait);
  if (key == "comp-vector") return Store(ParseInt(value, kCompVector), settings.comp_vector);
  return Fail(
      UsageError(fmt::format("--peer has no setting {}", Quoted(key)), {}, std::string(kPeerKeys)));
}

}  // namespace

Status Validate(const PeerSettings& settings) {
  if (settings.device && !IsBareName(*settings.device)) {
    return Fail(UsageError(
        fmt::format("--peer device: {} is not a bare device name", Quoted(*settings.device)), {},
        "write 1 to 64 letters, digits, '_', '.' or '-'; options of a device do not "
        "travel, give them to serve"));
  }
  for (const auto& [value, range] :
       {std::pair(&settings.ib_port, &kIbPort), std::pair(&settings.gid_index, &kGidIndex),
        std::pair(&settings.numa_node, &kNuma), std::pair(&settings.comp_vector, &kCompVector)}) {
    if (Status status = CheckRange(*value, *range); !status) return status;
  }
  if (settings.cpus) {
    if (settings.cpus->empty() || settings.cpus->size() > kMaxCpu + 1) {
      return Fail(UsageError(fmt::format("--peer cpu: {} CPUs", settings.cpus->size())));
    }
    for (const int cpu : *settings.cpus) {
      if (Status status = CheckRange(cpu, {"cpu", 0, kMaxCpu}); !status) return status;
    }
  }
  if (settings.wait && settings.wait->kind == WaitKind::kHybrid &&
      (settings.wait->spin_ns < 1 || settings.wait->spin_ns > kMaxSpinNs)) {
    return Fail(UsageError("--peer wait: the time to spin is outside 1ns to 1s"));
  }
  return {};
}

Expected<PeerSettings> ParsePeerSettings(std::string_view text) {
  PeerSettings settings;
  std::set<std::string_view> seen;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t equals = item.find('=');
    if (equals == item.npos) {
      return Fail(UsageError(fmt::format("--peer: {} is not KEY=VALUE", Quoted(item)), {},
                             std::string(kPeerKeys)));
    }
    const std::string_view key = item.substr(0, equals);
    if (!seen.insert(key).second) {
      return Fail(UsageError(fmt::format("--peer names {} twice", Quoted(key))));
    }
    if (Status status = SetOne(key, item.substr(equals + 1), settings); !status) {
      return Fail(std::move(status.error()));
    }
    if (comma == text.npos) return settings;
    text.remove_prefix(comma + 1);
  }
}

Expected<std::vector<int>> ParseCpuList(std::string_view text, char separator) {
  std::vector<int> cpus;
  std::set<int> seen;
  std::string_view rest = text;
  const auto bad = [text, separator](std::string_view why) {
    return Fail(UsageError(
        fmt::format("CPU list {} {}", Quoted(text), why), {},
        fmt::format("write numbers and ranges from 0 to {}, such as 0-3{}8", kMaxCpu, separator)));
  };
  while (true) {
    uint64_t first = 0;
    if (!TakeDigits(rest, first)) return bad("has no number where one belongs");
    uint64_t last = first;
    if (!rest.empty() && rest[0] == '-') {
      rest.remove_prefix(1);
      if (!TakeDigits(rest, last)) return bad("has a range without an end");
    }
    if (first > kMaxCpu || last > kMaxCpu) return bad("has a number that is too large");
    if (first > last) return bad("has a range that runs downwards");
    for (auto cpu = static_cast<int>(first); cpu <= static_cast<int>(last); ++cpu) {
      if (seen.insert(cpu).second) cpus.push_back(cpu);
    }
    if (rest.empty()) return cpus;
    if (rest[0] != separator) return bad("has a character that does not belong there");
    rest.remove_prefix(1);
  }
}

LocalSettings Apply(LocalSettings settings, const PeerSettings& asked) {
  if (asked.device) settings.device = *asked.device;
  if (asked.ib_port) settings.ib_port = asked.ib_port;
  if (asked.gid_index) settings.gid_index = asked.gid_index;
  if (asked.cpus) settings.cpus = *asked.cpus;
  if (asked.numa_node) settings.numa_node = *asked.numa_node;
  if (asked.wait) settings.wait = *asked.wait;
  if (asked.comp_vector) settings.comp_vector = *asked.comp_vector;
  return settings;
}

}  // namespace verbscope
