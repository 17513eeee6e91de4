// What the packets that are not acknowledged yet carried when they were sent first, for a device
// that repeats that (Defect::kCopyAtPost) where an honest one reads the program's buffer again.
//
// Owned by a Requester; used with the device's lock held. Holds nothing, and no memory, otherwise.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_SENT_BYTES_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_SENT_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace verbscope::soft {

class SentBytes {
 public:
  // The payload of the packet `psn` (not masked): as it was sent first, or `now`, which is kept if
  // this is the first time. Valid until Forget. Packets before `una` are forgotten.
  std::span<const std::byte> Of(uint32_t psn, uint32_t una,
                                std::span<const std::span<const std::byte>> now);
  void Forget() { packets_.clear(); }

 private:
  std::map<uint32_t, std::vector<std::byte>> packets_;  // by PSN
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_SENT_BYTES_H_
