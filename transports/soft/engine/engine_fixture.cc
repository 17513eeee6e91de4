#include "transports/soft/engine/engine_fixture.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "transports/soft/wire/header.h"

namespace verbscope::soft::testing {
namespace {

std::vector<std::byte> Bytes(const Header& header, PayloadPieces payload) {
  std::vector<std::byte> bytes(kMaxHeaderBytes);
  bytes.resize(Encode(header, bytes.data()));
  for (const std::span<const std::byte> piece : payload) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }
  bytes.resize(bytes.size() + header.pad);
  return bytes;
}

}  // namespace

Side::Side(World& its_world, int its_index, const EngineOptions& options)
    : world(its_world), index(its_index), engine(options, *this, *this) {}

bool Side::Send(PathId path, const Header& header, PayloadPieces payload) {
  if (path != peer_path()) std::abort();
  return world.Accept(*this, header, payload);
}

bool Side::CanSend(PathId) const { return world.OnTheWay(index) < world.channel.room; }

void Side::OnQpEvent(ibv_event_type type, QueuePair& qp) { qp_events.push_back({type, qp.qpn()}); }

void Side::OnSrqEvent(ibv_event_type, ReceiveQueue& srq) { srq_events.push_back(&srq); }

uint32_t Side::Register(std::span<std::byte> memory, int access, uint32_t pd) {
  MemoryRegion region = {.pd = pd,
                         .access = static_cast<uint32_t>(access),
                         .address = reinterpret_cast<uintptr_t>(memory.data()),
                         .bytes = memory.size()};
  do {
    region.key = static_cast<uint32_t>(world.random());
  } while (!engine.memory().Add(region));
  return region.key;
}

size_t Side::Count(ibv_event_type type) const {
  return static_cast<size_t>(std::ranges::count(qp_events, type, &QpEvent::type));
}

World::World(const EngineOptions& options, const ChannelOptions& channel_options, uint64_t seed)
    : random(seed), channel(channel_options), a(*this, 0, options), b(*this, 1, options) {}

bool World::Accept(const Side& from, const Header& header, PayloadPieces payload) {
  if (!from.CanSend(from.peer_path()) || Chance(channel.refused_per_mille)) return false;
  if (keep_log || lose) {
    Sent sent{.time_ns = now_ns, .from = from.index, .header = header, .payload = {}};
    for (const std::span<const std::byte> piece : payload) {
      sent.payload.insert(sent.payload.end(), piece.begin(), piece.end());
    }
    const bool lost = lose && lose(sent);
    if (keep_log) log.push_back(std::move(sent));
    if (lost) return true;
  }
  if (Chance(channel.lost_per_mille)) return true;
  std::vector<std::byte> bytes = Bytes(header, payload);
  if (Chance(channel.doubled_per_mille)) Fly(from.index, bytes);
  Fly(from.index, std::move(bytes));
  return true;
}

void World::Fly(int from, std::vector<std::byte> bytes) {
  const uint64_t delay = Chance(channel.delayed_per_mille) ? random() % channel.delay_ns : 0;
  heap_.push_back({.arrival_ns = now_ns + channel.latency_ns + delay,
                   .number = flights_++,
                   .from = from,
                   .bytes = std::move(bytes)});
  std::push_heap(heap_.begin(), heap_.end());
  ++on_the_way_[static_cast<size_t>(from)];
}

void World::Land() {
  std::pop_heap(heap_.begin(), heap_.end());
  const Flight flight = std::move(heap_.back());
  heap_.pop_back();
  --on_the_way_[static_cast<size_t>(flight.from)];
  Side& to = flight.from == 0 ? b : a;
  Header header;
  std::span<const std::byte> payload;
  if (Decode(flight.bytes, header, payload) != DecodeResult::kOk) std::abort();
  to.engine.Receive(to.peer_path(), header, payload);
}

bool World::Deliver(Side& to, PathId path, const Header& header,
                    std::span<const std::byte> payload) {
  const std::array<std::span<const std::byte>, 1> pieces = {payload};
  const std::vector<std::byte> bytes = Bytes(header, pieces);
  Header decoded;
  std::span<const std::byte> carried;
  if (Decode(bytes, decoded, carried) != DecodeResult::kOk) return false;
  to.engine.Receive(path, decoded, carried);
  return true;
}

void World::ServeSide(Side& side) {
  side.engine.Transmit();
  for (; side.failed_cqs_ < side.cq_errors.size(); ++side.failed_cqs_) {
    side.engine.FailQpsOf(*side.cq_errors[side.failed_cqs_]);
    side.engine.Transmit();
  }
  const std::optional<uint64_t> timer = side.engine.NextTimer();
  if (timer && *timer <= now_ns) {
    side.engine.Tick(now_ns);
    side.engine.Transmit();
  }
}

void World::Serve() {
  ServeSide(a);
  ServeSide(b);
}

bool World::Step(uint64_t until_ns) {
  Serve();
  std::optional<uint64_t> next;
  const auto consider = [&next](std::optional<uint64_t> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  if (!heap_.empty()) consider(heap_.front().arrival_ns);
  consider(a.engine.NextTimer());
  consider(b.engine.NextTimer());
  // A refusal at random, with nothing on the way: it goes better a moment later.
  if (a.engine.wants_to_transmit() || b.engine.wants_to_transmit()) consider(now_ns + 100);
  if (!next) return false;
  if (*next > until_ns) {
    now_ns = until_ns;
    return false;
  }
  now_ns = std::max(now_ns, *next);
  if (!heap_.empty() && heap_.front().arrival_ns <= now_ns) Land();
  Serve();
  return true;
}

void World::Run(uint64_t limit_ns) {
  const uint64_t end_ns = now_ns + limit_ns;
  while (Step(end_ns)) {
  }
}

Endpoint::Endpoint(Side& its_side, const ConnectOptions& options)
    : side(its_side),
      send_cq(options.cq_entries),
      recv_cq(options.cq_entries),
      memory(options.memory_bytes) {
  key = side.Register(memory, kAllAccess);
  if (options.use_srq) {
    srq = std::make_unique<ReceiveQueue>(options.cap.max_recv_wr, options.cap.max_recv_sge);
    srq->SetPd(1);
  }
  QpOptions qp_options;
  qp_options.qpn = side.engine.FreeQpn().value();
  qp_options.pd = 1;
  qp_options.send_cq = &send_cq;
  qp_options.recv_cq = &recv_cq;
  qp_options.srq = srq.get();
  qp_options.cap = options.cap;
  qp_options.signal_all = options.signal_all;
  qp = &side.engine.CreateQp(qp_options);
}

int Endpoint::Post(const Work& work) {
  ibv_send_wr wr = {};
  std::vector<ibv_sge> local = work.local;
  wr.wr_id = work.id;
  wr.opcode = work.opcode;
  wr.sg_list = local.data();
  wr.num_sge = static_cast<int>(local.size());
  wr.send_flags = work.flags;
  wr.imm_data = work.immediate;
  if (work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    wr.wr.atomic = {work.remote, work.compare, work.swap_add, work.rkey};
  } else if (work.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic = {work.remote, work.swap_add, 0, work.rkey};
  } else {
    wr.wr.rdma = {work.remote, work.rkey};
  }
  ibv_send_wr* bad = nullptr;
  const int result = qp->PostSend(&wr, &bad);
  side.engine.Touch(*qp);
  side.world.Serve();
  return result;
}

int Endpoint::Receive(uint64_t id, std::vector<ibv_sge> local) {
  ibv_recv_wr wr = {};
  wr.wr_id = id;
  wr.sg_list = local.data();
  wr.num_sge = static_cast<int>(local.size());
  if (srq != nullptr) return srq->Post(wr);
  ibv_recv_wr* bad = nullptr;
  return qp->PostReceive(&wr, &bad);
}

std::vector<ibv_wc> Endpoint::PollAll(CompletionQueue& cq) {
  std::vector<ibv_wc> all;
  ibv_wc wc;
  while (cq.Poll(1, &wc) == 1) all.push_back(wc);
  return all;
}

ibv_sge Endpoint::Piece(size_t offset, size_t bytes) const {
  return {Address(offset), static_cast<uint32_t>(bytes), key};
}

uint64_t Endpoint::Address(size_t offset) const {
  return reinterpret_cast<uintptr_t>(memory.data()) + offset;
}

uint64_t& Endpoint::Word(size_t offset) {
  return *reinterpret_cast<uint64_t*>(memory.data() + offset);
}

void Endpoint::Fill(uint8_t seed) {
  for (size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<std::byte>(i * 31 + i / 256 + seed);
  }
}

bool Endpoint::Same(size_t offset, const Endpoint& other, size_t other_offset, size_t bytes) const {
  return std::memcmp(memory.data() + offset, other.memory.data() + other_offset, bytes) == 0;
}

ibv_qp_attr AttributesFor(ibv_qp_state to, const ConnectOptions& options, uint32_t peer_qpn) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = to;
  attributes.port_num = 1;
  attributes.qp_access_flags = static_cast<unsigned>(options.access);
  attributes.path_mtu = options.mtu;
  attributes.dest_qp_num = peer_qpn;
  attributes.rq_psn = attributes.sq_psn = options.psn;
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = options.rd_atomic;
  attributes.min_rnr_timer = options.min_rnr_timer;
  attributes.timeout = options.timeout;
  attributes.retry_cnt = options.retry_cnt;
  attributes.rnr_retry = options.rnr_retry;
  return attributes;
}

int FullMask(ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_INIT:
      return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    case IBV_QPS_RTR:
      return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    case IBV_QPS_RTS:
      return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC;
    default:
      return IBV_QP_STATE;
  }
}

void Endpoint::Connect(const Endpoint& peer, const ConnectOptions& options, ibv_qp_state to) {
  qp->SetPath(side.peer_path(), options.acks_unasked);
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    if (state > to) return;
    if (qp->Modify(AttributesFor(state, options, peer.qp->qpn()), FullMask(state)) != 0) {
      std::abort();
    }
  }
}

int Endpoint::Modify(ibv_qp_state to) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = to;
  const int result = qp->Modify(attributes, IBV_QP_STATE);
  side.engine.Touch(*qp);
  side.world.Serve();
  return result;
}

Connection::Connection(const ConnectOptions& options)
    : world({.profile = options.profile, .window_packets = options.window_packets}, options.channel,
            options.seed),
      a(world.a, options),
      b(world.b, options) {
  a.Connect(b, options);
  b.Connect(a, options);
}

}  // namespace verbscope::soft::testing
