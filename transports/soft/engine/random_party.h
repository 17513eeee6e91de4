// One end of a connection under random work, and the plain sequential model of what must come of
// it: each request takes effect in posting order, at once and exactly once. For
// engine_property_test.
//
// The memory of a party is cut into zones that lie apart; the gaps belong to no region that anybody
// uses and may never change.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_RANDOM_PARTY_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_RANDOM_PARTY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "transports/soft/engine/engine_fixture.h"

namespace verbscope::soft::testing {

class RandomParty {
 public:
  // `faulty_per_mille`: of requests and receives, how many break a rule.
  RandomParty(Side& side, const ConnectOptions& options, uint32_t faulty_per_mille);

  void Post(RandomParty& peer);
  void Receive();
  void Poll();
  // A signalled request that does nothing, so that all before it are known to be done.
  void PostClosing(RandomParty& peer);

  // Everything posted has been answered for. Receives may be left.
  bool Idle() const { return sends_.empty() && arrivals_.empty(); }
  // Nothing posted is left; unsignalled requests that succeeded last are nowhere reported.
  bool SendsAnswered() const {
    return sends_.empty() || (!broken_ && std::ranges::none_of(sends_, &PostedSend::signalled));
  }
  bool full() const { return slots_taken_ == endpoint.qp->cap().max_send_wr; }
  bool wants_receives() const { return !arrivals_.empty(); }
  bool AllReceivesBack() const { return endpoint.srq != nullptr || receives_.empty(); }
  void ExpectMemoryIsTheModel() const;
  void ExpectOnlyGrantedBytesChanged() const;
  void Break() { endpoint.Modify(IBV_QPS_ERR); }
  // Through RESET to RTS again, with nothing left of before.
  void Reconnect(RandomParty& peer, const ConnectOptions& options);

  Endpoint endpoint;

 private:
  enum ZoneName : size_t { kSource, kTarget, kFetched, kWords, kReceives, kZones };
  struct Zone {
    size_t offset = 0;
    size_t bytes = 0;
    uint32_t key = 0;
  };
  struct PostedSend {
    uint64_t id = 0;
    bool signalled = false;
    ibv_wc_opcode opcode = IBV_WC_SEND;
    uint32_t bytes = 0;
    bool checks_bytes = false;  // byte_len is defined
  };
  struct PostedReceive {
    uint64_t id = 0;
    std::vector<ibv_sge> pieces;
  };
  struct Arrival {
    bool is_send = false;
    bool has_immediate = false;
    uint32_t immediate = 0;
    uint32_t bytes = 0;
    std::vector<std::byte> data;  // of a SEND
  };

  uint64_t Below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }
  bool Chance(uint32_t per_mille) { return random_() % 1000 < per_mille; }
  uint32_t RandomLength();
  std::vector<ibv_sge> Cut(const Zone& zone, uint32_t bytes, bool anywhere);
  std::vector<std::byte> Gathered(const std::vector<ibv_sge>& pieces) const;
  void StoreInModel(const std::vector<ibv_sge>& pieces, const std::vector<std::byte>& data);
  size_t OffsetOf(const ibv_sge& piece) const { return piece.addr - endpoint.Address(0); }

  Work MakeWork(RandomParty& peer);
  void Spoil(Work& work);
  int PostWork(Work& work);
  void Expect(const Work& work, RandomParty& peer);
  void ExpectAtomic(const Work& work, RandomParty& peer);
  void OnSendDone(const ibv_wc& wc);
  void OnReceiveDone(const ibv_wc& wc);

  std::mt19937_64& random_;
  const uint32_t faulty_per_mille_;
  const uint32_t mtu_;
  const uint32_t max_message_;
  const bool signal_all_;
  std::array<Zone, kZones> zones_;
  std::vector<std::byte> model_;
  std::deque<PostedSend> sends_;
  std::deque<PostedReceive> receives_;
  std::deque<Arrival> arrivals_;
  uint64_t next_id_ = 1;
  uint64_t next_receive_id_ = 1;
  uint32_t slots_taken_ = 0;
  uint32_t receive_slots_taken_ = 0;
  uint32_t unsignalled_ = 0;       // in a row
  bool fence_next_write_ = false;  // a READ may be repeated and would see it
  bool broken_ = false;
};

}  // namespace verbscope::soft::testing

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_RANDOM_PARTY_H_
