#include "transports/soft/link/id_sequence.h"

namespace verbscope::soft {
namespace {

constexpr uint16_t kAhead = 128;    // packets that are lost, or of others, at once
constexpr uint64_t kPerMs = 256;    // and with time
constexpr uint16_t kBehind = 512;   // packets that come late
constexpr uint8_t kLearnt = 16;     // this many in a row are no accident
constexpr uint8_t kAllRefused = 8;  // this many in a row are not damage
constexpr uint8_t kFollowers = 2;   // refused among accepted ones
constexpr uint8_t kJumpsAllowed = 4;
constexpr uint64_t kNsPerMs = 1'000'000;

uint16_t Distance(uint16_t from, uint16_t to) { return static_cast<uint16_t>(to - from); }

}  // namespace

bool IdSequence::Accept(uint16_t id, bool dont_fragment, uint64_t now_ns) {
  if (mode_ == Mode::kFree) return true;
  if (!Follows(id, dont_fragment, now_ns)) {
    if (mode_ == Mode::kCounting) return Refuse(id, dont_fragment, now_ns);
    in_a_row_ = 0;
    Advance(id, dont_fragment, now_ns);
    return true;
  }
  const uint16_t ahead = Distance(newest_, id);
  if (mode_ == Mode::kCounting) {
    in_a_row_ = 0;
  } else if (ahead <= kAhead && ++in_a_row_ == kLearnt) {
    mode_ = Mode::kCounting;
    in_a_row_ = 0;
  }
  if (Distance(id, newest_) > kBehind) Advance(id, dont_fragment, now_ns);
  return true;
}

bool IdSequence::Follows(uint16_t id, bool dont_fragment, uint64_t now_ns) const {
  if (dont_fragment != dont_fragment_) return false;
  const uint64_t ahead = kAhead + (now_ns - newest_ns_) / kNsPerMs * kPerMs;
  return Distance(newest_, id) <= ahead || Distance(id, newest_) <= kBehind;
}

bool IdSequence::Refuse(uint16_t id, bool dont_fragment, uint64_t now_ns) {
  // Refused ones that follow one another are another counter: the peer's has jumped, or it has
  // several, if accepted ones came between. By chance one damaged packet in 512 follows another.
  followers_ = has_refused_ && Distance(refused_, id) <= kAhead ? followers_ + 1 : 0;
  const bool jumped = followers_ >= (in_a_row_ > 0 ? 1 : kFollowers);
  refused_ = id;
  has_refused_ = true;
  ++in_a_row_;
  if (!jumped && in_a_row_ < kAllRefused) return false;
  if (!jumped || ++jumps_ == kJumpsAllowed) mode_ = Mode::kFree;
  in_a_row_ = followers_ = 0;
  Advance(id, dont_fragment, now_ns);
  return true;
}

void IdSequence::Advance(uint16_t id, bool dont_fragment, uint64_t now_ns) {
  newest_ = id;
  dont_fragment_ = dont_fragment;
  newest_ns_ = now_ns;
}

}  // namespace verbscope::soft
