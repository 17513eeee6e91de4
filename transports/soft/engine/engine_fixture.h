// Two engines joined by a channel in virtual time, for tests: packets go through the wire codec,
// take the channel's latency, and are lost, doubled, reordered or refused as its options say, all
// from one seeded generator. Nothing sleeps; World::Step goes to the next moment at which something
// happens.
//
//   Connection c({.mtu = IBV_MTU_256});
//   c.b.Receive(7, {c.b.Piece(0, 100)});
//   c.a.Post({.id = 1, .local = {c.a.Piece(0, 100)}});
//   c.world.Run();
//   EXPECT_EQ(c.b.PollReceive()[0].wr_id, 7);
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_ENGINE_FIXTURE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_ENGINE_FIXTURE_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "transports/soft/engine/engine.h"

namespace verbscope::soft::testing {

inline constexpr uint64_t kMicrosecond = 1'000;
inline constexpr uint64_t kMillisecond = 1'000'000;
inline constexpr uint64_t kSecond = 1'000'000'000;
inline constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
inline constexpr PathId kThirdPath = 77;

struct ChannelOptions {
  uint64_t latency_ns = 1'000;
  uint32_t delayed_per_mille = 0;  // later by up to delay_ns, so others overtake them
  uint64_t delay_ns = 5'000;
  uint32_t lost_per_mille = 0;
  uint32_t doubled_per_mille = 0;
  uint32_t refused_per_mille = 0;  // Send returns false
  size_t room = SIZE_MAX;          // packets on the way in one direction
};

// One packet as it was given to the channel.
struct Sent {
  uint64_t time_ns = 0;
  int from = 0;  // 0: a, 1: b
  Header header;
  std::vector<std::byte> payload;
};

struct QpEvent {
  ibv_event_type type;
  uint32_t qpn;
};

class World;

// One device: an engine, the near end of the channel, and what the engine reported.
class Side : public PacketSink, public EventSink {
 public:
  Side(World& world, int index, const EngineOptions& options);

  bool Send(PathId path, const Header& header, PayloadPieces payload) override;
  bool CanSend(PathId path) const override;
  void OnCompletionEvent(CompletionQueue& cq) override { completion_events.push_back(&cq); }
  void OnQpEvent(ibv_event_type type, QueuePair& qp) override;
  void OnCqError(CompletionQueue& cq) override { cq_errors.push_back(&cq); }
  void OnSrqEvent(ibv_event_type type, ReceiveQueue& srq) override;

  // Registers memory of the caller. Returns the key.
  uint32_t Register(std::span<std::byte> memory, int access, uint32_t pd = 1);
  size_t Count(ibv_event_type type) const;
  // The path by which this side knows the other one.
  PathId peer_path() const { return index == 0 ? 5 : 9; }

  World& world;
  const int index;
  Engine engine;
  std::vector<CompletionQueue*> completion_events;
  std::vector<QpEvent> qp_events;
  std::vector<CompletionQueue*> cq_errors;
  std::vector<ReceiveQueue*> srq_events;

 private:
  friend class World;
  size_t failed_cqs_ = 0;  // of cq_errors, those whose QPs were brought to ERR
};

class World {
 public:
  World(const EngineOptions& options, const ChannelOptions& channel_options, uint64_t seed);

  // The next packet, timer or free place in the channel. False: nothing happens until then any
  // more.
  bool Step(uint64_t until_ns = UINT64_MAX);
  // Steps until nothing happens or the time is over.
  void Run(uint64_t limit_ns = 100 * kSecond);
  // Transmits and ticks what is due now, without time passing. Step does it too.
  void Serve();

  // A packet from anywhere, at once. False: the decoder refused it.
  bool Deliver(Side& to, PathId path, const Header& header, std::span<const std::byte> payload);
  size_t OnTheWay(int from) const { return on_the_way_[static_cast<size_t>(from)]; }
  bool Chance(uint32_t per_mille) { return per_mille > 0 && random() % 1000 < per_mille; }

  std::mt19937_64 random;
  ChannelOptions channel;
  uint64_t now_ns = 1'000'000;
  // Called for each packet given to the channel; true loses it.
  std::function<bool(const Sent&)> lose;
  // Every packet given to the channel, lost or not, if keep_log.
  bool keep_log = true;
  std::vector<Sent> log;
  Side a;
  Side b;

 private:
  friend class Side;
  struct Flight {
    uint64_t arrival_ns = 0;
    uint64_t number = 0;
    int from = 0;
    std::vector<std::byte> bytes;
    bool operator<(const Flight& other) const {  // the first to arrive is the greatest
      return arrival_ns != other.arrival_ns ? arrival_ns > other.arrival_ns : number > other.number;
    }
  };

  bool Accept(const Side& from, const Header& header, PayloadPieces payload);
  void Fly(int from, std::vector<std::byte> bytes);
  void Land();
  void ServeSide(Side& side);

  std::vector<Flight> heap_;
  uint64_t flights_ = 0;
  std::array<size_t, 2> on_the_way_ = {};
};

struct ConnectOptions {
  Profile profile = Profile::kIbta;
  ChannelOptions channel = {};
  uint64_t seed = 1;
  uint32_t window_packets = 128;
  ibv_mtu mtu = IBV_MTU_1024;
  uint32_t psn = 0xfffff0;  // both directions; the counters wrap after 16 packets
  uint8_t timeout = 8;      // 1.05 ms
  uint8_t retry_cnt = 7;
  uint8_t rnr_retry = 7;
  uint8_t min_rnr_timer = 1;  // 10 us
  uint8_t rd_atomic = 4;
  int access = kAllAccess;
  ibv_qp_cap cap = {.max_send_wr = 64,
                    .max_recv_wr = 64,
                    .max_send_sge = 8,
                    .max_recv_sge = 8,
                    .max_inline_data = 256};
  bool signal_all = false;
  bool acks_unasked = false;  // see QpContext; needs a timeout code of 13 or more to matter
  bool use_srq = false;
  uint32_t cq_entries = 256;
  size_t memory_bytes = 1 << 16;
};

struct Work {
  uint64_t id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  std::vector<ibv_sge> local = {};
  uint64_t remote = 0;
  uint32_t rkey = 0;
  uint32_t immediate = 0;
  uint64_t compare = 0;
  uint64_t swap_add = 0;
  unsigned flags = IBV_SEND_SIGNALED;
};

// A QP with CQs and a region of its own on one side.
class Endpoint {
 public:
  Endpoint(Side& side, const ConnectOptions& options);

  // Posts and transmits. The result of the post.
  int Post(const Work& work);
  int Receive(uint64_t id, std::vector<ibv_sge> local);
  std::vector<ibv_wc> PollSend() { return PollAll(send_cq); }
  std::vector<ibv_wc> PollReceive() { return PollAll(recv_cq); }
  static std::vector<ibv_wc> PollAll(CompletionQueue& cq);

  ibv_sge Piece(size_t offset, size_t bytes) const;
  uint64_t Address(size_t offset) const;
  uint64_t& Word(size_t offset);
  void Fill(uint8_t seed);  // the whole memory with a pattern
  bool Same(size_t offset, const Endpoint& other, size_t other_offset, size_t bytes) const;

  // Brings the QP from RESET to RTS, or to one of the states before it.
  void Connect(const Endpoint& peer, const ConnectOptions& options, ibv_qp_state to = IBV_QPS_RTS);
  int Modify(ibv_qp_state to);  // with no more than IBV_QP_STATE
  ibv_qp_state state() const { return qp->state(); }

  Side& side;
  CompletionQueue send_cq;
  CompletionQueue recv_cq;
  std::unique_ptr<ReceiveQueue> srq;
  std::vector<std::byte> memory;
  uint32_t key = 0;
  QueuePair* qp = nullptr;
};

// The attributes of a transition on the way to RTS, and its full mask.
ibv_qp_attr AttributesFor(ibv_qp_state to, const ConnectOptions& options, uint32_t peer_qpn);
int FullMask(ibv_qp_state to);

struct Connection {
  explicit Connection(const ConnectOptions& options = {});
  World world;
  Endpoint a;
  Endpoint b;
};

}  // namespace verbscope::soft::testing

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_ENGINE_FIXTURE_H_
