// The measuring commands of two sides: what each does on the wire and what its samples mean. One
// row per command; whoever treats commands differently asks here.
//
// Constant data; any thread.
#ifndef VERBSCOPE_CORE_PLAN_OPERATION_H_
#define VERBSCOPE_CORE_PLAN_OPERATION_H_

#include <span>
#include <string_view>

namespace verbscope {

enum class LoopShape {
  kPingPong,   // both sides answer each other (core/loops/ping_pong.h)
  kRoundTrip,  // the requester works on the responder's memory (core/loops/round_trip.h)
};

struct Operation {
  std::string_view command;  // on the command line
  std::string_view op;       // Point::op
  std::string_view verb;     // in sentences: "SEND"
  LoopShape shape;
  std::string_view definition;  // LatencyMetrics
  std::string_view ended_by;
};

std::span<const Operation> Operations();
// Null: no such command.
const Operation* FindOperation(std::string_view command);
// Of a plan that a server has agreed to: its command is one of these.
const Operation& OperationOf(std::string_view command);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_PLAN_OPERATION_H_
