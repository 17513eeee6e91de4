// What carries the packets of one device: shared memory, or UDP. The core and the helper see this
// one link, whichever it is; on the way of a packet in memory it costs a test of a pointer.
//
// Owned by the core. Threads as in memory_link.h.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_DEVICE_LINK_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_DEVICE_LINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/device/link_use.h"
#include "transports/soft/device/udp_port.h"
#include "transports/soft/engine/counters.h"
#include "transports/soft/link/device_lock.h"
#include "transports/soft/link/link.h"
#include "transports/soft/link/memory_link.h"
#include "transports/soft/link/path_flows.h"
#include "transports/soft/link/udp_link.h"

namespace verbscope::soft {

class DeviceLink final : public Link, public PathFlows {
 public:
  // `port`: where a device on the UDP link is; null: a device in memory. `gso`: of the UDP link.
  // `lock` and `counters` must outlive the link.
  static Expected<std::unique_ptr<DeviceLink>> Create(std::unique_ptr<UdpPort> port, UdpGso gso,
                                                      DeviceLock& lock, Counters& counters);

  bool udp() const { return udp_ != nullptr; }
  UdpPort* port() const { return port_.get(); }

  // Where the engine sends: the link that does the work, without the way through this one.
  PacketSink& sink() { return udp_ != nullptr ? static_cast<PacketSink&>(*udp_) : *memory_; }

  // What the peer has to know to connect.
  std::vector<std::byte> LocalBlob() const;
  // Whether `blob` can be connected to. A setup Error says what the peer has instead.
  Status CheckBlob(std::span<const std::byte> blob) const;
  Expected<LinkUse> Connect(std::span<const std::byte> peer_blob, const Flow& flow,
                            uint32_t peer_qpn, Deadline deadline);
  void Disconnect(LinkUse use);

  // Link.
  bool Send(PathId path, const Header& header, PayloadPieces payload) override {
    return sink().Send(path, header, payload);
  }
  bool CanSend(PathId path) const override;
  bool SendRaw(PathId path, std::span<const std::byte> packet) override;
  size_t Poll(PacketReceiver& receiver, size_t budget) override {
    return udp_ != nullptr ? udp_->Poll(receiver, budget) : memory_->Poll(receiver, budget);
  }
  bool Pending() const override { return udp_ != nullptr ? udp_->Pending() : memory_->Pending(); }
  void Flush() override { udp_ != nullptr ? udp_->Flush() : memory_->Flush(); }

  // Whether a packet is known to wait. In memory the same as Pending; a socket has to be asked, so
  // that Pending there says only that it is worth it.
  bool Backlog() const { return udp_ != nullptr ? udp_->Kept() : memory_->Pending(); }

  // PathFlows.
  const Flow* SendFlow(PathId path) const override;
  const Flow* ReceiveFlow(PathId path) const override;

  // The helper's: as in memory_link.h.
  int wait_fd() const;
  void Serve();
  bool PrepareSleep() { return udp_ != nullptr ? udp_->PrepareSleep() : memory_->PrepareSleep(); }
  void Awake() { udp_ != nullptr ? udp_->Awake() : memory_->Awake(); }

  // Channels and arms that peers know of. Over UDP a peer wakes nobody: the helper does, and these
  // do nothing.
  uint32_t AddChannel(int event_fd);
  void RemoveChannel(uint32_t channel_id);
  void Arm(PathId path, uint32_t qpn, ArmSide side, uint32_t channel_id, bool solicited_only);
  void Disarm(PathId path, uint32_t qpn, ArmSide side);

  WakeCounts wakes() const { return memory_ != nullptr ? memory_->wakes() : WakeCounts{}; }
  UdpCounts udp_counts() const { return udp_ != nullptr ? udp_->counts() : UdpCounts{}; }

 private:
  DeviceLink() = default;
  Status OpenUdp(std::unique_ptr<UdpPort> port, UdpGso gso, DeviceLock& lock, Counters& counters);

  std::unique_ptr<MemoryLink> memory_;  // one of the two
  std::unique_ptr<UdpPort> port_;
  std::unique_ptr<UdpLink> udp_;  // goes before port_
  FileDescriptor epoll_;          // of what udp_ and port_ wait for
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_DEVICE_LINK_H_
