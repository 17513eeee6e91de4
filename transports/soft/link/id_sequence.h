// Whether the IPv4 IDs of a peer are those of one counter, and which may come next.
//
// The ID of a packet from a foreign sender is solved from its ICRC (wire/icrc.h), which leaves 15
// bits of proof: of 30,000 damaged packets one would pass. But Linux rxe and other senders take
// their IDs from a counter, so a damaged packet that passes has an ID from anywhere, and is told by
// that. It makes 22 bits of proof on a busy path; fewer after a pause, since the counter may serve
// others too, and Linux moves it on by itself with time.
//
// Nothing is refused before IDs have followed one another for a while. A packet that is refused is
// lost, and will be repeated; if another one follows it, now or later, the counter has jumped or is
// one of several, and all goes on from there. Who jumps often, or does not count at all, is not
// judged by IDs any longer.
//
// Plain object, one per path; no system calls.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_ID_SEQUENCE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_ID_SEQUENCE_H_

#include <cstdint>

namespace verbscope::soft {

class IdSequence {
 public:
  // A packet with this ID came at `now_ns`, of any clock that only goes forward. False: it is to be
  // dropped as damaged.
  bool Accept(uint16_t id, bool dont_fragment, uint64_t now_ns);

 private:
  enum class Mode : uint8_t { kLearning, kCounting, kFree };

  bool Follows(uint16_t id, bool dont_fragment, uint64_t now_ns) const;
  bool Refuse(uint16_t id, bool dont_fragment, uint64_t now_ns);
  void Advance(uint16_t id, bool dont_fragment, uint64_t now_ns);

  Mode mode_ = Mode::kLearning;
  bool dont_fragment_ = false;
  uint16_t newest_ = 0;
  uint16_t refused_ = 0;  // the last ID refused
  bool has_refused_ = false;
  uint8_t followers_ = 0;  // refused IDs in a row that followed the one before
  uint8_t in_a_row_ = 0;   // learning: that followed closely; counting: that were refused
  uint8_t jumps_ = 0;
  uint64_t newest_ns_ = 0;  // when newest_ came
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_ID_SEQUENCE_H_
