// Mixed work between two ends, checked to the last byte: SEND, WRITE, READ, atomics, with and
// without immediate data, of many sizes. Each message has memory of its own while it is in flight,
// so every byte can be compared; completions must come once each and in order. Checks are gtest
// assertions.
//
// One thread; both ends are polled by Step.
#ifndef VERBSCOPE_TESTS_SOFT_MIXED_TRAFFIC_H_
#define VERBSCOPE_TESTS_SOFT_MIXED_TRAFFIC_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {

// Registered memory that each end needs.
size_t MixedTrafficBytes();

struct Message {
  uint64_t number = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  uint32_t bytes = 0;
  uint64_t expected = 0;  // result of an atomic
};

// One direction: `from` works on `to`. The QP of `from` must signal every send.
class Stream {
 public:
  Stream(End& from, End& to, uint64_t seed, uint64_t messages);

  bool done() const { return completed_ == messages_ && arriving_.empty(); }
  uint64_t progress() const { return completed_ + received_; }
  void Step();

 private:
  Message Draw();
  void PostNext();
  void DrawAtomic(Message& message, SendWork& work);
  void Completed(const ibv_wc& wc);
  void Arrived(const ibv_wc& wc);
  void Repost(uint64_t receive);

  End& from_;
  End& to_;
  std::mt19937_64 random_;
  const uint64_t messages_;
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  uint64_t received_ = 0;
  uint64_t counter_ = 0;
  std::deque<Message> in_flight_;
  std::deque<Message> arriving_;
};

// Both directions at once until all is done or something fails. `seed` is for the failure text too.
void RunMixedTraffic(End& a, End& b, uint64_t seed, uint64_t messages);

// The value of an environment variable, for runs that are changed by hand.
uint64_t Setting(const char* name, uint64_t otherwise);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TESTS_SOFT_MIXED_TRAFFIC_H_
