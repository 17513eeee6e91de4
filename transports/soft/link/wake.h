// Waking whoever waits at the other end of a ring: the receiver says what it wants in the shared
// memory, the sender looks after each batch and makes the system call. ring_layout.h has the words,
// their ordering and why nothing is lost.
//
// Threads: with the device's lock held, on both sides.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_WAKE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_WAKE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/file_descriptor.h"
#include "transports/soft/link/ring_layout.h"
#include "transports/soft/link/ring_sender.h"

namespace verbscope::soft {

// Which completion queue of a QP waits for an event.
enum class ArmSide : uint8_t { kReceive, kSend };

// System calls that were made to wake peers.
struct WakeCounts {
  uint64_t bells = 0;             // bells rung
  uint64_t channels = 0;          // completion channels written
  uint64_t unknown_channels = 0;  // bells rung because the channel was not known (yet)
};

struct ArmEntry {
  ArmSide side = ArmSide::kReceive;
  uint32_t slot = 0;   // QPN modulo kArmSlots
  uint32_t value = 0;  // the arm word

  static ArmEntry Make(uint32_t qpn, ArmSide side, uint32_t channel, bool solicited_only) {
    return {side, qpn % kArmSlots, (channel + 1) | (solicited_only ? kArmSolicitedOnly : 0)};
  }
};

// The receiver's side. None of them fences; whoever sleeps next does.
void SetArm(RingHead& ring, const ArmEntry& arm);
void ClearArm(RingHead& ring, ArmSide side, uint32_t slot);
// Clears all that are set and returns them: the peer's next ring takes over.
std::vector<ArmEntry> TakeArms(RingHead& ring);
void SetBell(RingHead& ring);
void ClearBell(RingHead& ring);

// The sender's side: the descriptors that one peer has given, and the decision which to write.
class PeerWaker {
 public:
  static constexpr size_t kMaxChannels = 64;  // of one peer; for more the bell is rung

  explicit PeerWaker(FileDescriptor bell) : bell_(std::move(bell)) {}

  // The peer offers or withdraws a channel. Numbers are never used twice.
  void AddChannel(uint32_t channel, FileDescriptor event_fd);
  void RemoveChannel(uint32_t channel);

  // After the fence, for a ring whose attention word is not 0: wakes who waits for the packets that
  // `ring` has not flushed.
  void Wake(const RingSender& ring, WakeCounts& counts);

 private:
  struct Channel {
    uint32_t number;
    FileDescriptor event_fd;
  };
  // Arms that packets of one batch have hit: other packets for the same need no bell. A few are
  // remembered; for more the bell is rung once too often.
  struct Hits {
    std::array<uint32_t, 4> slots[2] = {};  // [ArmSide]
    size_t counts[2] = {};

    void Add(ArmSide side, uint32_t slot);
    bool Has(ArmSide side, uint32_t slot) const;
  };

  // Clears the arm that a packet can complete on and writes the channel. False: nothing was hit.
  bool HitArm(RingHead& ring, const WakeHint& hint, WakeCounts& counts);
  // Rings if the bell is wanted, or `always`.
  void RingBell(RingHead& ring, bool always, WakeCounts& counts);
  int EventFdOf(uint32_t channel) const;  // -1: not known

  FileDescriptor bell_;
  std::vector<Channel> channels_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_WAKE_H_
