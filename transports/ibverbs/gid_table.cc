#include "transports/ibverbs/gid_table.h"

#include <fmt/core.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "transports/common/port_text.h"

namespace verbscope {
namespace {

std::string SysfsNetdev(const GidTableRequest& request, const SystemPaths& paths, int index) {
  const std::string port = paths.Port(request.device, request.port);
  return ReadText(fmt::format("{}/gid_attrs/ndevs/{}", port, index)).value_or("");
}

}  // namespace

std::string GidTypeFromSysfs(std::string_view text, LinkLayer link_layer) {
  if (text == "IB/RoCE v1") return link_layer == LinkLayer::kEthernet ? "RoCE v1" : "IB";
  return std::string(text);
}

std::string GidTypeFromVerbs(uint32_t type, LinkLayer link_layer) {
  switch (type) {
    case IBV_GID_TYPE_IB:
      // Old kernels have one number for both.
      return link_layer == LinkLayer::kEthernet ? "RoCE v1" : "IB";
    case IBV_GID_TYPE_ROCE_V1:
      return "RoCE v1";
    case IBV_GID_TYPE_ROCE_V2:
      return "RoCE v2";
    default:
      return fmt::format("type {}", type);
  }
}

std::string NetdevOfGid(const std::string& name, uint32_t ifindex) {
  if (ifindex == 0) return name;
  if (!name.empty()) return if_nametoindex(name.c_str()) == ifindex ? name : "";
  std::array<char, IF_NAMESIZE> own_name = {};
  return if_indextoname(ifindex, own_name.data()) != nullptr ? std::string(own_name.data()) : "";
}

std::vector<GidEntry> ReadGidTableFromSysfs(const GidTableRequest& request,
                                            const SystemPaths& paths) {
  const std::string port = paths.Port(request.device, request.port);
  std::vector<GidEntry> entries;
  for (int index = 0; index < request.port_entries; ++index) {
    const std::optional<std::string> text = ReadText(fmt::format("{}/gids/{}", port, index));
    const std::optional<ibv_gid> gid = ParseGid(text.value_or(""));
    if (!gid || IsZero(*gid)) continue;
    GidEntry entry;
    entry.index = index;
    entry.raw = *gid;
    entry.value = FormatGid(*gid);
    entry.type =
        GidTypeFromSysfs(ReadText(fmt::format("{}/gid_attrs/types/{}", port, index)).value_or(""),
                         request.link_layer);
    entry.netdev = NetdevOfGid(SysfsNetdev(request, paths, index), /*ifindex=*/0);
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<GidEntry> ReadGidTable(VerbsApi& verbs, ibv_context* context,
                                   const GidTableRequest& request, const SystemPaths& paths) {
  std::vector<ibv_gid_entry> table(request.device_entries);
  size_t count = 0;
  if (table.empty() || verbs.QueryGidTable(context, table, &count) != 0) {
    return ReadGidTableFromSysfs(request, paths);
  }
  std::vector<GidEntry> entries;
  for (const ibv_gid_entry& row : std::span(table).first(std::min(count, table.size()))) {
    if (row.port_num != static_cast<uint32_t>(request.port) || IsZero(row.gid)) continue;
    GidEntry entry;
    entry.index = static_cast<int>(row.gid_index);
    entry.raw = row.gid;
    entry.value = FormatGid(row.gid);
    entry.type = GidTypeFromVerbs(row.gid_type, request.link_layer);
    entry.netdev = NetdevOfGid(SysfsNetdev(request, paths, entry.index), row.ndev_ifindex);
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const GidEntry& a, const GidEntry& b) { return a.index < b.index; });
  return entries;
}

}  // namespace verbscope
