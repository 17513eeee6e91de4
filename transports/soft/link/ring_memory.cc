#include "transports/soft/link/ring_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "core/base/error.h"

namespace verbscope::soft {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error BadRing(std::string message) {
  return SetupError(std::move(message), /*cause=*/{}, /*next_step=*/"");
}

}  // namespace

Expected<RingMemory> MakeRing(size_t arena_bytes) {
  const size_t bytes = sizeof(RingHead) + arena_bytes;
  RingMemory ring;
  ring.memfd.Reset(::memfd_create("verbscope-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!ring.memfd) return Fail(CallError(ErrorClass::kSetup, "memfd_create", "", errno));
  const std::string parameter = "bytes=" + std::to_string(bytes);
  if (::ftruncate(ring.memfd.get(), static_cast<off_t>(bytes)) != 0) {
    return Fail(CallError(ErrorClass::kSetup, "ftruncate", parameter, errno));
  }
  if (::fcntl(ring.memfd.get(), F_ADD_SEALS, kSeals) != 0) {
    return Fail(CallError(ErrorClass::kSetup, "fcntl(F_ADD_SEALS)", "", errno));
  }
  ring.mapping = Mapping(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.memfd.get(), 0), bytes);
  if (!ring.mapping) return Fail(CallError(ErrorClass::kSetup, "mmap", parameter, errno));
  // First touches cost microseconds each; an old kernel that cannot do it at once pays them later.
  ::madvise(ring.mapping.data(), sizeof(RingHead), MADV_POPULATE_WRITE);
  auto* head = reinterpret_cast<RingHead*>(ring.mapping.data());
  head->magic = kRingMagic;
  head->version = kMemoryLinkVersion;
  head->slot_count = kRingSlots;
  return ring;
}

size_t DefaultArenaBytes() {
  constexpr size_t kPage = 4096;
  const long cache = ::sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 or -1: not known
  const size_t twice = cache > 0 ? static_cast<size_t>(cache) * 2 : 0;
  return std::clamp(twice / kPage * kPage, kMinArenaBytes, kMaxArenaBytes);
}

Expected<size_t> CheckRing(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return Fail(BadRing("the ring's memory is not sealed"));
  }
  // Pages of a huge-page memfd can be missing and then kill the reader; ordinary ones cannot.
  struct statfs filesystem = {};
  if (::fstatfs(fd, &filesystem) != 0 || filesystem.f_type != TMPFS_MAGIC) {
    return Fail(BadRing("the ring's memory is not of ordinary pages"));
  }
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return Fail(CallError(ErrorClass::kSetup, "fstat", "", errno));
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (bytes < sizeof(RingHead) + kMinArenaBytes || bytes > sizeof(RingHead) + kMaxArenaBytes ||
      bytes % 4096 != 0) {
    return Fail(
        BadRing("the ring's memory has an impossible size of " + std::to_string(bytes) + " bytes"));
  }
  return static_cast<size_t>(bytes) - sizeof(RingHead);
}

Mapping MapArena(int fd, size_t arena_bytes) {
  return {::mmap(nullptr, arena_bytes, PROT_READ, MAP_SHARED, fd, sizeof(RingHead)), arena_bytes};
}

Mapping RxWindow::Reserve() {
  const size_t bytes = size_t{kRings} * sizeof(RingHead);
  return {::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
          bytes};
}

// MAP_FIXED replaces the zeros in one step for whoever looks at them meanwhile. The slots are
// readable only: a mistake of ours must not reach the sender's words.
std::optional<uint32_t> RxWindow::Attach(int fd, uint32_t first) {
  constexpr size_t kOwn = offsetof(RingHead, slots);
  constexpr int kFlags = MAP_SHARED | MAP_FIXED | MAP_POPULATE;
  for (size_t i = 0; i < used_.size(); ++i) {
    const uint64_t taken = used_[i].load(std::memory_order_relaxed) | lost_[i];
    if (taken == UINT64_MAX) continue;
    const auto bit = static_cast<uint32_t>(std::countr_one(taken));
    const auto place = static_cast<uint32_t>(i * 64) + bit;
    RingHead& at = head(place);
    if (::mmap(&at, kOwn, PROT_READ | PROT_WRITE, kFlags, fd, 0) == MAP_FAILED ||
        ::mmap(at.slots, sizeof(at.slots), PROT_READ, kFlags, fd, kOwn) == MAP_FAILED) {
      const int error = errno;
      Clear(place);
      errno = error;
      return std::nullopt;
    }
    next_[place].store(first, std::memory_order_relaxed);
    used_[i].fetch_or(uint64_t{1} << bit, std::memory_order_release);
    return place;
  }
  errno = ENOSPC;
  return std::nullopt;
}

void RxWindow::Detach(uint32_t place) {
  used_[place / 64].fetch_and(~(uint64_t{1} << place % 64), std::memory_order_release);
  Clear(place);
}

void RxWindow::Clear(uint32_t place) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(&head(place), sizeof(RingHead), PROT_READ, kFlags, -1, 0) == MAP_FAILED) {
    lost_[place / 64] |= uint64_t{1} << place % 64;
  }
}

}  // namespace verbscope::soft
