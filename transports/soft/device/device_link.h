// What carries the packets of one device: shared memory or UDP. The core and the helper see this
// one link, whichever it is; on the way of a packet in memory it costs a test of a pointer.
//
// A device that has both chooses when it connects: memory if the peer proves to be of this user on
// this host, else UDP. All peers it has at a time are reached by the same one.
//
// Owned by the core. Threads as in memory_link.h; Connect and Disconnect take turns by themselves.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_DEVICE_LINK_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_DEVICE_LINK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/device/link_blob.h"
#include "transports/soft/device/link_use.h"
#include "transports/soft/device/udp_port.h"
#include "transports/soft/engine/counters.h"
#include "transports/soft/link/device_lock.h"
#include "transports/soft/link/link.h"
#include "transports/soft/link/memory_link.h"
#include "transports/soft/link/path_flows.h"
#include "transports/soft/link/udp_link.h"
#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

// Which links a device has.
struct LinkChoice {
  bool memory = true;
  UdpGso gso = UdpGso::kAuto;
  std::unique_ptr<UdpPort> port = nullptr;  // null: no UDP
  std::optional<Error> no_port = {};        // why not, if it would be good to have
};

class DeviceLink final : public Link, public PathFlows {
 public:
  // `lock` and `counters` must outlive the link.
  static Expected<std::unique_ptr<DeviceLink>> Create(LinkChoice choice, DeviceLock& lock,
                                                      Counters& counters);

  // Whether packets go by UDP: of a device with both links it changes with Connect, lock held.
  bool udp() const { return active_udp() != nullptr; }
  const UdpPort* port() const { return port_.get(); }

  // Where the engine sends: the link that does the work, without the way through this one. Ask
  // again after Connect.
  PacketSink& sink() { return udp() ? static_cast<PacketSink&>(*active_udp()) : *memory_; }

  // What it uses; kAuto: it has both links, and has had no peer yet.
  LinkKind kind() const {
    if (chooses() && !chosen_.load(std::memory_order_relaxed)) return LinkKind::kAuto;
    return udp() ? LinkKind::kUdp : LinkKind::kMemory;
  }

  // What the peer has to know to connect.
  std::vector<std::byte> LocalBlob() const;
  // Whether `blob` can be connected to, as far as it says. A setup Error says what the peer has
  // instead.
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
    UdpLink* const udp = active_udp();
    return udp != nullptr ? udp->Poll(receiver, budget) : memory_->Poll(receiver, budget);
  }
  bool Pending() const override {
    const UdpLink* const udp = active_udp();
    return udp != nullptr ? udp->Pending() : memory_->Pending();
  }
  void Flush() override { udp() ? active_udp()->Flush() : memory_->Flush(); }

  // Whether a packet is known to wait. In memory the same as Pending; a socket has to be asked, so
  // that Pending there says only that it is worth it.
  bool Backlog() const { return udp() ? active_udp()->Kept() : memory_->Pending(); }

  // PathFlows.
  const Flow* SendFlow(PathId path) const override;
  const Flow* ReceiveFlow(PathId path) const override;

  // The helper's: as in memory_link.h.
  int wait_fd() const { return wait_fd_.load(std::memory_order_relaxed); }
  void Serve();
  bool PrepareSleep();
  void Awake();

  // Channels and arms that peers know of. Over UDP a peer wakes nobody: the helper does, and these
  // do nothing.
  uint32_t AddChannel(int event_fd);
  void RemoveChannel(uint32_t channel_id);
  void Arm(PathId path, uint32_t qpn, ArmSide side, uint32_t channel_id, bool solicited_only);
  void Disarm(PathId path, uint32_t qpn, ArmSide side);

  WakeCounts wakes() const { return memory_ != nullptr ? memory_->wakes() : WakeCounts{}; }
  UdpCounts udp_counts() const { return udp() ? active_udp()->counts() : UdpCounts{}; }
  // What the user should know of how the sockets turned out.
  std::vector<std::string> Notices() const;

 private:
  DeviceLink(LinkChoice choice, DeviceLock& lock, Counters& counters);
  UdpLink* active_udp() const { return active_udp_.load(std::memory_order_acquire); }
  bool chooses() const { return memory_ != nullptr && (port_ != nullptr || no_port_); }

  // device_link_connect.cc
  Status OpenUdp();
  Status Watch(int fd);
  Status CheckPeer(const std::optional<LinkBlob>& peer) const;
  // Whether the peer is reached by UDP. Waits.
  Expected<bool> Choose(const LinkBlob& peer, Deadline deadline) const;
  // choosing_ is held.
  Status TurnTo(bool udp);
  Status CheckFamilies(const Flow& flow) const;
  Flow AddressedTo(const std::optional<LinkBlob>& peer, const Flow& flow) const;

  DeviceLock& lock_;
  Counters& counters_;
  const UdpGso gso_;
  std::unique_ptr<MemoryLink> memory_;
  std::unique_ptr<UdpPort> port_;
  std::optional<Error> no_port_;
  std::unique_ptr<UdpLink> udp_;  // goes before port_; made when it is needed first
  std::atomic<UdpLink*> active_udp_{nullptr};
  UdpLink* prepared_udp_ = nullptr;  // which link was told of the helper's sleep
  std::mutex choosing_;              // held by Connect and Disconnect, never with lock_ taken
  uint32_t users_ = 0;               // Connect without Disconnect
  std::atomic<bool> chosen_{false};  // there was a Connect
  FileDescriptor epoll_;             // of all that the helper waits for, once there is UDP
  std::atomic<int> wait_fd_{-1};
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_DEVICE_LINK_H_
