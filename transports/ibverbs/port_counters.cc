#include "transports/ibverbs/port_counters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace verbscope {
namespace {

constexpr char kLifespan[] = "lifespan";

std::optional<uint64_t> NumberIn(const std::string& path) {
  const std::optional<std::string> text = ReadText(path);
  if (!text) return std::nullopt;
  uint64_t value = 0;
  const char* end = text->data() + text->size();
  const auto result = std::from_chars(text->data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

// In words of 4 bytes; the factor goes round with the counter, so that differences stay right.
void AddBytes(std::string_view words, std::string_view bytes,
              std::vector<DeviceCounter>& counters) {
  const auto found = std::ranges::find(counters, words, &DeviceCounter::name);
  if (found == counters.end()) return;
  found->name = bytes;
  found->value *= 4;
}

// Those that tell of trouble; the rest is traffic of every program.
constexpr std::array<std::string_view, 8> kNetdevStatistics = {
    "rx_errors",        "tx_errors",      "rx_dropped",     "tx_dropped",
    "rx_missed_errors", "rx_fifo_errors", "rx_over_errors", "rx_nohandler"};

// A port with VLANs names several netdevs in its GID table: the first is the port's own.
void AddNetdev(const SystemPaths& paths, std::string_view device, int port,
               std::vector<DeviceCounter>& counters) {
  const std::string table = paths.Port(device, port) + "/gid_attrs/ndevs/";
  std::optional<std::string> netdev;
  for (const std::string& index : ListFolder(table)) {
    netdev = ReadText(table + index);
    if (netdev && !netdev->empty()) break;
  }
  if (!netdev || netdev->empty() || netdev->find('/') != netdev->npos) return;
  const std::string folder = paths.sysfs + "/class/net/" + *netdev;
  const auto add = [&counters](std::string_view name, const std::string& path) {
    const std::optional<uint64_t> value = NumberIn(path);
    if (value) counters.push_back({"netdev." + std::string(name), *value});
  };
  for (const std::string_view name : kNetdevStatistics) {
    add(name, folder + "/statistics/" + std::string(name));
  }
  add("carrier_changes", folder + "/carrier_changes");
}

void AddFolder(const std::string& folder, std::vector<DeviceCounter>& counters) {
  for (const std::string& name : ListFolder(folder)) {
    const bool known = std::ranges::find(counters, name, &DeviceCounter::name) != counters.end();
    if (known || name == kLifespan) continue;
    const std::optional<uint64_t> value = NumberIn(folder + "/" + name);
    if (value) counters.push_back({name, *value});
  }
}

}  // namespace

std::chrono::milliseconds CounterLifespan(const SystemPaths& paths, std::string_view device,
                                          int port) {
  constexpr int kLongestMs = 100;
  const int lifespan_ms =
      ReadInt(paths.Port(device, port) + "/hw_counters/" + kLifespan).value_or(0);
  return std::chrono::milliseconds(std::clamp(lifespan_ms, 0, kLongestMs));
}

std::vector<DeviceCounter> ReadPortCounters(const SystemPaths& paths, std::string_view device,
                                            int port) {
  std::vector<DeviceCounter> counters;
  AddFolder(paths.Port(device, port) + "/hw_counters", counters);
  AddFolder(paths.Port(device, port) + "/counters", counters);
  AddFolder(paths.Ibdev(device) + "/hw_counters", counters);
  AddBytes("port_xmit_data", "port_xmit_data_bytes", counters);
  AddBytes("port_rcv_data", "port_rcv_data_bytes", counters);
  AddNetdev(paths, device, port, counters);
  return counters;
}

}  // namespace verbscope
