// Sender and receiver of one ring, without sockets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transports/soft/link/link_test_support.h"
#include "transports/soft/link/ring_memory.h"
#include "transports/soft/link/ring_receiver.h"
#include "transports/soft/link/ring_sender.h"

namespace verbscope::soft {
namespace {

constexpr PathId kPath = 3;

// Both ends; the receiver sees the memory as it sees another process's.
class Ring {
 public:
  explicit Ring(uint32_t first = 0) : window_(RxWindow::Reserve()) {
    auto made = MakeRing(kMinArenaBytes);
    EXPECT_TRUE(made);
    const auto arena_bytes = CheckRing(made->memfd.get());
    EXPECT_TRUE(arena_bytes) << arena_bytes.error().ToText();
    const auto place = window_.Attach(made->memfd.get(), first);
    EXPECT_TRUE(place);
    receiver_ = std::make_unique<RingReceiver>(
        window_, *place, MapArena(made->memfd.get(), *arena_bytes), kPath, TestFlow(1, 2));
    sender_ = std::make_unique<RingSender>(std::move(made->mapping), first);
  }

  RingSender::Result Send(uint32_t psn, std::span<const std::byte> payload = {}) {
    const std::span<const std::byte> pieces[] = {payload};
    return sender_->Send(SendHeader(psn, payload.size()), pieces);
  }
  size_t Poll(size_t budget = 1000) { return receiver_->Poll(received, budget, counters); }
  bool Pending() const { return window_.Pending(); }
  RingSender& sender() { return *sender_; }
  RingReceiver& receiver() { return *receiver_; }

  RecordingReceiver received;
  Counters counters;

 private:
  RxWindow window_;
  std::unique_ptr<RingReceiver> receiver_;
  std::unique_ptr<RingSender> sender_;
};

TEST(Ring, KeepsTheOrderForManyLaps) {
  Ring ring;
  uint32_t sent = 0;
  std::mt19937 random(1);
  while (sent < 10000) {
    const uint32_t batch = 1 + static_cast<uint32_t>(random() % 40);
    for (uint32_t i = 0; i < batch && ring.Send(sent) == RingSender::Result::kSent; ++i) ++sent;
    ring.Poll(1 + random() % 50);
  }
  while (ring.Poll() != 0) {
  }
  ASSERT_EQ(ring.received.packets.size(), sent);
  for (uint32_t i = 0; i < sent; ++i) ASSERT_EQ(ring.received.packets[i].header.psn, i);
}

TEST(Ring, CountsWrapAtTwoToThe32) {
  Ring ring(UINT32_MAX - 100);
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(ring.Send(i, Pattern(i, i)), RingSender::Result::kSent) << i;
    if (i % 3 == 2) {
      ASSERT_EQ(ring.Poll(), 3U) << i;
    }
  }
  ring.Poll();
  ASSERT_EQ(ring.received.packets.size(), 1000U);
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(ring.received.packets[i].header.psn, i);
    ASSERT_EQ(ring.received.packets[i].payload, Pattern(i, i));
  }
}

TEST(Ring, FullRingRefusesUntilAQuarterIsTaken) {
  Ring ring;
  for (uint32_t i = 0; i < kRingSlots; ++i) {
    ASSERT_TRUE(ring.sender().HasRoom());
    ASSERT_EQ(ring.Send(i), RingSender::Result::kSent);
  }
  EXPECT_FALSE(ring.sender().HasRoom());
  EXPECT_EQ(ring.Send(64), RingSender::Result::kFull);
  EXPECT_EQ(ring.Poll(kConsumedStep - 1), kConsumedStep - 1);
  EXPECT_FALSE(ring.sender().HasRoom());
  EXPECT_EQ(ring.Poll(1), 1U);
  EXPECT_TRUE(ring.sender().HasRoom());
  for (uint32_t i = 0; i < kConsumedStep; ++i) {
    ASSERT_EQ(ring.Send(64 + i), RingSender::Result::kSent);
  }
  EXPECT_EQ(ring.Send(100), RingSender::Result::kFull);
  EXPECT_EQ(ring.Poll(), kRingSlots);
}

TEST(Ring, CarriesEverySizeExactly) {
  Ring ring;
  for (uint32_t bytes = 0; bytes <= kMaxPayloadBytes; ++bytes) {
    const auto data = Pattern(bytes, bytes);
    ASSERT_EQ(ring.Send(bytes, data), RingSender::Result::kSent);
    ASSERT_EQ(ring.Poll(), 1U);
    ASSERT_EQ(ring.received.packets.back().payload, data) << bytes;
    ASSERT_EQ(ring.received.packets.back().header.pad, PadFor(bytes));
    ring.received.packets.clear();
  }
}

// Each length of headers has its own boundary between slot and arena.
TEST(Ring, CarriesEveryOpcodeAtTheSlotBoundary) {
  Ring ring;
  for (size_t code = 0; code < kOpcodeTable.size(); ++code) {
    const OpcodeInfo& info = kOpcodeTable[code];
    if (!info.valid()) continue;
    const size_t room = kSlotRoom - kBthBytes - info.extension_bytes;
    for (size_t bytes = room - 4; bytes <= room + 4; ++bytes) {
      const auto data = Pattern(bytes, 7);
      Header header = SendHeader(1, bytes);
      header.opcode = static_cast<Opcode>(code);
      header.address = 0x1122334455667788;
      header.immediate = 0xabcdef01;
      header.original = 99;
      header.msn = 5;
      const std::span<const std::byte> pieces[] = {data};
      ASSERT_EQ(ring.sender().Send(header, pieces), RingSender::Result::kSent);
      ASSERT_EQ(ring.Poll(), 1U);
      const ReceivedPacket& got = ring.received.packets.back();
      EXPECT_EQ(got.payload, data) << info.name << " " << bytes;
      EXPECT_EQ(got.header.opcode, header.opcode);
      if (info.Is(kOpImm)) {
        EXPECT_EQ(got.header.immediate, header.immediate);
      }
      if (info.Is(kOpReth | kOpAtomicEth)) {
        EXPECT_EQ(got.header.address, header.address);
      }
      if (info.Is(kOpAtomicAckEth)) {
        EXPECT_EQ(got.header.original, header.original);
      }
    }
  }
  EXPECT_EQ(ring.counters.malformed_pkts, 0U);
}

TEST(Ring, JoinsPieces) {
  Ring ring;
  for (const size_t bytes : {size_t{50}, size_t{236}, size_t{1000}, size_t{4096}}) {
    const auto data = Pattern(bytes, 5);
    const std::span<const std::byte> whole(data);
    const std::span<const std::byte> pieces[] = {whole.first(0),
                                                 whole.first(1),
                                                 {},
                                                 whole.subspan(1, bytes / 2),
                                                 whole.subspan(1 + bytes / 2)};
    ASSERT_EQ(ring.sender().Send(SendHeader(1, bytes), pieces), RingSender::Result::kSent);
    ASSERT_EQ(ring.sender().Send(SendHeader(2, 0), {}), RingSender::Result::kSent);
    ASSERT_EQ(ring.Poll(), 2U);
    EXPECT_EQ(ring.received.packets[ring.received.packets.size() - 2].payload, data);
    EXPECT_TRUE(ring.received.packets.back().payload.empty());
  }
}

// The arena wraps while a full ring is in flight.
TEST(Ring, ArenaNeverOvertakesTheReceiver) {
  Ring ring;
  uint32_t sent = 0;
  uint32_t taken = 0;
  std::mt19937 random(3);
  while (sent < 20000) {
    while (ring.Send(sent, Pattern(1000 + sent * 37 % 3097, sent)) == RingSender::Result::kSent) {
      ++sent;
    }
    ring.Poll(1 + random() % kRingSlots);
    for (const ReceivedPacket& packet : ring.received.packets) {
      ASSERT_EQ(packet.header.psn, taken);
      ASSERT_EQ(packet.payload, Pattern(1000 + taken * 37 % 3097, taken));
      ++taken;
    }
    ring.received.packets.clear();
  }
}

TEST(Ring, RefusesWhatCanNeverBeSent) {
  Ring ring;
  EXPECT_EQ(ring.Send(1, Pattern(kMaxPayloadBytes + 4, 1)), RingSender::Result::kTooLarge);
  EXPECT_EQ(ring.sender().SendRaw(Pattern(kMaxRawBytes + 1, 1)), RingSender::Result::kTooLarge);
  EXPECT_FALSE(ring.Pending());
}

TEST(Ring, SenderClampsAnImpossibleConsumedCount) {
  Ring ring;
  for (uint32_t i = 0; i < kRingSlots; ++i) ring.Send(i);
  for (const uint32_t lie : {kRingSlots + 1, UINT32_MAX, 0x80000000U}) {
    std::atomic_ref(ring.receiver().head().consumed).store(lie);
    EXPECT_EQ(ring.Send(100), RingSender::Result::kFull) << lie;
  }
  std::atomic_ref(ring.receiver().head().consumed).store(1);
  EXPECT_EQ(ring.Send(100), RingSender::Result::kSent);
  EXPECT_EQ(ring.Send(101), RingSender::Result::kFull);
}

// Control words that lie about every field, with random bytes behind them.
TEST(Ring, ReceiverSurvivesHostileContents) {
  Ring ring;
  RingHead& shared = ring.sender().head();
  CountingReceiver sink;
  std::mt19937_64 random(99);
  for (uint32_t packet = 0; packet < 200000; ++packet) {
    Slot& slot = shared.slots[packet % kRingSlots];
    for (size_t i = 0; i < 64; i += 8) {
      const uint64_t bytes = random();
      std::memcpy(slot.bytes + i, &bytes, sizeof(bytes));
    }
    uint64_t lie = random();
    switch (packet % 4) {
      case 0:  // anything
        break;
      case 1:  // known flags, lengths that may fit
        lie &= 0x0fff'1f03'00000000;
        break;
      case 2: {  // a packet near the end of the arena
        Encode(SendHeader(packet, 0), slot.bytes);
        const uint64_t offset = kMinArenaBytes - random() % 8192;
        std::memcpy(slot.bytes + kSlotOffsetAt, &offset, sizeof(offset));
        lie = (lie & 0x0fff'0000'00000000) | uint64_t{kBthBytes} << 40 | uint64_t{kSlotArena} << 32;
        break;
      }
      default:  // a packet in the slot, or beyond it
        Encode(SendHeader(packet, 0), slot.bytes);
        lie = (lie & 0x01ff'0000'00000000) | uint64_t{kBthBytes} << 40;
        break;
    }
    std::atomic_ref(slot.control).store((lie & ~uint64_t{0xffffffff}) | LapOf(packet));
    ASSERT_EQ(ring.receiver().Poll(sink, 10, ring.counters), 1U);
  }
  EXPECT_GT(ring.counters.malformed_pkts, 100000U);
  EXPECT_GT(ring.counters.icrc_errors, 300U);
  EXPECT_GT(sink.packets, 10000U);
}

// A peer that writes everywhere while packets are read.
TEST(Ring, ReceiverSurvivesContentsThatChange) {
  Ring ring;
  RingHead& shared = ring.sender().head();
  std::atomic<bool> stop = false;
  std::atomic<uint32_t> taken = 0;
  std::thread writer([&] {
    std::mt19937_64 random(5);
    while (!stop.load(std::memory_order_relaxed)) {
      const uint64_t dice = random();
      const uint32_t packet = taken.load(std::memory_order_relaxed) + dice % 2;
      Slot& slot = shared.slots[packet % kRingSlots];
      std::atomic_ref word(*reinterpret_cast<uint64_t*>(slot.bytes + dice / 64 % 30 * 8));
      word.store(random(), std::memory_order_relaxed);
      const std::atomic_ref control(slot.control);
      control.store((random() & 0x0fff'1f03'00000000) | LapOf(packet), std::memory_order_release);
    }
  });
  CountingReceiver sink;
  while (taken < 200000) {
    taken += static_cast<uint32_t>(ring.receiver().Poll(sink, 16, ring.counters));
  }
  stop = true;
  writer.join();
}

TEST(RingMemory, RefusesMemoryThatIsNotSafe) {
  const auto reason = [](int fd) {
    const auto checked = CheckRing(fd);
    return checked ? std::string("accepted") : checked.error().message;
  };
  constexpr off_t kBytes = sizeof(RingHead) + kMinArenaBytes;
  const FileDescriptor unsealed(::memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kBytes), 0);
  EXPECT_EQ(reason(unsealed.get()), "the ring's memory is not sealed");
  ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_EQ(reason(unsealed.get()), "the ring's memory is not sealed");
  ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  EXPECT_EQ(reason(unsealed.get()), "accepted");

  const FileDescriptor small(::memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(small.get(), kBytes - 4096), 0);
  ASSERT_EQ(::fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_NE(reason(small.get()).find("impossible size"), std::string::npos);

  int pipes[2];
  ASSERT_EQ(::pipe(pipes), 0);
  const FileDescriptor in(pipes[0]);
  const FileDescriptor out(pipes[1]);
  EXPECT_EQ(reason(in.get()), "the ring's memory is not sealed");
  EXPECT_EQ(reason(-1), "the ring's memory is not sealed");
  const FileDescriptor file(::open("/tmp", O_TMPFILE | O_RDWR, 0600));
  if (file) {
    EXPECT_EQ(reason(file.get()), "the ring's memory is not sealed");
  }
}

TEST(RxWindow, DetachedRingLooksEmptyToWhoStillLooks) {
  RxWindow window(RxWindow::Reserve());
  std::atomic<bool> stop = false;
  std::thread looker([&] {
    while (!stop.load()) (void)window.Pending();
  });
  for (int i = 0; i < 3000; ++i) {
    auto made = MakeRing(kMinArenaBytes);
    ASSERT_TRUE(made);
    RingSender sender(std::move(made->mapping));
    sender.Send(SendHeader(1, 0), {});
    const auto place = window.Attach(made->memfd.get());
    ASSERT_TRUE(place);
    EXPECT_EQ(*place, 0U);
    EXPECT_TRUE(window.Pending());
    window.Detach(*place);
    EXPECT_FALSE(window.Pending());
  }
  stop = true;
  looker.join();
}

TEST(RxWindow, HasALimit) {
  RxWindow window(RxWindow::Reserve());
  auto made = MakeRing(kMinArenaBytes);
  ASSERT_TRUE(made);
  for (uint32_t i = 0; i < RxWindow::kRings; ++i) EXPECT_EQ(window.Attach(made->memfd.get()), i);
  EXPECT_EQ(window.Attach(made->memfd.get()), std::nullopt);
  window.Detach(77);
  EXPECT_EQ(window.Attach(made->memfd.get()), 77U);
}

}  // namespace
}  // namespace verbscope::soft
