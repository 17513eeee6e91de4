#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/record/record.h"
#include "reporters/text.h"

namespace verbscope {
namespace {

using testing::HasSubstr;
using testing::Not;

PreflightRow Row(std::string name, std::string status, std::string about, std::string value) {
  PreflightRow row{.name = std::move(name),
                   .status = std::move(status),
                   .about = std::move(about),
                   .value = std::move(value),
                   .file = "/sys/a/file",
                   .good = "what is good"};
  if (row.status == "warn" || row.status == "fail") {
    row.symptom = "symptom of " + row.name;
    row.fix = "fix of " + row.name;
  }
  return row;
}

Record Doctor() {
  Record record;
  record.command = "doctor";
  record.preflight = {
      Row("uplink", "ok", "mlx5_0 port 1", "ACTIVE"), Row("mtu", "warn", "mlx5_0 port 1", "1500"),
      Row("memlock", "fail", "host", "64 KiB"), Row("pfc", "skip", "mlx5_0 port 1", "for root")};
  return record;
}

TEST(TextPreflightTest, WhatIsWrongComesWithSymptomAndFix) {
  const std::string text = RenderText(Doctor());
  for (const char* part : {"WARN", "FAIL", "symptom of mtu", "fix of mtu", "symptom of memlock",
                           "fix of memlock", "what is good", "64 KiB", "ACTIVE"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("/sys/a/file")));
}

TEST(TextPreflightTest, TheHostComesFirstAndEachGroupOnce) {
  const std::string text = RenderText(Doctor());
  EXPECT_LT(text.find("host\n"), text.find("\nmlx5_0 port 1\n"));
  EXPECT_EQ(text.find("\nmlx5_0 port 1\n"), text.rfind("\nmlx5_0 port 1\n"));
}

TEST(TextPreflightTest, SkipsAreOneLineUnlessAllIsAskedFor) {
  const std::string text = RenderText(Doctor());
  EXPECT_THAT(text, HasSubstr("skipped  pfc"));
  EXPECT_THAT(text, Not(HasSubstr("for root")));
  const std::string all = RenderText(Doctor(), {.verbose = true});
  EXPECT_THAT(all, HasSubstr("for root"));
  EXPECT_THAT(all, HasSubstr("/sys/a/file"));
}

TEST(TextPreflightTest, TheSummaryNamesWhatToFixFirst) {
  Record record = Doctor();
  EXPECT_THAT(RenderText(record), HasSubstr("memlock of host: fix of memlock"));
  EXPECT_THAT(RenderText(record), HasSubstr("1 FAIL, 1 WARN, 1 ok, 1 skip"));
  record.preflight[2].status = "ok";
  EXPECT_THAT(RenderText(record), HasSubstr("mtu of mlx5_0 port 1: fix of mtu"));
  record.preflight.resize(1);
  EXPECT_THAT(RenderText(record), HasSubstr("1 ok; nothing to fix"));
}

TEST(TextPreflightTest, ControlCharactersOfFilesDoNotReachTheTerminal) {
  Record record = Doctor();
  for (PreflightRow& row : record.preflight) {
    row.value = row.symptom = row.fix = row.good = "\x1b[31mred";
  }
  EXPECT_THAT(RenderText(record), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace verbscope
