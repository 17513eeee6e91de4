// What describes a port and its addresses, between the codes of the verbs and text or bytes.
//
// Pure functions; any thread.
#ifndef VERBSCOPE_TRANSPORTS_COMMON_PORT_TEXT_H_
#define VERBSCOPE_TRANSPORTS_COMMON_PORT_TEXT_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transports/device.h"

namespace verbscope {

// "ACTIVE", "DOWN", "INIT", "ARMED", "NOP", "ACTIVE_DEFER"; "state N" for another.
std::string PortStateName(ibv_port_state state);

// Bytes of an MTU code, 0 for a code that is none.
uint32_t MtuBytes(ibv_mtu mtu);

LinkLayer LinkLayerOf(uint8_t link_layer);

// 8 groups of 4 hex digits with colons, as sysfs prints it, and back; nullopt for any other text.
std::string FormatGid(const ibv_gid& gid);
std::optional<ibv_gid> ParseGid(std::string_view text);

bool IsZero(const ibv_gid& gid);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_COMMON_PORT_TEXT_H_
