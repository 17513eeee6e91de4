// Loses packets that somebody has asked to be lost, the next ones of a kind: a PacketSink in front
// of another. Not there until it is asked for the first time; chances and rules that a user gives
// are fault_policy.h.
//
// Threads: with the device's lock held. Allocates nothing.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_LOSS_SINK_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_LOSS_SINK_H_

#include <cstdint>

#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/fault_policy.h"

namespace verbscope::soft {

class LossSink final : public PacketSink {
 public:
  explicit LossSink(PacketSink& next) : next_(&next) {}
  LossSink(const LossSink&) = delete;
  LossSink& operator=(const LossSink&) = delete;

  // What it stands in front of from now on.
  void SetNext(PacketSink& next) { next_ = &next; }

  // The next `count` packets of this class get lost, beside what was asked for another class.
  void Lose(FaultClass packets, uint32_t count) {
    (packets == FaultClass::kRequest ? requests_ : read_responses_) = count;
  }

  bool Send(PathId path, const Header& header, PayloadPieces payload) override {
    if (Takes(FaultClass::kRequest, header, requests_)) return true;
    if (Takes(FaultClass::kReadResponse, header, read_responses_)) return true;
    return next_->Send(path, header, payload);
  }
  bool CanSend(PathId path) const override { return next_->CanSend(path); }

 private:
  static bool Takes(FaultClass packets, const Header& header, uint32_t& left) {
    if (left == 0 || !Matches(packets, header)) return false;
    --left;
    return true;
  }

  PacketSink* next_;
  uint32_t requests_ = 0;
  uint32_t read_responses_ = 0;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_LOSS_SINK_H_
