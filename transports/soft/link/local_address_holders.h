// Who holds UDP port 4791 of an address: the kernel's own table, /proc/net/udp. A socket that is
// not in the table has left its SO_REUSEPORT group as well: the kernel takes it out of the group
// first, both under one lock.
//
// A PortTable sees the network namespace of the thread that opened it, whoever reads it. One thread
// at a time.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_LOCAL_ADDRESS_HOLDERS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_LOCAL_ADDRESS_HOLDERS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/link/local_address.h"

namespace verbscope::soft {

struct PortHolder {
  uint64_t inode = 0;  // st_ino of the socket's descriptors
  uint32_t uid = 0;
  bool wildcard = false;  // bound to all addresses: 0.0.0.0 or ::

  bool operator==(const PortHolder&) const = default;
};

class PortTable {
 public:
  static Expected<PortTable> Open();

  // Sockets bound to exactly `address`, and to all addresses, with port 4791. A read takes several
  // calls, between which the kernel's list may move; so this is the union of two reads: one that
  // has gone may still be in it, one that stays is not missing.
  std::vector<PortHolder> Holders(const LocalAddress& address) const;

 private:
  FileDescriptor ipv4_;
  FileDescriptor ipv6_;  // none on a host without IPv6
};

// What one text of /proc/net/udp or udp6 adds to `holders`. Trusts nothing in the text.
void AddHolders(std::string_view table, const LocalAddress& address,
                std::vector<PortHolder>& holders);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_LOCAL_ADDRESS_HOLDERS_H_
