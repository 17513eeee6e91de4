// What the packet format costs per packet: Encode and Decode are on the path of every message, the
// ICRC only where packets leave the host. Sizes are whole IPv4 packets without ICRC (40 bytes of
// headers): 1072 and 4144 are near a full packet of path MTU 1024 and 4096.
#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transports/soft/wire/frame.h"
#include "transports/soft/wire/header.h"
#include "transports/soft/wire/icrc.h"

namespace verbscope::soft {
namespace {

Header MakeHeader(const benchmark::State& state) {
  return {.opcode = static_cast<Opcode>(state.range(0)), .dest_qpn = 9, .psn = 5};
}

void BM_Encode(benchmark::State& state) {
  Header header = MakeHeader(state);
  std::array<std::byte, kMaxHeaderBytes> out;
  for (auto _ : state) {
    benchmark::DoNotOptimize(header);
    benchmark::DoNotOptimize(Encode(header, out.data()));
    benchmark::ClobberMemory();
  }
  state.SetLabel(std::string(Info(header.opcode).name));
}

void BM_Decode(benchmark::State& state) {
  Header header = MakeHeader(state);
  std::array<std::byte, kMaxHeaderBytes + 64> bytes{};
  Encode(header, bytes.data());
  std::span<const std::byte> payload;
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes);
    benchmark::DoNotOptimize(Decode(bytes, header, payload));
    benchmark::DoNotOptimize(payload);
    benchmark::ClobberMemory();
  }
  state.SetLabel(std::string(Info(header.opcode).name));
}

void ForOpcodes(benchmark::internal::Benchmark* benchmark) {
  for (Opcode opcode :
       {Opcode::kSendOnly, Opcode::kWriteOnlyImm, Opcode::kAck, Opcode::kCompareSwap}) {
    benchmark->Arg(static_cast<int64_t>(opcode));
  }
}
BENCHMARK(BM_Encode)->Apply(ForOpcodes);
BENCHMARK(BM_Decode)->Apply(ForOpcodes);

void BM_Icrc(benchmark::State& state) {
  std::vector<std::byte> packet(static_cast<size_t>(state.range(0)), std::byte{0x5a});
  packet[0] = std::byte{0x45};
  for (auto _ : state) {
    benchmark::DoNotOptimize(Icrc(packet));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Icrc)->Arg(44)->Arg(104)->Arg(1072)->Arg(4144);

void BM_RecoverId(benchmark::State& state) {
  uint32_t received = 0x12345678;
  for (auto _ : state) {
    benchmark::DoNotOptimize(RecoverId(0, received, static_cast<size_t>(state.range(0))));
    benchmark::DoNotOptimize(received);
  }
}
BENCHMARK(BM_RecoverId)->Arg(200)->Arg(4140);

Flow MakeFlow() {
  return {.source = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, 1},
          .destination = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, 2},
          .source_port = 0xc000};
}

void BM_BuildTransport(benchmark::State& state) {
  const std::vector<std::byte> data(static_cast<size_t>(state.range(0)));
  const std::span<const std::byte> pieces[] = {data};
  std::vector<std::byte> out;
  for (auto _ : state) {
    BuildTransport(MakeFlow(), {.dest_qpn = 9}, pieces, out);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_BuildTransport)->Arg(0)->Arg(1024)->Arg(4096);

void BM_VerifyTransport(benchmark::State& state) {
  const std::vector<std::byte> data(static_cast<size_t>(state.range(0)));
  const std::span<const std::byte> pieces[] = {data};
  std::vector<std::byte> out;
  BuildTransport(MakeFlow(), {.dest_qpn = 9}, pieces, out);
  for (auto _ : state) benchmark::DoNotOptimize(VerifyTransport(MakeFlow(), out));
}
BENCHMARK(BM_VerifyTransport)->Arg(0)->Arg(1024)->Arg(4096);

}  // namespace
}  // namespace verbscope::soft
