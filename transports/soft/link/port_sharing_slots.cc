#include "transports/soft/link/port_sharing_slots.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "transports/soft/link/port_sharing_messages.h"
#include "transports/soft/wire/header.h"

namespace verbscope::soft {

std::vector<bool> DeadOwners(const SharedSlots& slots) {
  std::vector<pollfd> lives;
  for (const SharedSlot& slot : slots) {
    lives.push_back({.fd = slot.life.get(), .events = 0, .revents = 0});
  }
  std::vector<bool> dead(slots.size(), false);
  if (::poll(lives.data(), lives.size(), /*timeout=*/0) <= 0) return dead;
  for (size_t i = 0; i < slots.size(); ++i) dead[i] = (lives[i].revents & POLLHUP) != 0;
  return dead;
}

bool SameAsKernel(const SharedSlots& slots, const PortTable& table, const LocalAddress& address) {
  std::vector<uint64_t> ours;
  for (const SharedSlot& slot : slots) ours.push_back(InodeOf(slot.socket.get()));
  std::vector<uint64_t> kernels;
  for (const PortHolder& holder : table.Holders(address)) {
    if (!holder.wildcard) kernels.push_back(holder.inode);
  }
  std::sort(ours.begin(), ours.end());
  std::sort(kernels.begin(), kernels.end());
  return ours == kernels;
}

uint8_t NextTag(const SharedSlots& slots, uint8_t last) {
  for (;;) {
    last = last == kMaxTag ? uint8_t{1} : static_cast<uint8_t>(last + 1);
    if (std::none_of(slots.begin(), slots.end(),
                     [last](const SharedSlot& slot) { return slot.tag == last; })) {
      return last;
    }
  }
}

std::vector<uint8_t> TagsOf(const SharedSlots& slots) {
  std::vector<uint8_t> tags;
  for (const SharedSlot& slot : slots) tags.push_back(slot.tag);
  return tags;
}

std::optional<uint64_t> NewSlotId() {
  uint64_t id = 0;
  if (::getrandom(&id, sizeof(id), 0) != sizeof(id)) return std::nullopt;
  return id == 0 ? 1 : id;
}

bool IsSharedSocket(int fd, const LocalAddress& address) {
  SocketAddress bound;
  bound.size = sizeof(bound.storage);
  auto* generic = reinterpret_cast<sockaddr*>(&bound.storage);
  if (::getsockname(fd, generic, &bound.size) != 0) return false;
  int type = 0;
  socklen_t size = sizeof(type);
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_DGRAM) return false;
  const SocketAddress wanted = address.Socket(kRoceUdpPort);
  return bound.size == wanted.size &&
         std::memcmp(&bound.storage, &wanted.storage, wanted.size) == 0;
}

bool IsPipe(int fd) {
  struct stat status;
  return ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

uint64_t InodeOf(int fd) {
  struct stat status;
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

}  // namespace verbscope::soft
