// The address of a device on the UDP link: the socket that its peers send to, and the QP numbers
// it may use there. An address of its own in 127.0.0.0/8, or one that it shares with other
// processes of the same user.
//
// Owned by the device's link; Serve is the helper's, everything else any thread's.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_UDP_PORT_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_UDP_PORT_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/link/local_address.h"
#include "transports/soft/link/port_sharing.h"

namespace verbscope::soft {

class UdpPort {
 public:
  // `address`: of this host; nullopt: a loopback address that no other process has.
  // Setup errors: not an address of this host, port 4791 is taken, or a process that shares the
  // address does not answer until `deadline`.
  static Expected<std::unique_ptr<UdpPort>> Take(const std::optional<ibv_gid>& address,
                                                 Deadline deadline);

  const LocalAddress& address() const { return address_; }
  ibv_gid gid() const;
  int fd() const { return sharing_ != nullptr ? sharing_->fd() : own_.get(); }

  // Of the interface that has the address: the largest IP packet; 0: not known.
  uint32_t interface_mtu_bytes() const;

  // [first, second] of the QP numbers whose packets come here.
  std::pair<uint32_t, uint32_t> qpns() const;

  // Readable when Serve has something to do; -1: never.
  int wait_fd() const { return sharing_ != nullptr ? sharing_->wait_fd() : -1; }
  // Other processes come to the address and leave it. Bounded, never waits.
  void Serve() {
    if (sharing_ != nullptr) sharing_->Serve();
  }

 private:
  explicit UdpPort(LocalAddress address) : address_(std::move(address)) {}

  LocalAddress address_;
  FileDescriptor own_;
  std::unique_ptr<PortSharing> sharing_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_UDP_PORT_H_
