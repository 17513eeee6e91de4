#include "transports/soft/link/held_packets.h"

#include <utility>

namespace verbscope::soft {

void HeldPackets::Hold(HeldPacket packet) {
  if (packet.overtakers != 0) ++waiting_;
  std::list<HeldPacket> one;
  one.push_back(std::move(packet));
  Insert(std::move(one));
}

// Times mostly grow, so the place is found from the end.
void HeldPackets::Insert(std::list<HeldPacket> one) {
  auto at = packets_.end();
  while (at != packets_.begin() && std::prev(at)->release_ns > one.front().release_ns) --at;
  packets_.splice(at, one);
}

void HeldPackets::Overtaken(PathId path) {
  if (waiting_ == 0) return;
  for (auto it = packets_.begin(); it != packets_.end();) {
    const auto packet = it++;
    if (packet->path != path || packet->overtakers == 0 || --packet->overtakers != 0) continue;
    --waiting_;
    packet->release_ns = 0;
    std::list<HeldPacket> one;
    one.splice(one.begin(), packets_, packet);
    Insert(std::move(one));
  }
}

std::vector<std::byte> JoinPieces(PayloadPieces pieces) {
  std::vector<std::byte> joined;
  for (const auto& piece : pieces) joined.insert(joined.end(), piece.begin(), piece.end());
  return joined;
}

}  // namespace verbscope::soft
