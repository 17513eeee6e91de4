// What one message costs inside the engine, both sides together: a 64-byte SEND or WRITE from post
// to poll over a sink that costs nothing but the copy of the header and the payload. The receive
// side posts its buffer again for every message.
#include <benchmark/benchmark.h>
#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "transports/soft/engine/engine.h"

namespace verbscope::soft {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

// Keeps what one engine sends until the other one takes it.
class Wire : public PacketSink, public EventSink {
 public:
  bool Send(PathId, const Header& header, PayloadPieces payload) override {
    Packet& packet = packets_[count_++];
    packet.header = header;
    packet.bytes = 0;
    for (const std::span<const std::byte> piece : payload) {
      std::memcpy(packet.payload.data() + packet.bytes, piece.data(), piece.size());
      packet.bytes += piece.size();
    }
    return true;
  }
  bool CanSend(PathId) const override { return true; }
  void OnCompletionEvent(CompletionQueue&) override {}
  void OnQpEvent(ibv_event_type, QueuePair&) override { std::abort(); }
  void OnCqError(CompletionQueue&) override { std::abort(); }
  void OnSrqEvent(ibv_event_type, ReceiveQueue&) override {}

  void DeliverTo(Engine& engine) {
    const size_t count = count_;
    count_ = 0;
    for (size_t i = 0; i < count; ++i) {
      engine.Receive(1, packets_[i].header, {packets_[i].payload.data(), packets_[i].bytes});
    }
  }

 private:
  struct Packet {
    Header header;
    size_t bytes;
    std::array<std::byte, 4096> payload;
  };
  std::vector<Packet> packets_ = std::vector<Packet>(256);
  size_t count_ = 0;
};

struct Device {
  Device() : engine({}, wire, wire), cq(1024) {
    engine.memory().Add({.key = 0x1234567,
                         .pd = 1,
                         .access = kAccess,
                         .address = reinterpret_cast<uintptr_t>(memory.data()),
                         .bytes = memory.size()});
    QpOptions options;
    options.qpn = engine.FreeQpn().value();
    options.pd = 1;
    options.send_cq = options.recv_cq = &cq;
    options.cap = {.max_send_wr = 256,
                   .max_recv_wr = 256,
                   .max_send_sge = 1,
                   .max_recv_sge = 1,
                   .max_inline_data = 64};
    qp = &engine.CreateQp(options);
    qp->SetPath(1);
    ibv_qp_attr attributes = {};
    attributes.qp_access_flags = kAccess;
    attributes.path_mtu = IBV_MTU_4096;
    attributes.dest_qp_num = options.qpn;  // the first of either engine
    attributes.timeout = 14;
    attributes.retry_cnt = attributes.rnr_retry = 7;
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 16;
    const auto modify = [&](ibv_qp_state state, int mask) {
      attributes.qp_state = state;
      if (qp->Modify(attributes, IBV_QP_STATE | mask) != 0) std::abort();
    };
    modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    modify(IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    modify(IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC);
  }

  void PostReceive() {
    ibv_sge sge = {reinterpret_cast<uintptr_t>(memory.data()), 4096, 0x1234567};
    ibv_recv_wr wr = {};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad;
    if (qp->PostReceive(&wr, &bad) != 0) std::abort();
  }

  std::vector<std::byte> memory = std::vector<std::byte>(4096);
  Wire wire;
  Engine engine;
  CompletionQueue cq;
  QueuePair* qp = nullptr;
};

int PollAll(CompletionQueue& cq) {
  std::array<ibv_wc, 16> wcs;
  int all = 0;
  while (const int count = cq.Poll(16, wcs.data())) {
    if (wcs[0].status != IBV_WC_SUCCESS) std::abort();
    all += count;
  }
  return all;
}

// Arguments: how many messages at a time, and their bytes. The time is that of one message.
void Measure(benchmark::State& state, ibv_wr_opcode opcode, unsigned flags) {
  Device a;
  Device b;
  const int64_t batch = state.range(0);
  ibv_sge sge = {reinterpret_cast<uintptr_t>(a.memory.data()),
                 static_cast<uint32_t>(state.range(1)), 0x1234567};
  ibv_send_wr wr = {};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED | flags;
  wr.wr.rdma = {reinterpret_cast<uintptr_t>(b.memory.data()), 0x1234567};
  ibv_send_wr* bad;
  const bool receives = opcode == IBV_WR_SEND;
  for (int64_t i = 0; i < batch && receives; ++i) b.PostReceive();
  while (state.KeepRunningBatch(batch)) {
    for (int64_t i = 0; i < batch; ++i) {
      if (a.qp->PostSend(&wr, &bad) != 0) std::abort();
    }
    a.engine.Touch(*a.qp);
    a.engine.Transmit();
    a.wire.DeliverTo(b.engine);
    b.engine.Transmit();
    const int received = PollAll(b.cq);
    for (int i = 0; i < received; ++i) b.PostReceive();
    b.wire.DeliverTo(a.engine);
    a.engine.Transmit();
    if (PollAll(a.cq) != batch) std::abort();
  }
}

void BM_Send(benchmark::State& state) { Measure(state, IBV_WR_SEND, 0); }
void BM_SendInline(benchmark::State& state) { Measure(state, IBV_WR_SEND, IBV_SEND_INLINE); }
void BM_Write(benchmark::State& state) { Measure(state, IBV_WR_RDMA_WRITE, 0); }
void BM_Read(benchmark::State& state) { Measure(state, IBV_WR_RDMA_READ, 0); }

BENCHMARK(BM_Send)->Args({1, 64})->Args({16, 64})->Args({16, 4096});
BENCHMARK(BM_SendInline)->Args({1, 64})->Args({16, 64});
BENCHMARK(BM_Write)->Args({1, 64})->Args({16, 64});
BENCHMARK(BM_Read)->Args({1, 64})->Args({16, 64});

}  // namespace
}  // namespace verbscope::soft
