// The measuring commands of two sides: what each does on the wire and what its samples mean. One
// row per command; whoever treats commands differently asks here.
//
// Constant data; any thread.
#ifndef VERBSCOPE_CORE_PLAN_OPERATION_H_
#define VERBSCOPE_CORE_PLAN_OPERATION_H_

#include <span>
#include <string_view>

#include "core/plan/plan.h"

namespace verbscope {

enum class Verb { kSend, kWrite, kRead, kAtomic };

enum class LoopShape {
  kPingPong,     // both sides answer each other's receive completions (core/loops/ping_pong.h)
  kPayloadPing,  // both sides answer what appears in their memory (core/loops/payload_ping.h)
  kRoundTrip,    // the requester works on the responder's memory (core/loops/round_trip.h)
  kStream,       // many messages in flight (core/loops/stream.h)
};

struct Operation {
  std::string_view command;  // on the command line
  std::string_view op;       // Point::op
  std::string_view name;     // in sentences: "SEND", "WRITE with immediate"
  Verb verb = Verb::kSend;
  LoopShape shape = LoopShape::kPingPong;
  std::string_view definition;  // LatencyMetrics; empty: measures no latency
  std::string_view ended_by;
  bool takes_receives = false;  // each message consumes one of the other side's receives

  bool measures_latency() const { return !definition.empty(); }
};

// The commands' rows, without what options change.
std::span<const Operation> Operations();
// Null: no such command.
const Operation* FindOperation(std::string_view command);
// Of a plan whose command is one of these: with immediate data a WRITE takes a receive and its
// ping-pong ends with the completion; an open loop measures response times.
Operation OperationOf(const Plan& plan);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_PLAN_OPERATION_H_
