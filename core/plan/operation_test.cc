#include "core/plan/operation.h"

#include <gtest/gtest.h>

#include <set>

namespace verbscope {
namespace {

Plan PlanOf(std::string_view command) {
  Plan plan;
  plan.command = command;
  return plan;
}

TEST(Operation, EveryCommandIsFoundByItsName) {
  std::set<std::string_view> names;
  for (const Operation& operation : Operations()) {
    EXPECT_TRUE(names.insert(operation.command).second) << operation.command;
    EXPECT_EQ(FindOperation(operation.command), &operation);
    EXPECT_EQ(OperationOf(PlanOf(operation.command)).command, operation.command);
  }
  EXPECT_EQ(FindOperation("send"), nullptr);
  EXPECT_EQ(FindOperation(""), nullptr);
}

// What is divided by two, and what is not.
TEST(Operation, TheDefinitionGoesWithTheLoop) {
  for (const Operation& operation : Operations()) {
    switch (operation.shape) {
      case LoopShape::kPingPong:
        EXPECT_EQ(operation.definition, "half_round_trip");
        EXPECT_EQ(operation.ended_by, "recv_completion");
        break;
      case LoopShape::kPayloadPing:
        EXPECT_EQ(operation.definition, "half_round_trip");
        EXPECT_EQ(operation.ended_by, "payload_poll");
        break;
      case LoopShape::kRoundTrip:
        EXPECT_EQ(operation.definition, "round_trip");
        EXPECT_EQ(operation.ended_by, "send_completion");
        break;
      case LoopShape::kStream:
        EXPECT_FALSE(operation.measures_latency());
        break;
    }
  }
}

TEST(Operation, AWriteWithImmediateTakesAReceiveAndEndsWithItsCompletion) {
  Plan plan = PlanOf("write-lat");
  EXPECT_FALSE(OperationOf(plan).takes_receives);
  plan.imm = true;
  EXPECT_TRUE(OperationOf(plan).takes_receives);
  EXPECT_EQ(OperationOf(plan).shape, LoopShape::kPingPong);
  EXPECT_EQ(OperationOf(plan).ended_by, "recv_completion");
  plan.command = "write-bw";
  EXPECT_TRUE(OperationOf(plan).takes_receives);
  EXPECT_EQ(OperationOf(plan).shape, LoopShape::kStream);
}

TEST(Operation, AnOpenLoopMeasuresResponseTimes) {
  Plan plan = PlanOf("send-lat");
  plan.rate_per_s = 1000;
  EXPECT_EQ(OperationOf(plan).definition, "response_time");
  plan.command = "send-bw";
  EXPECT_FALSE(OperationOf(plan).measures_latency());
}

}  // namespace
}  // namespace verbscope
