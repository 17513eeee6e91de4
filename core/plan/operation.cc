#include "core/plan/operation.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace verbscope {
namespace {

constexpr std::array kOperations = {
    Operation{.command = "send-lat",
              .op = "send",
              .verb = "SEND",
              .shape = LoopShape::kPingPong,
              .definition = "half_round_trip",
              .ended_by = "recv_completion"},
    Operation{.command = "read-lat",
              .op = "read",
              .verb = "READ",
              .shape = LoopShape::kRoundTrip,
              .definition = "round_trip",
              .ended_by = "send_completion"},
};

}  // namespace

std::span<const Operation> Operations() { return kOperations; }

const Operation* FindOperation(std::string_view command) {
  const auto found = std::ranges::find(kOperations, command, &Operation::command);
  return found == kOperations.end() ? nullptr : &*found;
}

const Operation& OperationOf(std::string_view command) {
  const Operation* found = FindOperation(command);
  assert(found != nullptr);
  return *found;
}

}  // namespace verbscope
