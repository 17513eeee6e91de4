#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/checks/behaviours.h"
#include "core/checks/catalog.h"
#include "core/plan/check_plan.h"

namespace verbscope {
namespace {

CheckRow Row(std::string name, std::string status) {
  return {.name = std::move(name),
          .status = std::move(status),
          .expected = "this",
          .observed = "that",
          .why = "because"};
}

TEST(FoldTest, TheWorstPartDecides) {
  struct Case {
    std::vector<std::string> parts;
    std::string status;
  };
  for (const Case& one : {Case{{"pass", "pass"}, "pass"}, Case{{"pass", "skip"}, "pass"},
                          Case{{"skip", "skip"}, "skip"}, Case{{"pass", "deviation"}, "deviation"},
                          Case{{"deviation", "fail", "pass"}, "fail"}}) {
    std::vector<CheckRow> rows;
    for (const std::string& status : one.parts) {
      rows.push_back(Row("rnr/part " + std::to_string(rows.size()), status));
    }
    const std::vector<CheckRow> checks = FoldChecks(rows);
    ASSERT_EQ(checks.size(), 1u);
    EXPECT_EQ(checks.front().name, "rnr");
    EXPECT_EQ(checks.front().status, one.status);
    EXPECT_EQ(checks.front().parts.size(), one.parts.size());
    EXPECT_EQ(checks.front().source, FindCheck("rnr")->source);
  }
}

TEST(FoldTest, AFailureIsToldByThePartThatFailed) {
  const CheckRow check = FoldChecks({Row("rnr/first", "pass"), Row("rnr/second", "fail")}).front();
  EXPECT_EQ(check.expected, "second: this");
  EXPECT_EQ(check.observed, "second: that");
  EXPECT_EQ(check.why, "because");
}

TEST(FoldTest, AScenarioWithOneRowIsACheckWithOnePart) {
  const std::vector<CheckRow> checks = FoldChecks({Row("cq-threads", "pass")});
  ASSERT_EQ(checks.size(), 1u);
  ASSERT_EQ(checks.front().parts.size(), 1u);
  EXPECT_EQ(checks.front().parts.front().observed, "that");
}

TEST(FoldTest, OtherRowsStayAsTheyAre) {
  const std::vector<CheckRow> checks = FoldChecks({Row("verification", "fail")});
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_TRUE(checks.front().parts.empty());
  EXPECT_EQ(checks.front().observed, "that");
}

TEST(CatalogTest, EveryCheckSaysWhatItDoesExpectsAndWhy) {
  for (const CheckDefinition& check : CheckDefinitions()) {
    EXPECT_FALSE(check.does.empty()) << check.name;
    EXPECT_FALSE(check.expect.empty()) << check.name;
    EXPECT_FALSE(check.source.empty()) << check.name;
    EXPECT_NE(check.run == nullptr, check.scenarios == nullptr) << check.name;
  }
}

// The map from behaviours to checks names every check, and none that is not there.
TEST(CatalogTest, EveryCheckShowsABehaviour) {
  std::string all;
  for (const Behaviour& behaviour : Behaviours()) {
    const std::string shown = std::string(behaviour.shown_by) + ",";
    all += shown;
    for (size_t at = shown.find("check "); at != std::string::npos;
         at = shown.find("check ", at + 1)) {
      const std::string name = shown.substr(at + 6, shown.find(',', at) - at - 6);
      EXPECT_NE(FindCheck(name), nullptr) << behaviour.id << ": " << name;
    }
  }
  for (const CheckDefinition& check : CheckDefinitions()) {
    EXPECT_NE(all.find("check " + std::string(check.name) + ","), std::string::npos) << check.name;
  }
}

TEST(CatalogTest, APlanChoosesAndTheOrderIsTheCatalogs) {
  Plan plan;
  plan.command = kCheck;
  plan.checks = {"fence", "rnr"};
  const std::vector<Scenario> scenarios = CheckScenarios(plan);
  ASSERT_EQ(scenarios.size(), 2u);
  EXPECT_EQ(scenarios[0].name, "rnr");
  EXPECT_EQ(scenarios[1].name, "fence");
  plan.checks = {"no-such"};
  EXPECT_FALSE(CheckNamesOf(plan).has_value());
  plan.checks = {"rnr"};
  plan.command = "imm";
  EXPECT_FALSE(CheckNamesOf(plan).has_value());
}

}  // namespace
}  // namespace verbscope
