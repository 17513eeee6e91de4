// What a packet costs from one link to another: half a round trip, and packets per second one way.
// Two pinned threads stand for two processes; the rings are the same.
//
// A virtual machine may move its processors between cores: compare runs of the same minutes, and
// look at BM_CacheLine, the floor of the machine at that moment.
#include <benchmark/benchmark.h>
#include <pthread.h>
#include <sched.h>

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
#include "transports/soft/link/memory_link.h"

namespace verbscope::soft {
namespace {

constexpr int kPieces = 512;  // of a chunk

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
  std::unique_ptr<MemoryLink> link;
  PathId path = kNoPath;

  End() {
    auto made = MemoryLink::Create(lock, counters);
    if (!made) std::abort();
    link = std::move(*made);
  }
  void Connect(const End& peer) {
    const auto connected =
        link->Connect(peer.link->LocalBlob(), Flow{}, Deadline::After(std::chrono::seconds(5)));
    if (!connected) std::abort();
    path = *connected;
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
  Pair() {
    a.Connect(b);
    b.Connect(a);
    a.link->Serve();
    b.link->Serve();
  }
};

// The bare cost of a line that goes from core to core, one way.
void BM_CacheLine(benchmark::State& state) {
  alignas(128) static std::atomic<uint64_t> word;
  word = 0;
  std::atomic<bool> stop = false;
  std::thread peer([&] {
    Pin(1);
    for (uint64_t next = 1; !stop.load(std::memory_order_relaxed);) {
      if (word.load(std::memory_order_acquire) != next) continue;
      word.store(next + 1, std::memory_order_release);
      next += 2;
    }
  });
  Pin(0);
  uint64_t at = 0;
  Chunks<kPieces> chunks;
  for (auto _ : state) {
    chunks.Time([&] {
      word.store(at + 1, std::memory_order_release);
      at += 2;
      while (word.load(std::memory_order_acquire) != at) {
      }
    });
  }
  state.counters["half_ns"] = chunks.MedianNs() / 2;
  stop = true;
  peer.join();
}
BENCHMARK(BM_CacheLine)->UseRealTime();

void BM_PingPong(benchmark::State& state) {
  Pair pair;
  const std::vector<std::byte> data(static_cast<size_t>(state.range(0)));
  std::atomic<bool> stop = false;
  std::thread peer([&] {
    Pin(1);
    End& b = pair.b;
    while (!stop.load(std::memory_order_relaxed)) {
      if (b.link->Poll(b.receiver, 1) == 0) continue;
      b.Send(data);
      b.link->Flush();
    }
  });
  Pin(0);
  End& a = pair.a;
  Chunks<kPieces> chunks;
  for (auto _ : state) {
    chunks.Time([&] {
      a.Send(data);
      a.link->Flush();
      while (a.link->Poll(a.receiver, 1) == 0) {
      }
    });
  }
  state.counters["half_ns"] = chunks.MedianNs() / 2;
  stop = true;
  peer.join();
}
BENCHMARK(BM_PingPong)->Arg(0)->Arg(64)->Arg(200)->Arg(1024)->Arg(4096)->UseRealTime();

// `range(1)` packets for each Flush.
void BM_OneWay(benchmark::State& state) {
  Pair pair;
  const auto bytes = static_cast<size_t>(state.range(0));
  const std::vector<std::byte> data(bytes);
  std::atomic<bool> stop = false;
  std::thread peer([&] {
    Pin(1);
    while (!stop.load(std::memory_order_relaxed)) pair.b.link->Poll(pair.b.receiver, 16);
  });
  Pin(0);
  const int64_t batch = state.range(1);
  Chunks<kPieces> chunks;
  for (auto _ : state) {
    chunks.Time([&] {
      for (int64_t i = 0; i < batch; ++i) pair.a.Send(data);
      pair.a.link->Flush();
    });
  }
  stop = true;
  peer.join();
  const double packets_per_us = static_cast<double>(batch) / chunks.MedianNs() * 1e3;
  state.counters["Mpackets_per_s"] = packets_per_us;
  state.counters["GB_per_s"] = packets_per_us * static_cast<double>(bytes) / 1e3;
}
BENCHMARK(BM_OneWay)
    ->Args({64, 1})
    ->Args({64, 16})
    ->Args({200, 16})
    ->Args({4096, 16})
    ->UseRealTime();

// The instructions of one packet, without its way from core to core: sent, flushed and polled here.
void BM_SendAndPoll(benchmark::State& state) {
  End end;
  end.Connect(end);
  end.link->Serve();
  const std::vector<std::byte> data(static_cast<size_t>(state.range(0)));
  const int64_t batch = state.range(1);
  for (auto _ : state) {
    for (int64_t i = 0; i < batch; ++i) end.Send(data);
    end.link->Flush();
    end.link->Poll(end.receiver, 64);
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(BM_SendAndPoll)->Args({64, 1})->Args({64, 16})->Args({4096, 16});

// What the owner of an idle device pays.
void BM_EmptyPoll(benchmark::State& state) {
  Pair pair;
  for (auto _ : state) benchmark::DoNotOptimize(pair.a.link->Poll(pair.a.receiver, 16));
}
BENCHMARK(BM_EmptyPoll);

void BM_EmptyPending(benchmark::State& state) {
  Pair pair;
  for (auto _ : state) benchmark::DoNotOptimize(pair.a.link->Pending());
}
BENCHMARK(BM_EmptyPending);

}  // namespace
}  // namespace verbscope::soft
