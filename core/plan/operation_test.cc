#include "core/plan/operation.h"

#include <gtest/gtest.h>

#include <set>

namespace verbscope {
namespace {

TEST(Operation, EveryCommandIsFoundByItsName) {
  std::set<std::string_view> names;
  for (const Operation& operation : Operations()) {
    EXPECT_TRUE(names.insert(operation.command).second) << operation.command;
    EXPECT_EQ(FindOperation(operation.command), &operation);
    EXPECT_EQ(&OperationOf(operation.command), &operation);
  }
  EXPECT_EQ(FindOperation("send"), nullptr);
  EXPECT_EQ(FindOperation(""), nullptr);
}

// What is divided by two, and what is not.
TEST(Operation, TheDefinitionGoesWithTheLoop) {
  for (const Operation& operation : Operations()) {
    const bool answered = operation.shape == LoopShape::kPingPong;
    EXPECT_EQ(operation.definition, answered ? "half_round_trip" : "round_trip");
    EXPECT_EQ(operation.ended_by, answered ? "recv_completion" : "send_completion");
  }
}

}  // namespace
}  // namespace verbscope
