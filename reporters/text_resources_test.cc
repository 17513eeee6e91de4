#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/record/record.h"
#include "reporters/text.h"

namespace verbscope {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

Record WithResources(std::vector<ResourceRow> rows) {
  Record record;
  record.command = "devices";
  record.resources.emplace().push_back({.device = "rxe0", .rows = std::move(rows)});
  return record;
}

TEST(TextResourcesTest, OwnerAndDetailsOfEachObject) {
  const std::string text = RenderDevices(
      WithResources({{.kind = "qp",
                      .id = 17,
                      .owner = "user",
                      .pid = 4711,
                      .name = "verbscope",
                      .type = "RC",
                      .state = "RTS",
                      .rqpn = 18},
                     {.kind = "cq",
                      .id = 1,
                      .owner = "kernel",
                      .name = "ib_core",
                      .cqe = 1023,
                      .poll_context = "softirq"},
                     {.kind = "mr", .id = 9, .length_bytes = 65536, .rkey = 0x1a2b}}));
  EXPECT_THAT(text, ContainsRegex("qp +17 +4711 .verbscope. +RC, RTS, to QP 18"));
  EXPECT_THAT(text, ContainsRegex("cq +1 +kernel .ib_core. +1023 entries"));
  EXPECT_THAT(text, HasSubstr("softirq"));
  EXPECT_THAT(text, ContainsRegex("mr +9 +- +65,536 bytes"));
  EXPECT_THAT(text, HasSubstr("0x1a2b"));
  EXPECT_THAT(text, HasSubstr("1 CQ, 1 QP, 1 MR"));
}

TEST(TextResourcesTest, ADeviceWithoutObjectsSaysSo) {
  Record record = WithResources({});
  EXPECT_THAT(RenderDevices(record), HasSubstr("none"));
  (*record.resources)[0].unknown = {"context", "srq"};
  EXPECT_THAT(RenderDevices(record), HasSubstr("does not list: context, srq"));
}

TEST(TextResourcesTest, ControlCharactersOfNamesDoNotReachTheTerminal) {
  const std::string text = RenderDevices(
      WithResources({{.kind = "qp", .id = 1, .owner = "user", .pid = 1, .name = "\x1b[31mred"}}));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace verbscope
