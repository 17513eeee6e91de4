#include "core/plan/step_commands.h"

#include <gtest/gtest.h>

#include <string>

#include "core/plan/operation.h"
#include "core/plan/plan.h"

namespace verbscope {
namespace {

Plan PlanOf(std::string_view command) {
  Plan plan;
  plan.command = command;
  const StepCommand* steps = FindStepCommand(command);
  if (steps == nullptr || !steps->timed) plan.iterations = 10;
  return plan;
}

TEST(StepCommandsTest, NoCommandIsOfBothKinds) {
  for (const StepCommand& steps : StepCommands()) {
    EXPECT_EQ(FindStepCommand(steps.command), &steps);
    EXPECT_EQ(FindOperation(steps.command), nullptr) << steps.command;
  }
  for (const Operation& operation : Operations()) {
    EXPECT_EQ(FindStepCommand(operation.command), nullptr) << operation.command;
  }
  EXPECT_EQ(FindStepCommand(""), nullptr);
}

TEST(StepCommandsTest, AServerRunsThem) {
  for (const StepCommand& steps : StepCommands()) {
    const auto bounded = Bound(PlanOf(steps.command), {});
    ASSERT_TRUE(bounded) << bounded.error().ToText();
    EXPECT_EQ(bounded->command, steps.command);
  }
}

TEST(StepCommandsTest, WhatAStepChoosesItselfCannotBeAskedFor) {
  for (const StepCommand& steps : StepCommands()) {
    EXPECT_TRUE(CheckCombination(PlanOf(steps.command)));
    const auto refused = [&steps](auto change) {
      Plan plan = PlanOf(steps.command);
      change(plan);
      const Status status = CheckCombination(plan);
      EXPECT_EQ(static_cast<bool>(status), static_cast<bool>(Bound(plan, {})))
          << "a server looks at it too";
      return !status && status.error().error_class == ErrorClass::kUsage &&
             !status.error().next_step.empty();
    };
    EXPECT_TRUE(refused([](Plan& plan) { plan.sizes_bytes = {1, 2}; }));
    EXPECT_TRUE(refused([&steps](Plan& plan) {
      plan.iterations = steps.timed ? std::optional<uint64_t>(10) : std::nullopt;
    }));
    EXPECT_EQ(refused([](Plan& plan) { plan.qps = 2; }), !steps.timed);
    EXPECT_EQ(refused([](Plan& plan) { plan.tx_depth = 2; }), !steps.timed);
    EXPECT_TRUE(refused([](Plan& plan) { plan.repeat = 2; }));
    EXPECT_TRUE(refused([](Plan& plan) { plan.rate_per_s = 5; }));
    EXPECT_TRUE(refused([](Plan& plan) { plan.imm = true; }));
  }
}

TEST(StepCommandsTest, AReceiveThatIsTooShortNeedsAMessage) {
  Plan plan = PlanOf("zero-len-recv");
  plan.sizes_bytes = {0};
  const Status status = CheckCombination(plan);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("1 byte or more"), std::string::npos);
  plan.command = "imm";
  EXPECT_TRUE(CheckCombination(plan));
}

TEST(StepCommandsTest, ServersBoundWhatStepsAllocate) {
  Plan plan = PlanOf("imm");
  plan.sizes_bytes = {uint64_t{1} << 30};
  EXPECT_FALSE(Bound(plan, {}));
  EXPECT_GE(EstimatedMemoryBytes(plan), kStepBufferMessages << 30);
}

}  // namespace
}  // namespace verbscope
