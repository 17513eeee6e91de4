// What the tests of this folder share: a device's lock, a receiver that remembers, a link with all
// it needs.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_LINK_TEST_SUPPORT_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_LINK_TEST_SUPPORT_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "transports/soft/engine/counters.h"
#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/device_lock.h"
#include "transports/soft/link/memory_link.h"
#include "transports/soft/wire/frame.h"
#include "transports/soft/wire/header.h"

namespace verbscope::soft {

class MutexLock final : public DeviceLock {
 public:
  void Lock() override { mutex_.lock(); }
  void Unlock() override { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

struct ReceivedPacket {
  PathId path;
  Header header;
  std::vector<std::byte> payload;
};

class RecordingReceiver final : public PacketReceiver {
 public:
  void Receive(PathId path, const Header& header, std::span<const std::byte> payload) override {
    packets.push_back({path, header, {payload.begin(), payload.end()}});
  }
  std::vector<ReceivedPacket> packets;
};

// Reads every byte and keeps nothing.
class CountingReceiver final : public PacketReceiver {
 public:
  void Receive(PathId, const Header&, std::span<const std::byte> payload) override {
    ++packets;
    for (const std::byte b : payload) sum += std::to_integer<uint64_t>(b);
  }
  uint64_t packets = 0;
  uint64_t sum = 0;
};

inline Flow TestFlow(uint8_t source, uint8_t destination) {
  Flow flow;
  flow.source = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, source};
  flow.destination = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, destination};
  flow.source_port = 49152;
  return flow;
}

// A SEND that names itself by its PSN and carries `bytes` of payload.
inline Header SendHeader(uint32_t psn, size_t bytes, uint32_t qpn = 17) {
  Header header;
  header.opcode = Opcode::kSendOnly;
  header.dest_qpn = qpn;
  header.psn = psn & 0xffffff;
  header.pad = PadFor(bytes);
  return header;
}

inline std::vector<std::byte> Pattern(size_t bytes, uint32_t seed) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>((seed * 2654435761U + i * 31 + i / 251) >> 3);
  }
  return data;
}

inline Deadline Soon() { return Deadline::After(std::chrono::seconds(5)); }

// A device reduced to its link. The functions take the lock.
class TestPeer {
 public:
  TestPeer() {
    auto made = MemoryLink::Create(lock, counters);
    EXPECT_TRUE(made) << made.error().ToText();
    if (made) link = std::move(*made);
  }

  PathId ConnectTo(const TestPeer& peer) { return ConnectTo(peer.link->LocalBlob()); }
  PathId ConnectTo(std::span<const std::byte> blob) {
    const auto path = link->Connect(blob, TestFlow(1, 2), Soon());
    EXPECT_TRUE(path) << path.error().ToText();
    return path ? *path : kNoPath;
  }
  bool SendOne(PathId path, const Header& header, std::span<const std::byte> payload = {}) {
    const std::span<const std::byte> pieces[] = {payload};
    DeviceLockHolder hold(lock);
    return link->Send(path, header, pieces);
  }
  void Flush() {
    DeviceLockHolder hold(lock);
    link->Flush();
  }
  bool SendAndFlush(PathId path, const Header& header, std::span<const std::byte> payload = {}) {
    const std::span<const std::byte> pieces[] = {payload};
    DeviceLockHolder hold(lock);  // once: a second lock would fence for the link
    const bool sent = link->Send(path, header, pieces);
    link->Flush();
    return sent;
  }
  size_t Poll(size_t budget = 1000) {
    DeviceLockHolder hold(lock);
    return link->Poll(received, budget);
  }

  MutexLock lock;
  Counters counters;
  RecordingReceiver received;
  std::unique_ptr<MemoryLink> link;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_LINK_TEST_SUPPORT_H_
