#include "core/plan/operation.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace verbscope {
namespace {

constexpr std::string_view kHalf = "half_round_trip";
constexpr std::string_view kFull = "round_trip";
constexpr std::string_view kReceived = "recv_completion";
constexpr std::string_view kCompleted = "send_completion";

constexpr std::array kOperations = {
    Operation{"send-lat", "send", "SEND", Verb::kSend, LoopShape::kPingPong, kHalf, kReceived,
              /*takes_receives=*/true},
    Operation{"write-lat", "write", "WRITE", Verb::kWrite, LoopShape::kPayloadPing, kHalf,
              "payload_poll", /*takes_receives=*/false},
    Operation{"read-lat", "read", "READ", Verb::kRead, LoopShape::kRoundTrip, kFull, kCompleted,
              /*takes_receives=*/false},
    Operation{"atomic-lat", "atomic", "Atomic", Verb::kAtomic, LoopShape::kRoundTrip, kFull,
              kCompleted, /*takes_receives=*/false},
    Operation{"send-bw", "send", "SEND", Verb::kSend, LoopShape::kStream, "", "",
              /*takes_receives=*/true},
    Operation{"write-bw", "write", "WRITE", Verb::kWrite, LoopShape::kStream, "", "",
              /*takes_receives=*/false},
    Operation{"read-bw", "read", "READ", Verb::kRead, LoopShape::kStream, "", "",
              /*takes_receives=*/false},
};

}  // namespace

std::span<const Operation> Operations() { return kOperations; }

const Operation* FindOperation(std::string_view command) {
  const auto found = std::ranges::find(kOperations, command, &Operation::command);
  return found == kOperations.end() ? nullptr : &*found;
}

Operation OperationOf(const Plan& plan) {
  const Operation* found = FindOperation(plan.command);
  assert(found != nullptr);
  Operation operation = *found;
  if (plan.imm && operation.verb == Verb::kSend) operation.name = "SEND with immediate";
  if (plan.imm && operation.verb == Verb::kWrite) {
    operation.name = "WRITE with immediate";
    operation.takes_receives = true;
    if (operation.shape == LoopShape::kPayloadPing) {
      operation.shape = LoopShape::kPingPong;
      operation.ended_by = kReceived;
    }
  }
  if (plan.rate_per_s > 0 && operation.measures_latency()) operation.definition = "response_time";
  return operation;
}

}  // namespace verbscope
