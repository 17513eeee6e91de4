// libFuzzer target of the engine's packet side:
// bazel build --config=fuzz //transports/soft/engine:responder_fuzz
//
// The input is a program: packets of any kind from the right path and from a third one, posts,
// time, a link that is open or closed. Two QPs of one device are under fire; their peers do not
// exist. Properties: nothing crashes; no byte changes that is not in a writable region; completions
// are those of posted requests, in order and once, and no success for a request that was not sent;
// packets from the third path or outside the PSN window change nothing and are counted; a packet
// that is right but for its key changes no memory, is answered with NAK 0x62 and ends its QP.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "transports/soft/engine/engine_fixture.h"
#include "transports/soft/wire/psn.h"

namespace verbscope::soft::testing {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  uint8_t Byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  uint32_t Word() {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word = word << 8 | Byte();
    return word;
  }
  std::vector<std::byte> Bytes(size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = std::byte{Byte()};
    return bytes;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

constexpr uint32_t kMtu = 256;
constexpr size_t kZone = 2048;
constexpr size_t kGuard = 64;
const ConnectOptions kOptions = {.mtu = IBV_MTU_256,
                                 .timeout = 1,
                                 .retry_cnt = 3,
                                 .rnr_retry = 3,
                                 .cap = {.max_send_wr = 8,
                                         .max_recv_wr = 8,
                                         .max_send_sge = 2,
                                         .max_recv_sge = 2,
                                         .max_inline_data = 64},
                                 .cq_entries = 64,
                                 .memory_bytes = 2 * kZone + 3 * kGuard};

struct Posted {
  uint64_t id;
  bool signalled;
  uint32_t needs;  // packets sent since the start before it may succeed
};

// One QP under fire. Its memory: guard, writable zone, guard, zone for reading only, guard.
struct Victim {
  explicit Victim(Side& side) : end(side, kOptions) {
    side.engine.memory().Remove(end.key);
    for (size_t i = 0; i < end.memory.size(); ++i) end.memory[i] = static_cast<std::byte>(i * 7);
    writable = side.Register({end.memory.data() + kGuard, kZone}, kAllAccess);
    readable =
        side.Register({end.memory.data() + kZone + 2 * kGuard, kZone}, IBV_ACCESS_REMOTE_READ);
    image = end.memory;
  }

  void ExpectGuardsHold() const {
    const auto same = [this](size_t from, size_t to) {
      return std::memcmp(end.memory.data() + from, image.data() + from, to - from) == 0;
    };
    Require(same(0, kGuard) && same(kGuard + kZone, image.size()));
  }

  Endpoint end;
  uint32_t writable = 0;
  uint32_t readable = 0;
  std::vector<std::byte> image;
  std::deque<Posted> sends;
  std::deque<uint64_t> receives;
  uint64_t next_id = 1;
  uint32_t posted_psns = 0;
  uint32_t sent_psns = 0;  // one past the newest sent
  bool failed = false;
};

class Range {
 public:
  Range() : world_({.max_regions = 16}, {}, 1) {
    world_.keep_log = false;
    for (auto& victim : victims_) {
      victim = std::make_unique<Victim>(world_.b);
      Connect(*victim);
    }
    world_.lose = [this](const Sent& sent) {
      NoteSent(sent.header);
      return true;
    };
  }

  void Run(Input& input) {
    while (!input.empty()) {
      const uint8_t op = input.Byte();
      Victim& victim = *victims_[op & 1];
      Act(input, victim, op >> 1);
      world_.Serve();
      for (auto& each : victims_) {
        Poll(*each);
        each->ExpectGuardsHold();
      }
    }
    for (auto& victim : victims_) WrongKey(*victim);
  }

 private:
  // The peers are numbers only, so that what a QP sends can be told by where it goes.
  uint32_t PeerOf(const Victim& victim) const { return &victim == victims_[0].get() ? 100 : 200; }

  void Connect(Victim& victim) {
    QueuePair& qp = *victim.end.qp;
    Require(qp.Modify(AttributesFor(IBV_QPS_RESET, kOptions, 0), IBV_QP_STATE) == 0);
    qp.SetPath(world_.b.peer_path());
    for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
      Require(qp.Modify(AttributesFor(to, kOptions, PeerOf(victim)), FullMask(to)) == 0);
    }
    victim.sends.clear();
    victim.receives.clear();
    victim.posted_psns = victim.sent_psns = 0;
    victim.failed = false;
  }

  void NoteSent(const Header& header) {
    last_sent_ = header;
    if (Info(header.opcode).Is(kOpResponse)) return;
    Victim& victim = *victims_[header.dest_qpn == 100 ? 0 : 1];
    uint32_t psns = 1;
    if (header.opcode == Opcode::kReadRequest) {
      psns = std::max(1U, (header.dma_length + kMtu - 1) / kMtu);
    }
    const uint32_t end = ((header.psn - kOptions.psn) & kPsnMask) + psns;
    victim.sent_psns = std::max(victim.sent_psns, end);
  }

  void Act(Input& input, Victim& victim, int action) {
    switch (action % 12) {
      case 0:
        Raw(input, victim);
        break;
      case 1:
      case 2:
      case 3:
        Fire(victim, Request(input, victim), input, world_.b.peer_path());
        break;
      case 4:
      case 5:
        Fire(victim, Response(input, victim), input, world_.b.peer_path());
        break;
      case 6:
        Fire(victim, input.Byte() % 2 == 0 ? Request(input, victim) : Response(input, victim),
             input, kThirdPath);
        break;
      case 7:
        PostSend(input, victim);
        break;
      case 8:
        PostReceive(input, victim);
        break;
      case 9:
        world_.now_ns += uint64_t{input.Byte()} * 500;
        break;
      case 10:
        world_.channel.room = input.Byte() % 2 == 0 ? 0 : SIZE_MAX;
        break;
      default:
        if (victim.end.state() == IBV_QPS_ERR) Connect(victim);
        break;
    }
  }

  void Raw(Input& input, Victim& victim) {
    std::vector<std::byte> bytes = input.Bytes(input.Byte());
    const uint32_t qpn = victim.end.qp->qpn();
    for (size_t i = 0; i < 3 && bytes.size() > 8; ++i) {  // or it would hardly ever arrive
      bytes[5 + i] = static_cast<std::byte>(qpn >> (16 - 8 * i));
    }
    Header header;
    std::span<const std::byte> payload;
    if (Decode(bytes, header, payload) != DecodeResult::kOk) return;
    world_.b.engine.Receive(world_.b.peer_path(), header, payload);
  }

  uint32_t Key(Input& input, const Victim& victim) {
    const uint8_t choice = input.Byte() % 8;
    return choice == 0 ? input.Word() : choice == 1 ? victim.readable : victim.writable;
  }
  uint64_t Place(Input& input, const Victim& victim) {
    const size_t zone = input.Byte() % 4 == 0 ? kZone + 2 * kGuard : kGuard;
    return victim.end.Address(zone + (input.Byte() * size_t{9}) % (kZone + 8));
  }

  Header Request(Input& input, Victim& victim) {
    static constexpr std::array<Opcode, 17> kRequests = {
        Opcode::kSendFirst,          Opcode::kSendMiddle,        Opcode::kSendLast,
        Opcode::kSendLastImm,        Opcode::kSendOnly,          Opcode::kSendOnlyImm,
        Opcode::kWriteFirst,         Opcode::kWriteMiddle,       Opcode::kWriteLast,
        Opcode::kWriteLastImm,       Opcode::kWriteOnly,         Opcode::kWriteOnlyImm,
        Opcode::kReadRequest,        Opcode::kCompareSwap,       Opcode::kFetchAdd,
        Opcode::kSendLastInvalidate, Opcode::kSendOnlyInvalidate};
    Header header;
    header.opcode = kRequests[input.Byte() % kRequests.size()];
    header.address = Place(input, victim);
    header.rkey = Key(input, victim);
    header.dma_length = input.Byte() % 16 == 0 ? input.Word() : input.Byte() * 5U;
    header.swap_add = header.compare = input.Byte();
    ibv_qp_attr attributes;
    ibv_qp_init_attr init;
    victim.end.qp->Query(attributes, init);
    header.psn = PsnAdd(attributes.rq_psn, PsnOffset(input));
    return header;
  }

  Header Response(Input& input, Victim& victim) {
    static constexpr std::array<Opcode, 6> kResponses = {Opcode::kAck,
                                                         Opcode::kAtomicAck,
                                                         Opcode::kReadResponseFirst,
                                                         Opcode::kReadResponseMiddle,
                                                         Opcode::kReadResponseLast,
                                                         Opcode::kReadResponseOnly};
    static constexpr std::array<uint8_t, 7> kSyndromes = {
        kSyndromeAck,     kSyndromeAck,       kSyndromeRnr + 1,   kNakSequence,
        kNakRemoteAccess, kNakInvalidRequest, kNakRemoteOperation};
    Header header;
    header.opcode = kResponses[input.Byte() % kResponses.size()];
    const uint8_t syndrome = input.Byte();
    header.syndrome = syndrome >= 0xf0 ? syndrome : kSyndromes[syndrome % kSyndromes.size()];
    header.original = input.Byte();
    header.psn = PsnAdd(kOptions.psn, victim.sent_psns - 1 - input.Byte() % 8 + PsnOffset(input));
    return header;
  }

  // Mostly 0.
  uint32_t PsnOffset(Input& input) {
    const uint8_t choice = input.Byte();
    if (choice < 200) return 0;
    return choice < 254 ? static_cast<uint32_t>(choice) - 227 : input.Word();
  }

  void Fire(Victim& victim, Header header, Input& input, PathId path) {
    const OpcodeInfo& info = Info(header.opcode);
    size_t bytes = info.payload == PayloadRule::kNone ? 0 : input.Byte();
    if (info.payload == PayloadRule::kFull && bytes < 250) bytes = kMtu;
    if (input.Byte() < 250 && info.Is(kOpReth) && info.Is(kOpWrite) && info.Is(kOpEnds)) {
      header.dma_length = static_cast<uint32_t>(bytes);
    }
    header.dest_qpn = victim.end.qp->qpn();
    header.pad = static_cast<uint8_t>(-bytes & 3);
    const std::vector<std::byte> payload(bytes, std::byte{input.Byte()});
    const bool outside = IsOutside(victim, header);
    const std::vector<std::byte> before = victim.end.memory;
    const ibv_qp_state state = victim.end.state();
    const Counters counters = world_.b.engine.counters();
    Require(world_.Deliver(world_.b, path, header, payload));
    const Counters& after = world_.b.engine.counters();
    if (path == kThirdPath) Require(after.wrong_source == counters.wrong_source + 1);
    if (path != kThirdPath && outside) {
      Require(after.unexpected_response + after.out_of_seq_request + after.duplicate_request +
                  after.dropped_state ==
              counters.unexpected_response + counters.out_of_seq_request +
                  counters.duplicate_request + counters.dropped_state + 1);
    }
    if (path == kThirdPath || outside) {
      Require(before == victim.end.memory && state == victim.end.state());
    }
  }

  bool IsOutside(Victim& victim, const Header& header) {
    if (Info(header.opcode).Is(kOpResponse)) {
      const uint32_t end = PsnAdd(kOptions.psn, victim.sent_psns);
      return PsnDiff(header.psn, end) >= 0;
    }
    ibv_qp_attr attributes;
    ibv_qp_init_attr init;
    victim.end.qp->Query(attributes, init);
    return header.psn != attributes.rq_psn;
  }

  void PostSend(Input& input, Victim& victim) {
    static constexpr std::array<ibv_wr_opcode, 8> kOpcodes = {IBV_WR_SEND,
                                                              IBV_WR_SEND_WITH_IMM,
                                                              IBV_WR_SEND_WITH_INV,
                                                              IBV_WR_RDMA_WRITE,
                                                              IBV_WR_RDMA_WRITE_WITH_IMM,
                                                              IBV_WR_RDMA_READ,
                                                              IBV_WR_ATOMIC_CMP_AND_SWP,
                                                              IBV_WR_ATOMIC_FETCH_AND_ADD};
    Work work{.id = victim.next_id, .opcode = kOpcodes[input.Byte() % kOpcodes.size()]};
    const bool atomic =
        work.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP && work.opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;
    const uint32_t bytes = atomic ? 8 : input.Byte() * 4U;
    work.local = {{Place(input, victim), bytes, Key(input, victim)}};
    work.flags = input.Byte() % 2 == 0 ? IBV_SEND_SIGNALED : 0;
    if (victim.end.Post(work) != 0) return;
    const bool response = atomic || work.opcode == IBV_WR_RDMA_READ;
    const uint32_t psns = std::max(1U, (bytes + kMtu - 1) / kMtu);
    victim.sends.push_back(
        {victim.next_id++, work.flags != 0, victim.posted_psns + (response ? 1 : psns)});
    victim.posted_psns += psns;
  }

  void PostReceive(Input& input, Victim& victim) {
    const ibv_sge piece = {Place(input, victim), input.Byte() * 4U, Key(input, victim)};
    if (victim.end.Receive(victim.next_id, {piece}) != 0) return;
    victim.receives.push_back(victim.next_id++);
  }

  void Poll(Victim& victim) {
    for (const ibv_wc& wc : victim.end.PollSend()) {
      while (!victim.sends.empty() && victim.sends.front().id != wc.wr_id) {
        Require(!victim.sends.front().signalled && !victim.failed);
        victim.sends.pop_front();
      }
      Require(!victim.sends.empty());
      const Posted done = victim.sends.front();
      victim.sends.pop_front();
      if (wc.status == IBV_WC_SUCCESS) {
        Require(done.signalled && !victim.failed && victim.sent_psns >= done.needs);
      } else {
        Require(!victim.failed || wc.status == IBV_WC_WR_FLUSH_ERR);
        victim.failed = true;
      }
    }
    for (const ibv_wc& wc : victim.end.PollReceive()) {
      Require(!victim.receives.empty() && victim.receives.front() == wc.wr_id);
      victim.receives.pop_front();
    }
  }

  void WrongKey(Victim& victim) {
    world_.channel.room = SIZE_MAX;
    world_.Serve();
    Connect(victim);
    const std::vector<std::byte> before = victim.end.memory;
    Header header{.opcode = Opcode::kWriteOnly, .dest_qpn = victim.end.qp->qpn()};
    header.psn = kOptions.psn;
    header.address = victim.end.Address(kGuard);
    header.rkey = victim.writable ^ 1;
    header.dma_length = 8;
    Require(world_.Deliver(world_.b, world_.b.peer_path(), header, std::vector<std::byte>(8)));
    world_.Serve();
    Require(victim.end.state() == IBV_QPS_ERR && before == victim.end.memory);
    Require(last_sent_.opcode == Opcode::kAck && last_sent_.syndrome == kNakRemoteAccess);
  }

  World world_;
  std::array<std::unique_ptr<Victim>, 2> victims_;
  Header last_sent_;
};

}  // namespace
}  // namespace verbscope::soft::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  verbscope::soft::testing::Input input(data, size);
  verbscope::soft::testing::Range range;
  range.Run(input);
  return 0;
}
