// Two pinned processes on the soft device, and what they reach:
//
//   speed_probe lat  BYTES MILLISECONDS    half round trip of a SEND ping-pong
//   speed_probe rate BYTES MILLISECONDS    one-way SENDs, posted in lists, both sides counting
//   speed_probe write BYTES MILLISECONDS   one-way WRITEs, a window of them on their way
//   speed_probe line MILLISECONDS          the bare machine: one cache line to and fro
//   speed_probe udp  BYTES MILLISECONDS    the same of plain UDP sockets, both sides spinning
//   speed_probe paced RATE MILLISECONDS    RATE messages a second, both sides asleep in between:
//                                          the CPU time of both, and who woke the receiver
//
// lat, rate and write take a device string as a last argument (soft: in memory). Prints one line of
// JSON. The child is CPU 1, the parent CPU 0. For tests/soft/speed_suite.py, which compares with
// UCX on the same two CPUs, and udp_speed_suite.py.
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/histogram/histogram.h"
#include "tests/soft/probe_end.h"
#include "tests/soft/udp_ping_pong.h"
#include "transports/soft/device/core.h"
#include "transports/soft/options/parse.h"

namespace verbscope::soft {
namespace {

unsigned Signalled(const End& end, bool signal) {
  return signal ? end.send_flags | IBV_SEND_SIGNALED : end.send_flags;
}

// One message to and fro, the send completion once in 32.
uint64_t PingPong(End& end, bool first, uint64_t end_ns, Histogram* histogram) {
  ibv_sge sge = end.Sge(false);
  ibv_send_wr wr = {};
  wr.sg_list = &sge;
  wr.num_sge = end.bytes > 0 ? 1 : 0;
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  ibv_wc wc;
  uint64_t messages = 0;
  uint32_t consumed = 0;
  const uint64_t start = NowNs();
  uint64_t previous = start;
  for (;;) {
    if (!first) {
      uint32_t empty = 0;
      while (ibv_poll_cq(end.recv_cq.get(), 1, &wc) == 0) {
        if (++empty % 65536 == 0 && NowNs() > end_ns + 100'000'000) return messages;
      }
      Check(wc);
      if (histogram != nullptr) {
        const uint64_t now = NowNs();
        histogram->Record(static_cast<int64_t>(now - previous) / 2);
        previous = now;
        if (now > end_ns) return messages;
      }
      ++messages;
      if (++consumed == kList) {
        consumed = 0;
        end.PostReceives(kList);
      }
    }
    first = false;
    const bool signal = messages % 32 == 31;
    wr.send_flags = Signalled(end, signal);
    if (ibv_post_send(end.qp.get(), &wr, &bad) != 0) Die("ibv_post_send");
    if (signal) {
      while (ibv_poll_cq(end.send_cq.get(), 1, &wc) == 0) {
      }
      Check(wc);
    }
  }
}

void SendAll(End& end, uint64_t end_ns) {
  ibv_sge sge = end.Sge(false);
  std::array<ibv_send_wr, kList> list = {};
  for (uint32_t i = 0; i < kList; ++i) {
    list[i].sg_list = &sge;
    list[i].num_sge = 1;
    list[i].opcode = IBV_WR_SEND;
    list[i].send_flags = Signalled(end, i + 1 == kList);
    list[i].next = i + 1 < kList ? &list[i + 1] : nullptr;
  }
  uint32_t open = 0;
  std::array<ibv_wc, 16> wc;
  // The clock is not read with every poll: that would be a tenth of a core.
  for (uint32_t polls = 0; polls % 64 != 0 || NowNs() < end_ns; ++polls) {
    while (open + kList <= kDepth) {
      ibv_send_wr* bad = nullptr;
      if (ibv_post_send(end.qp.get(), list.data(), &bad) != 0) Die("ibv_post_send");
      open += kList;
    }
    const int got = ibv_poll_cq(end.send_cq.get(), 16, wc.data());
    for (int i = 0; i < got; ++i) Check(wc[static_cast<size_t>(i)]);
    open -= kList * static_cast<uint32_t>(got);
  }
}

// WRITEs, each signalled, a few of them on their way: what a program with a window does.
void WriteAll(End& end, uint64_t milliseconds) {
  constexpr uint64_t kWindow = 8;
  ibv_sge sge = end.Sge(false);
  ibv_send_wr wr = {};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = end.send_flags | IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = end.remote_address;
  wr.wr.rdma.rkey = end.rkey;
  uint64_t posted = 0;
  uint64_t done = 0;
  const uint64_t start = NowNs();
  uint64_t now = start;
  for (const uint64_t end_ns = start + milliseconds * 1'000'000; now < end_ns; now = NowNs()) {
    for (; posted - done < kWindow; ++posted) {
      ibv_send_wr* bad = nullptr;
      if (ibv_post_send(end.qp.get(), &wr, &bad) != 0) Die("ibv_post_send");
    }
    ibv_wc wc;
    for (int polls = 0; polls < 64; ++polls) {
      if (ibv_poll_cq(end.send_cq.get(), 1, &wc) == 0) continue;
      Check(wc);
      ++done;
      break;
    }
  }
  std::printf("{\"bytes_per_s\": %.0f, \"bursts\": %llu, \"resent\": %llu}\n",
              static_cast<double>(done * end.bytes) * 1e9 / static_cast<double>(now - start),
              static_cast<unsigned long long>(CounterOf(*end.device, "udp_bursts")),
              static_cast<unsigned long long>(CounterOf(*end.device, "completer_retry_err")));
}

// The target of WRITEs has nothing to do but to poll, until the writer says that it is done.
void ServeWrites(End& end, int socket) {
  ibv_wc wc;
  char done = 0;
  for (uint32_t polls = 0;; ++polls) {
    if (ibv_poll_cq(end.recv_cq.get(), 1, &wc) != 0) Die("a completion nobody asked for");
    if (polls % 4096 == 0 && ::recv(socket, &done, 1, MSG_DONTWAIT) >= 0) return;
  }
}

struct Rate {
  uint64_t messages = 0;
  uint64_t ns = 0;
};

Rate ReceiveAll(End& end) {
  std::array<ibv_wc, kList> wc;
  Rate rate;
  uint64_t first = 0;
  uint64_t last = 0;
  uint32_t consumed = 0;
  uint32_t empty = 0;
  for (;;) {
    const int got = ibv_poll_cq(end.recv_cq.get(), kList, wc.data());
    if (got == 0) {
      if (++empty % 4096 != 0) continue;
      const uint64_t now = NowNs();
      if (last != 0 && now > last + 200'000'000) break;
      continue;
    }
    for (int i = 0; i < got; ++i) Check(wc[static_cast<size_t>(i)]);
    if (first == 0) first = NowNs();
    rate.messages += static_cast<uint64_t>(got);
    consumed += static_cast<uint32_t>(got);
    if (consumed >= kList) {
      end.PostReceives(consumed);
      consumed = 0;
      last = NowNs();
    }
  }
  rate.ns = last - first;
  return rate;
}

// Messages at a fixed pace from a sender that sleeps to a receiver that sleeps. 0 bytes end it.
void SendPaced(End& end, uint64_t per_s, uint64_t end_ns) {
  ibv_sge sge = end.Sge(false);
  ibv_send_wr wr = {};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_wc wc;
  uint64_t open = 0;
  const uint64_t step = 1'000'000'000 / per_s;
  for (uint64_t next = NowNs(); next < end_ns; next += step) {
    const timespec until = {.tv_sec = static_cast<time_t>(next / 1'000'000'000),
                            .tv_nsec = static_cast<long>(next % 1'000'000'000)};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    ibv_send_wr* bad = nullptr;
    if (next + step >= end_ns) wr.num_sge = 0;
    if (ibv_post_send(end.qp.get(), &wr, &bad) != 0) Die("ibv_post_send");
    ++open;
    while (ibv_poll_cq(end.send_cq.get(), 1, &wc) == 1) {
      Check(wc);
      --open;
    }
  }
  while (open > 0) {
    if (ibv_poll_cq(end.send_cq.get(), 1, &wc) == 1) --open;
  }
}

uint64_t ReceiveAsleep(End& end) {
  ibv_wc wc;
  for (uint64_t messages = 0;;) {
    if (ibv_req_notify_cq(end.recv_cq.get(), 0) != 0) Die("ibv_req_notify_cq");
    while (ibv_poll_cq(end.recv_cq.get(), 1, &wc) == 1) {
      Check(wc);
      ++messages;
      if (wc.byte_len == 0) return messages;
      end.PostReceives(1);
    }
    ibv_cq* cq = Must(end.device->GetCqEvent(end.channel.get()));
    if (cq != nullptr) end.device->AckCqEvents(cq, 1);
  }
}

double CpuSeconds(int who) {
  rusage usage = {};
  ::getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int Paced(uint64_t per_s, uint64_t milliseconds) {
  std::array<int, 2> sockets = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) Die("socketpair");
  const uint64_t start = NowNs();
  const pid_t child = Fork();
  Pin(child == 0 ? 1 : 0);
  End end;
  end.Open({}, 64, sockets[child == 0 ? 1 : 0], /*events=*/true);
  uint64_t messages = 0;
  if (child == 0) {
    messages = ReceiveAsleep(end);
    if (::write(sockets[1], &messages, sizeof(messages)) != sizeof(messages)) Die("no parent");
    ::_exit(0);
  }
  SendPaced(end, per_s, NowNs() + milliseconds * 1'000'000);
  if (::read(sockets[0], &messages, sizeof(messages)) != sizeof(messages)) Die("no child");
  const uint64_t woken = CounterOf(*end.device, "peer_channels_woken");
  ::waitpid(child, nullptr, 0);
  const double seconds = static_cast<double>(NowNs() - start) * 1e-9;
  const double cpu = CpuSeconds(RUSAGE_SELF) + CpuSeconds(RUSAGE_CHILDREN);
  std::printf("{\"messages\": %llu, \"cpu_fraction\": %.4f, \"channels_woken\": %llu}\n",
              static_cast<unsigned long long>(messages), cpu / seconds,
              static_cast<unsigned long long>(woken));
  return 0;
}

int Line(uint64_t milliseconds) {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) Die("mmap");
  auto* word = new (page) std::atomic<uint64_t>(0);
  const uint64_t end_ns = NowNs() + milliseconds * 1'000'000;
  const pid_t child = Fork();
  const uint64_t own = child == 0 ? 1 : 0;
  Pin(child == 0 ? 1 : 0);
  uint64_t trips = 0;
  const uint64_t start = NowNs();
  for (;; ++trips) {
    uint64_t value = 0;
    while ((value = word->load(std::memory_order_acquire)) % 2 != own) {
      if (value == UINT64_MAX - 1 || value == UINT64_MAX) break;
    }
    if (value >= UINT64_MAX - 1) break;
    if (child != 0 && trips % 1024 == 0 && NowNs() > end_ns) {
      word->store(UINT64_MAX, std::memory_order_release);
      break;
    }
    word->store(value + 1, std::memory_order_release);
  }
  if (child == 0) ::_exit(0);
  const uint64_t ns = NowNs() - start;
  ::waitpid(child, nullptr, 0);
  std::printf("{\"one_way_ns\": %.1f}\n", static_cast<double>(ns) / static_cast<double>(trips) / 2);
  return 0;
}

int Run(const std::string& mode, uint32_t bytes, uint64_t milliseconds,
        const SoftOptions& options) {
  std::array<int, 2> sockets = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) Die("socketpair");
  const pid_t child = Fork();
  const bool is_child = child == 0;
  Pin(is_child ? 1 : 0);
  End end;
  end.Open(options, bytes, sockets[is_child ? 1 : 0]);
  const uint64_t end_ns = NowNs() + milliseconds * 1'000'000;
  if (mode == "lat") {
    Histogram histogram;
    PingPong(end, !is_child, end_ns, is_child ? nullptr : &histogram);
    if (!is_child) {
      const auto rank = [&histogram](uint64_t percent) {
        return static_cast<long long>(
            histogram.ValueAtRank(std::max<uint64_t>(histogram.count() * percent / 100, 1))
                .highest_ns);
      };
      std::printf("{\"p50_ns\": %lld, \"mean_ns\": %.1f, \"p99_ns\": %lld, \"samples\": %llu}\n",
                  rank(50), histogram.mean(), rank(99),
                  static_cast<unsigned long long>(histogram.count()));
    }
  } else if (mode == "write") {
    if (is_child) {
      ServeWrites(end, sockets[1]);
    } else {
      WriteAll(end, milliseconds);
      if (::send(sockets[0], "d", 1, MSG_NOSIGNAL) != 1) Die("no child");
    }
  } else if (is_child) {
    const Rate rate = ReceiveAll(end);
    const double seconds = static_cast<double>(rate.ns) * 1e-9;
    std::printf("{\"messages_per_s\": %.0f, \"bytes_per_s\": %.0f}\n",
                static_cast<double>(rate.messages) / seconds,
                static_cast<double>(rate.messages) * bytes / seconds);
  } else {
    SendAll(end, end_ns);
  }
  std::fflush(stdout);
  if (is_child) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace verbscope::soft

int main(int argc, char** argv) {
  using namespace verbscope::soft;
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto number = [&](int at) {
    return at < argc ? std::strtoull(argv[at], nullptr, 10) : 0ULL;
  };
  if (mode == "line" && argc == 3) return Line(number(2));
  if (mode == "paced" && argc == 4) {
    return Paced(std::max(number(2), 1ULL), number(3));
  }
  if (mode == "udp" && argc == 4) return UdpPingPong(static_cast<size_t>(number(2)), number(3));
  if ((mode != "lat" && mode != "rate" && mode != "write") || argc < 4 || argc > 5) {
    std::fprintf(
        stderr,
        "usage: speed_probe lat|rate|write BYTES MILLISECONDS [DEVICE] | line MILLISECONDS "
        "| udp BYTES MILLISECONDS | paced RATE MILLISECONDS\n");
    return 1;
  }
  const SoftOptions options = Must(ParseDeviceString(argc == 5 ? argv[4] : "soft", {}));
  return Run(mode, static_cast<uint32_t>(number(2)), number(3), options);
}
