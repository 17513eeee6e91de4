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

namespace {

Error NotOffered(std::string_view call, const DeviceInfo& info) {
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.message = std::string(call) + " is not offered for " + info.name;
  error.next_step = "use another device, for example --device soft";
  return error;
}

}  // namespace

Expected<Srq> Device::CreateSrq(const SrqOptions& /*options*/) {
  return Fail(NotOffered("ibv_create_srq", info()));
}

Status Device::SetSrqLimit(ibv_srq* /*srq*/, uint32_t /*limit*/) {
  return Fail(NotOffered("ibv_modify_srq", info()));
}

Status Device::LoseNext(LossyPacket /*packets*/, uint32_t /*count*/) {
  return Fail(NotOffered("the loss of packets on demand", info()));
}

Status Device::ModerateCq(ibv_cq* /*cq*/, uint16_t /*count*/, uint16_t /*period_us*/) {
  return Fail(NotOffered("ibv_modify_cq", info()));
}

Status Device::ResizeCq(ibv_cq* /*cq*/, uint32_t /*cqe*/) {
  return Fail(NotOffered("ibv_resize_cq", info()));
}

int64_t CounterChange(const DeviceCounter& before, const DeviceCounter& after) {
  constexpr uint64_t kWrap32 = uint64_t{1} << 32;
  uint64_t change = after.value - before.value;  // of 64 bits, wrapping with them
  if (after.value < before.value && before.value < kWrap32) change += kWrap32;
  return static_cast<int64_t>(change);
}

ibv_qp_ex* Device::Extended(ibv_qp* /*qp*/) { return nullptr; }

ibv_cq_ex* Device::Extended(ibv_cq* /*cq*/) { return nullptr; }

Status Device::Destroy(ibv_srq* /*srq*/) { return Fail(NotOffered("ibv_destroy_srq", info())); }

}  // namespace verbscope
