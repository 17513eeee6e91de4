#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CpuListTest, NumbersAndRangesInTheOrderGiven) {
  EXPECT_THAT(*ParseCpuList("0"), ElementsAre(0));
  EXPECT_THAT(*ParseCpuList("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*ParseCpuList("8,0-1"), ElementsAre(8, 0, 1));
  EXPECT_THAT(*ParseCpuList("1-3,2,3-4"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(*ParseCpuList("5-5"), ElementsAre(5));
  EXPECT_THAT(*ParseCpuList("1+3-4", '+'), ElementsAre(1, 3, 4));
  EXPECT_EQ(ParseCpuList("0-4095")->size(), 4096u);
}

TEST(CpuListTest, AnythingElseIsRefused) {
  for (const char* text :
       {"", ",", "1,", ",1", "1,,2", "a", "1-", "-1", "3-1", "1-2-3", "4096", "0-4096", "1 ,2",
        "1+2", "0x1", "99999999999999999999", "0-99999999999999999999", "1;2"}) {
    const auto cpus = ParseCpuList(text);
    ASSERT_FALSE(cpus.has_value()) << text;
    EXPECT_EQ(cpus.error().error_class, ErrorClass::kUsage);
  }
  EXPECT_FALSE(ParseCpuList("1,2", '+').has_value());
}

TEST(PeerSettingsTest, EveryKeyIsRead) {
  const auto settings = ParsePeerSettings(
      "device=mlx5_0,ib-port=2,gid-index=3,cpu=1+4-5,numa=1,wait=hybrid:20us,comp-vector=7");
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(settings->device, "mlx5_0");
  EXPECT_EQ(settings->ib_port, 2);
  EXPECT_EQ(settings->gid_index, 3);
  EXPECT_THAT(*settings->cpus, ElementsAre(1, 4, 5));
  EXPECT_EQ(settings->numa_node, 1);
  EXPECT_EQ(settings->wait, (WaitMode{WaitKind::kHybrid, 20'000}));
  EXPECT_EQ(settings->comp_vector, 7);
}

TEST(PeerSettingsTest, WhatIsNotAskedStaysUnset) {
  const auto settings = ParsePeerSettings("wait=event");
  ASSERT_TRUE(settings.has_value());
  PeerSettings expected;
  expected.wait = WaitMode{WaitKind::kEvent, 0};
  EXPECT_EQ(*settings, expected);
}

TEST(PeerSettingsTest, DeviceNamesThatAreNoBareNamesAreRefused) {
  for (const std::string& name :
       {std::string(""), std::string("."), std::string(".."), std::string("../mlx5_0"),
        std::string("/dev/infiniband/uverbs0"), std::string("soft:drop=1"), std::string("a b"),
        std::string("mlx5_0\n"), std::string("mlx5_0\0x", 8), std::string("\x1b[31mred"),
        std::string("caf\xC3\xA9"), std::string("$(reboot)"), std::string("a;b"),
        std::string("a=b"), std::string(65, 'a')}) {
    const auto parsed = ParsePeerSettings("device=" + name);
    ASSERT_FALSE(parsed.has_value()) << name;
    EXPECT_EQ(parsed.error().error_class, ErrorClass::kUsage);
    for (const char c : parsed.error().message) EXPECT_TRUE(c >= ' ' && c <= '~');
    PeerSettings settings;
    settings.device = name;
    EXPECT_FALSE(Validate(settings).has_value()) << name;
  }
  EXPECT_EQ(ParsePeerSettings("device=" + std::string(64, 'a'))->device, std::string(64, 'a'));
  EXPECT_EQ(ParsePeerSettings("device=rxe-eth0.100_A")->device, "rxe-eth0.100_A");
}

TEST(PeerSettingsTest, UnknownRepeatedAndMalformedItemsAreNamed) {
  const auto message = [](const char* text) {
    const auto settings = ParsePeerSettings(text);
    return settings ? std::string("accepted") : settings.error().message;
  };
  EXPECT_THAT(message(""), HasSubstr("not KEY=VALUE"));
  EXPECT_THAT(message("device"), HasSubstr("'device' is not KEY=VALUE"));
  EXPECT_THAT(message("device=a,"), HasSubstr("not KEY=VALUE"));
  EXPECT_THAT(message("pcap=/etc/passwd"), HasSubstr("no setting 'pcap'"));
  EXPECT_THAT(message("=1"), HasSubstr("no setting ''"));
  EXPECT_THAT(message("numa=0,numa=1"), HasSubstr("'numa' twice"));
  EXPECT_THAT(message("ib-port=0"), HasSubstr("1 to 255"));
  EXPECT_THAT(message("ib-port=256"), HasSubstr("1 to 255"));
  EXPECT_THAT(message("ib-port="), HasSubstr("1 to 255"));
  EXPECT_THAT(message("ib-port=1x"), HasSubstr("1 to 255"));
  EXPECT_THAT(message("gid-index=-1"), HasSubstr("0 to 65535"));
  EXPECT_THAT(message("numa=1024"), HasSubstr("0 to 1023"));
  EXPECT_THAT(message("comp-vector=4096"), HasSubstr("0 to 4095"));
  EXPECT_THAT(message("cpu=x"), HasSubstr("CPU list 'x'"));
  EXPECT_THAT(message("wait=sleep"), HasSubstr("'sleep'"));
}

TEST(PeerSettingsTest, ValidateRefusesNumbersThatOnlyAForeignClientCanSend) {
  const auto refused = [](auto change) {
    PeerSettings settings;
    change(settings);
    return !Validate(settings).has_value();
  };
  EXPECT_FALSE(refused([](PeerSettings&) {}));
  EXPECT_TRUE(refused([](PeerSettings& s) { s.ib_port = -1; }));
  EXPECT_TRUE(refused([](PeerSettings& s) { s.gid_index = 65536; }));
  EXPECT_TRUE(refused([](PeerSettings& s) { s.numa_node = -2; }));
  EXPECT_TRUE(refused([](PeerSettings& s) { s.comp_vector = 1 << 20; }));
  EXPECT_TRUE(refused([](PeerSettings& s) { s.cpus = std::vector<int>{}; }));
  EXPECT_TRUE(refused([](PeerSettings& s) { s.cpus = std::vector<int>{-1}; }));
  EXPECT_TRUE(refused([](PeerSettings& s) { s.wait = WaitMode{WaitKind::kHybrid, 0}; }));
}

TEST(ApplyTest, ReplacesWhatWasAskedAndNothingElse) {
  LocalSettings local;
  local.device = "rxe0";
  local.gid_index = 1;
  local.cpus = {0};
  local.comp_vector = 2;
  local.huge_pages = true;
  const LocalSettings same = Apply(local, PeerSettings{});
  EXPECT_EQ(same.device, "rxe0");
  EXPECT_EQ(same.gid_index, 1);
  EXPECT_EQ(same.wait, WaitMode{});
  EXPECT_THAT(same.cpus, ElementsAre(0));
  EXPECT_EQ(same.numa_node, -1);
  EXPECT_EQ(same.comp_vector, 2);

  const LocalSettings changed =
      Apply(local, *ParsePeerSettings("device=rxe1,ib-port=1,gid-index=0,cpu=2,numa=0,wait=event,"
                                      "comp-vector=0"));
  EXPECT_EQ(changed.device, "rxe1");
  EXPECT_EQ(changed.ib_port, 1);
  EXPECT_EQ(changed.gid_index, 0);
  EXPECT_THAT(changed.cpus, ElementsAre(2));
  EXPECT_EQ(changed.numa_node, 0);
  EXPECT_EQ(changed.wait.kind, WaitKind::kEvent);
  EXPECT_EQ(changed.comp_vector, 0);
  EXPECT_TRUE(changed.huge_pages);
}

}  // namespace
}  // namespace verbscope
