#include "transports/soft/device/device_link.h"

namespace verbscope::soft {

bool DeviceLink::CanSend(PathId path) const {
  return udp() ? active_udp()->CanSend(path) : memory_->CanSend(path);
}

bool DeviceLink::SendRaw(PathId path, std::span<const std::byte> packet) {
  return udp() ? active_udp()->SendRaw(path, packet) : memory_->SendRaw(path, packet);
}

const Flow* DeviceLink::SendFlow(PathId path) const {
  return udp() ? active_udp()->SendFlow(path) : memory_->SendFlow(path);
}

const Flow* DeviceLink::ReceiveFlow(PathId path) const {
  return udp() ? active_udp()->ReceiveFlow(path) : memory_->ReceiveFlow(path);
}

void DeviceLink::Serve() {
  if (memory_ != nullptr) memory_->Serve();
  if (port_ != nullptr) port_->Serve();
}

bool DeviceLink::PrepareSleep() {
  prepared_udp_ = active_udp();
  return prepared_udp_ != nullptr ? prepared_udp_->PrepareSleep() : memory_->PrepareSleep();
}

// The device may have turned to its other link meanwhile.
void DeviceLink::Awake() { prepared_udp_ != nullptr ? prepared_udp_->Awake() : memory_->Awake(); }

uint32_t DeviceLink::AddChannel(int event_fd) {
  return memory_ != nullptr ? memory_->AddChannel(event_fd) : 0;
}

void DeviceLink::RemoveChannel(uint32_t channel_id) {
  if (memory_ != nullptr) memory_->RemoveChannel(channel_id);
}

void DeviceLink::Arm(PathId path, uint32_t qpn, ArmSide side, uint32_t channel_id,
                     bool solicited_only) {
  if (!udp()) memory_->Arm(path, qpn, side, channel_id, solicited_only);
}

void DeviceLink::Disarm(PathId path, uint32_t qpn, ArmSide side) {
  if (!udp()) memory_->Disarm(path, qpn, side);
}

std::vector<std::string> DeviceLink::Notices() const {
  return udp() ? active_udp()->Notices() : std::vector<std::string>();
}

}  // namespace verbscope::soft
