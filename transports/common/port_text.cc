#include "transports/common/port_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>

namespace verbscope {

std::string PortStateName(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_NOP:
      return "NOP";
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "ACTIVE_DEFER";
  }
  return fmt::format("state {}", static_cast<int>(state));
}

uint32_t MtuBytes(ibv_mtu mtu) {
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

LinkLayer LinkLayerOf(uint8_t link_layer) {
  if (link_layer == IBV_LINK_LAYER_INFINIBAND) return LinkLayer::kInfiniBand;
  if (link_layer == IBV_LINK_LAYER_ETHERNET) return LinkLayer::kEthernet;
  return LinkLayer::kUnspecified;
}

std::string FormatGid(const ibv_gid& gid) {
  std::string text;
  for (size_t i = 0; i < sizeof(gid.raw); i += 2) {
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid.raw[i], gid.raw[i + 1]);
  }
  return text;
}

std::optional<ibv_gid> ParseGid(std::string_view text) {
  constexpr size_t kGroup = 5;  // "fe80:"
  if (text.size() != 8 * kGroup - 1) return std::nullopt;
  ibv_gid gid = {};
  for (size_t i = 0; i < 8; ++i) {
    const std::string_view group = text.substr(i * kGroup, 4);
    if (i < 7 && text[i * kGroup + 4] != ':') return std::nullopt;
    uint16_t value = 0;
    const char* end = group.data() + group.size();
    const auto result = std::from_chars(group.data(), end, value, 16);
    if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
    gid.raw[2 * i] = static_cast<uint8_t>(value >> 8);
    gid.raw[2 * i + 1] = static_cast<uint8_t>(value & 0xff);
  }
  return gid;
}

bool IsZero(const ibv_gid& gid) {
  return std::all_of(std::begin(gid.raw), std::end(gid.raw),
                     [](uint8_t byte) { return byte == 0; });
}

}  // namespace verbscope
