// The sockets of one shared port, in the kernel's order, and who owns which. Every member holds
// every socket, so none ever leaves the kernel's group while anybody lives, and the order only
// grows: the slot of a dead member stays where it is and is given to the next that comes.
//
// Life: each member holds the writing end of a pipe, all others the reading end. The kernel says
// that a member is dead when no writing end is left, however it died.
//
// Plain functions and data; one thread at a time.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_SLOTS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/file_descriptor.h"
#include "transports/soft/link/local_address.h"
#include "transports/soft/link/local_address_holders.h"

namespace verbscope::soft {

struct SharedSlot {
  uint64_t id = 0;  // of this ownership, for ever
  uint8_t tag = 0;
  FileDescriptor socket;
  FileDescriptor life;  // reading end
  bool deaf = false;    // known to be
};

// The index is the kernel's.
using SharedSlots = std::vector<SharedSlot>;

// For each slot whether its owner is dead.
std::vector<bool> DeadOwners(const SharedSlots& slots);

// Whether the kernel's group is exactly these sockets. If it is, the next one to bind comes last.
bool SameAsKernel(const SharedSlots& slots, const PortTable& table, const LocalAddress& address);

// The next tag after `last` that no slot has, in a circle: late packets for a dead owner are for
// nobody as long as can be.
uint8_t NextTag(const SharedSlots& slots, uint8_t last);

std::vector<uint8_t> TagsOf(const SharedSlots& slots);

// Random, not 0. Nothing if the kernel has none to give.
std::optional<uint64_t> NewSlotId();

// Whether descriptors that came from elsewhere can be what they should be.
bool IsSharedSocket(int fd, const LocalAddress& address);
bool IsPipe(int fd);
uint64_t InodeOf(int fd);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_SLOTS_H_
