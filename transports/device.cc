#include "transports/device.h"

#include <array>

namespace verbscope {

std::string_view Name(DeviceKind kind) {
  return kind == DeviceKind::kHardware ? "hardware" : "software";
}

std::string_view Name(LinkLayer layer) {
  switch (layer) {
    case LinkLayer::kInfiniBand:
      return "InfiniBand";
    case LinkLayer::kEthernet:
      return "Ethernet";
    case LinkLayer::kUnspecified:
      break;
  }
  return "unspecified";
}

bool IsFatal(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_WQ_FATAL:
      return true;
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      break;
  }
  return false;
}

std::string QpStateName(ibv_qp_state state) {
  constexpr std::array<std::string_view, 7> kStates = {"RESET", "INIT", "RTR", "RTS",
                                                       "SQD",   "SQE",  "ERR"};
  const auto index = static_cast<size_t>(state);
  return index < kStates.size() ? std::string(kStates[index]) : "state " + std::to_string(index);
}

}  // namespace verbscope
