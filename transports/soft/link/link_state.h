// The tables of a memory link: what it knows of its peers, their rings and their connections. Plain
// structs; MemoryLink alone changes them, with the device's lock held.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_LINK_STATE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_LINK_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/file_descriptor.h"
#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/mapping.h"
#include "transports/soft/link/rendezvous_messages.h"
#include "transports/soft/link/ring_receiver.h"
#include "transports/soft/link/ring_sender.h"
#include "transports/soft/link/wake.h"
#include "transports/soft/wire/frame.h"

namespace verbscope::soft {

using ConnectionId = uint64_t;

// A ring that packets come from, with the bell its sender rings.
struct RxRing {
  RxRing(RxWindow& window, uint32_t place, Mapping arena, PathId path, const Flow& flow,
         FileDescriptor bell_fd)
      : receiver(window, place, std::move(arena), path, flow), bell(std::move(bell_fd)) {}

  RingReceiver receiver;
  FileDescriptor bell;
};

// A ring that packets go to.
struct TxRing {
  TxRing(Mapping memory, FileDescriptor bell, ConnectionId connection_id)
      : sender(std::move(memory)), waker(std::move(bell)), connection(connection_id) {}

  RingSender sender;
  PeerWaker waker;
  const ConnectionId connection;
};

// One peer. Lives while it is connected to (users) or connected from (rings).
struct PathEntry {
  Nonce nonce = {};
  uint32_t users = 0;
  bool dirty = false;          // packets sent since the last Flush
  std::unique_ptr<TxRing> tx;  // null: not connected, or the peer is gone
  std::optional<Flow> send_flow;
  std::optional<Flow> receive_flow;
  uint32_t rings = 0;
  RxRing* rx = nullptr;        // the newest ring from the peer; others are being drained
  std::vector<ArmEntry> arms;  // for the next ring, while there is none

  void ForgetArm(ArmSide side, uint32_t slot) {
    std::erase_if(arms, [=](const ArmEntry& a) { return a.side == side && a.slot == slot; });
  }
};

// A Unix connection. It is the liveness of the ring that was handed over on it.
struct Connection {
  enum class Role : uint8_t {
    kNewcomer,  // accepted, has not said hello
    kFromPeer,  // accepted, its ring is attached
    kToPeer,    // ours
  };
  FileDescriptor socket;
  Role role = Role::kNewcomer;
  PathId path = kNoPath;
  RxRing* ring = nullptr;  // kFromPeer
};

// What is unmapped after the lock has been released: large mappings take a while.
using Retired = std::vector<Mapping>;

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_LINK_STATE_H_
