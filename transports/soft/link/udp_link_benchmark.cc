// What a packet costs through UDP sockets on the loopback interface: against plain sockets, which
// are the floor, and with and without bursts.
//
// A virtual machine may move its processors between cores: compare runs of the same minutes. Run
// with --benchmark_enable_random_interleaving=true --benchmark_repetitions=9, so that the plain
// sockets and the link take turns.
#include <benchmark/benchmark.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "transports/soft/link/benchmark_support.h"
#include "transports/soft/link/local_address.h"
#include "transports/soft/link/udp_link.h"
#include "transports/soft/wire/frame.h"
#include "transports/soft/wire/icrc_cache.h"

namespace verbscope::soft {
namespace {

constexpr int kPieces = 64;  // of a chunk

template <class T>
T Must(Expected<T> made) {
  if (!made) std::abort();
  return std::move(*made);
}

// A thread that repeats `step` on the other processor until the end of its life.
class Other {
 public:
  template <class F>
  explicit Other(F step)
      : thread_([this, step] {
          Pin(1);
          while (!stop_.load(std::memory_order_relaxed)) step();
        }) {}
  ~Other() {
    stop_ = true;
    thread_.join();
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Datagrams of as many bytes as a packet with that payload has.
void BM_PlainPingPong(benchmark::State& state) {
  const BoundSocket a = Must(BindOwnLoopback());
  const BoundSocket b = Must(BindOwnLoopback());
  const SocketAddress to_a = a.address.Socket(kRoceUdpPort);
  const SocketAddress to_b = b.address.Socket(kRoceUdpPort);
  std::vector<std::byte> ping(static_cast<size_t>(state.range(0)) + kBthBytes + kIcrcBytes);
  std::vector<std::byte> pong = ping;
  const Other other([&] {
    if (::recv(b.socket.get(), pong.data(), pong.size(), MSG_DONTWAIT) < 0) return;
    ::sendto(b.socket.get(), pong.data(), pong.size(), 0, to_a.generic(), to_a.size);
  });
  Pin(0);
  Chunks<kPieces> chunks;
  for (auto _ : state) {
    chunks.Time([&] {
      ::sendto(a.socket.get(), ping.data(), ping.size(), 0, to_b.generic(), to_b.size);
      while (::recv(a.socket.get(), ping.data(), ping.size(), MSG_DONTWAIT) < 0) {
      }
    });
  }
  state.counters["half_ns"] = chunks.MedianNs() / 2;
}
BENCHMARK(BM_PlainPingPong)->Arg(64)->UseRealTime();

// Each thread has its own link; nobody contends.
class NoLock final : public DeviceLock {
 public:
  void Lock() override {}
  void Unlock() override {}
};

class Copying final : public PacketReceiver {
 public:
  void Receive(PathId, const Header&, std::span<const std::byte> payload) override {
    std::memcpy(buffer_.data(), payload.data(), payload.size());
    ++packets;
  }
  uint64_t packets = 0;

 private:
  std::vector<std::byte> buffer_ = std::vector<std::byte>(8192);
};

struct End {
  NoLock lock;
  Counters counters;
  Copying receiver;
  LocalAddress address;
  std::unique_ptr<UdpLink> link;
  PathId path = kNoPath;

  explicit End(UdpGso gso) {
    UdpOptions options;
    options.gso = gso;
    options.locals.push_back(Must(BindOwnLoopback()));
    address = options.locals.front().address;
    link = Must(UdpLink::Create(std::move(options), lock, counters));
  }
  void Connect(const End& peer) {
    Flow flow;
    flow.source = address.gid;
    flow.destination = peer.address.gid;
    flow.source_port = kFirstSourcePort;
    path =
        Must(link->Connect(peer.link->LocalBlob(), flow, Deadline::After(std::chrono::seconds(5))));
  }
  void Send(std::span<const std::byte> data) {
    Header header;
    header.dest_qpn = 17;
    const std::span<const std::byte> pieces[] = {data};
    while (!link->Send(path, header, pieces)) {
    }
  }
};

struct Pair {
  End a;
  End b;
  explicit Pair(UdpGso gso) : a(gso), b(gso) {
    a.Connect(b);
    b.Connect(a);
  }
};

// Polls as a device does: a look at Pending first.
size_t PollIfDue(End& end, size_t budget) {
  return end.link->Pending() ? end.link->Poll(end.receiver, budget) : 0;
}

void BM_LinkPingPong(benchmark::State& state) {
  Pair pair(UdpGso::kAuto);
  const std::vector<std::byte> data(static_cast<size_t>(state.range(0)));
  const Other other([&] {
    if (PollIfDue(pair.b, 16) == 0) return;
    pair.b.Send(data);
    pair.b.link->Flush();
  });
  Pin(0);
  End& a = pair.a;
  Chunks<kPieces> chunks;
  for (auto _ : state) {
    chunks.Time([&] {
      a.Send(data);
      a.link->Flush();
      while (PollIfDue(a, 16) == 0) {
      }
    });
  }
  state.counters["half_ns"] = chunks.MedianNs() / 2;
}
BENCHMARK(BM_LinkPingPong)->Arg(64)->Arg(1024)->Arg(4096)->UseRealTime();

// 64 KiB in packets of range(0) bytes from one core to the other, and an answer of one packet when
// all have come. range(1): in bursts.
void BM_64KiB(benchmark::State& state) {
  constexpr size_t kBytes = 65536;
  Pair pair(state.range(1) != 0 ? UdpGso::kAuto : UdpGso::kOff);
  const std::vector<std::byte> data(static_cast<size_t>(state.range(0)));
  const size_t packets = kBytes / data.size();
  End& a = pair.a;
  End& b = pair.b;
  const Other other([&] {
    static_cast<void>(PollIfDue(b, 64));
    if (b.receiver.packets < packets) return;
    b.receiver.packets -= packets;
    b.Send({});
    b.link->Flush();
  });
  Pin(0);
  Chunks<kPieces> chunks;
  for (auto _ : state) {
    chunks.Time([&] {
      for (size_t i = 0; i < packets; ++i) a.Send(data);
      a.link->Flush();
      while (PollIfDue(a, 16) == 0) {
      }
    });
  }
  state.counters["GB_per_s"] = static_cast<double>(kBytes) / chunks.MedianNs();
  state.counters["lost"] = static_cast<double>(b.link->Drops());
}
BENCHMARK(BM_64KiB)->ArgsProduct({{1024, 4096}, {0, 1}})->UseRealTime();

// The same with two messages on their way: what a requester with a window does.
void BM_Stream(benchmark::State& state) {
  constexpr size_t kBytes = 65536;
  Pair pair(state.range(1) != 0 ? UdpGso::kAuto : UdpGso::kOff);
  const std::vector<std::byte> data(static_cast<size_t>(state.range(0)));
  const size_t packets = kBytes / data.size();
  End& a = pair.a;
  End& b = pair.b;
  const Other other([&] {
    static_cast<void>(PollIfDue(b, 64));
    if (b.receiver.packets < packets) return;
    b.receiver.packets -= packets;
    b.Send({});
    b.link->Flush();
  });
  Pin(0);
  Chunks<kPieces> chunks;
  uint64_t messages = 0;
  for (auto _ : state) {
    chunks.Time([&] {
      for (size_t i = 0; i < packets; ++i) a.Send(data);
      a.link->Flush();
      ++messages;
      while (a.receiver.packets + 2 <= messages) PollIfDue(a, 16);
    });
  }
  while (a.receiver.packets < messages) PollIfDue(a, 16);
  state.counters["GB_per_s"] = static_cast<double>(kBytes) / chunks.MedianNs();
}
BENCHMARK(BM_Stream)->ArgsProduct({{1024, 4096}, {0, 1}})->UseRealTime();

// The instructions and system calls of one core: sent, flushed and polled here.
void BM_SendAndPoll(benchmark::State& state) {
  Pair pair(UdpGso::kAuto);
  const std::vector<std::byte> data(static_cast<size_t>(state.range(0)));
  const int64_t batch = state.range(1);
  for (auto _ : state) {
    for (int64_t i = 0; i < batch; ++i) pair.a.Send(data);
    pair.a.link->Flush();
    const uint64_t end = pair.b.receiver.packets + static_cast<uint64_t>(batch);
    while (pair.b.receiver.packets < end) pair.b.link->Poll(pair.b.receiver, 64);
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(BM_SendAndPoll)->Args({64, 1})->Args({64, 16})->Args({4096, 16});

// What a poller of an idle device pays: for a look, and for being told that none is due.
void BM_EmptyPoll(benchmark::State& state) {
  Pair pair(UdpGso::kAuto);
  for (auto _ : state) benchmark::DoNotOptimize(pair.a.link->Poll(pair.a.receiver, 16));
}
BENCHMARK(BM_EmptyPoll);

void BM_EmptyPending(benchmark::State& state) {
  Pair pair(UdpGso::kAuto);
  for (auto _ : state) benchmark::DoNotOptimize(pair.a.link->Pending());
}
BENCHMARK(BM_EmptyPending);

// The ICRC of a packet, and the part of it that does not depend on the packet's content.
void BM_Icrc(benchmark::State& state) {
  Flow flow;
  flow.source = flow.destination = LocalAddress::Ipv4(127, 0, 0, 1).gid;
  const std::vector<std::byte> packet(static_cast<size_t>(state.range(0)) + kBthBytes);
  for (auto _ : state) benchmark::DoNotOptimize(TransportIcrc(flow, packet));
}
BENCHMARK(BM_Icrc)->Arg(0)->Arg(64)->Arg(4096);

void BM_IcrcCached(benchmark::State& state) {
  Flow flow;
  flow.source = flow.destination = LocalAddress::Ipv4(127, 0, 0, 1).gid;
  IcrcCache cache;
  const std::vector<std::byte> packet(static_cast<size_t>(state.range(0)) + kBthBytes);
  for (auto _ : state) benchmark::DoNotOptimize(cache.Of(flow, packet));
}
BENCHMARK(BM_IcrcCached)->Arg(0)->Arg(64)->Arg(4096);

void BM_IcrcOfBytes(benchmark::State& state) {
  const std::vector<std::byte> packet(static_cast<size_t>(state.range(0)) + kBthBytes);
  for (auto _ : state) benchmark::DoNotOptimize(ExtendIcrc(kIcrcSeed, packet));
}
BENCHMARK(BM_IcrcOfBytes)->Arg(0)->Arg(64)->Arg(4096);

}  // namespace
}  // namespace verbscope::soft
