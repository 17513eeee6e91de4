#include "transports/soft/options/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

namespace verbscope::soft {
namespace {

using std::chrono::nanoseconds;
using testing::HasSubstr;

ConfigReader Config(std::string text) {
  return [text = std::move(text)](const std::string&) -> Expected<std::string> { return text; };
}

ConfigReader NoConfig() {
  return [](const std::string& path) -> Expected<std::string> {
    ADD_FAILURE() << "reads " << path;
    return std::string();
  };
}

TEST(DeviceString, IsSoftWithOrWithoutKeys) {
  EXPECT_TRUE(IsSoftDeviceString("soft"));
  EXPECT_TRUE(IsSoftDeviceString("soft:"));
  EXPECT_TRUE(IsSoftDeviceString("soft:mtu=256"));
  EXPECT_FALSE(IsSoftDeviceString("soft0"));
  EXPECT_FALSE(IsSoftDeviceString("sof"));
  EXPECT_FALSE(IsSoftDeviceString(""));
  EXPECT_FALSE(IsSoftDeviceString("mlx5_0"));
}

TEST(DeviceString, DefaultsAreThoseOfTheDocument) {
  const auto options = ParseDeviceString("soft", NoConfig());
  ASSERT_TRUE(options) << options.error().ToText();
  EXPECT_EQ(options->name, "soft0");
  EXPECT_EQ(options->link, LinkKind::kAuto);
  EXPECT_FALSE(options->address);
  EXPECT_EQ(options->port.active_mtu_bytes, 4096u);
  EXPECT_EQ(options->port.max_mtu_bytes, 4096u);
  EXPECT_EQ(options->port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(options->limits.max_inline_bytes, 236u);
  EXPECT_EQ(options->limits.device.max_cqe, 1u << 20);
  EXPECT_EQ(options->limits.device.max_qp, 1024u);
  EXPECT_EQ(options->limits.max_message_bytes, uint64_t{1} << 30);
  EXPECT_EQ(options->limits.max_registered_bytes, 0u);
  EXPECT_TRUE(options->limits.device.atomics);
  EXPECT_EQ(options->profile, Profile::kIbta);
  EXPECT_FALSE(options->fault.Active());
  EXPECT_EQ(options->hooks, HookOptions{});
  EXPECT_EQ(options->defects, Defects{});
}

TEST(DeviceString, TakesEveryKey) {
  const auto options = ParseDeviceString(
      "soft:link=memory,addr=10.0.0.7,gso=off,mtu=1024,inline=0,max_cqe=1,profile=rxe-6.1,drop=0.5,"
      "duplicate=5%,reorder=0.01,corrupt=1e-3,delay=10us,seed=42,pcap=/tmp/a b.pcap,"
      "defect=no-fence+no-pd",
      NoConfig());
  ASSERT_TRUE(options) << options.error().ToText();
  EXPECT_EQ(options->link, LinkKind::kMemory);
  ASSERT_TRUE(options->address);
  EXPECT_EQ(options->address->raw[15], 7);
  EXPECT_EQ(options->gso, UdpGso::kOff);
  EXPECT_EQ(options->port.active_mtu_bytes, 1024u);
  EXPECT_EQ(options->limits.max_inline_bytes, 0u);
  EXPECT_EQ(options->limits.device.max_cqe, 1u);
  EXPECT_EQ(options->profile, Profile::kRxe61);
  EXPECT_EQ(options->fault.drop, 0.5);
  EXPECT_EQ(options->fault.duplicate, 0.05);
  EXPECT_EQ(options->fault.reorder, 0.01);
  EXPECT_EQ(options->fault.corrupt, 0.001);
  EXPECT_EQ(options->fault.delay, nanoseconds(10'000));
  EXPECT_EQ(options->fault.seed, 42u);
  EXPECT_EQ(options->pcap_path, "/tmp/a b.pcap");
  EXPECT_EQ(options->defects, (Defects{Defect::kNoFence, Defect::kNoPd}));
}

TEST(DeviceString, DefectsGoBeforeThoseOfTheFile) {
  const auto options =
      ParseDeviceString("soft:config=x,defect=no-pd", Config(R"({"defects": ["no-fence"]})"));
  ASSERT_TRUE(options) << options.error().ToText();
  EXPECT_EQ(options->defects, Defects{Defect::kNoPd});
}

TEST(DeviceString, RefusesADefectThatItDoesNotKnow) {
  for (const char* text : {"soft:defect=no-fense", "soft:defect=", "soft:defect=no-fence+",
                           "soft:defect=no-fence no-pd", "soft:defect"}) {
    const auto options = ParseDeviceString(text, NoConfig());
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(ExitCode(options.error().error_class), 1);
    EXPECT_THAT(options.error().cause, HasSubstr("allowed, joined by +: no-rights, no-fence, "));
    EXPECT_THAT(options.error().cause, HasSubstr(" or foreign-event"));
  }
  EXPECT_EQ(ParseDeviceString("soft:defect=no-fense", NoConfig()).error().next_step,
            "write 'no-fence'");
}

constexpr char kKeys[] =
    "the keys are link, addr, gso, mtu, inline, max_cqe, profile, drop, duplicate, reorder, "
    "corrupt, delay, seed, pcap, defect or config.";

TEST(DeviceString, RefusesWhatItDoesNotUnderstand) {
  const std::string chance =
      " is refused: allowed: a chance from 0 to 1 such as 0.01, or a percentage such as 1%.";
  const std::string delay =
      " is refused: allowed: 0 to 60s, as a number with ns, us, ms or s, such as 10us.";
  const std::string address =
      " is refused: allowed: the IPv4 or IPv6 address of one host, such as 10.0.0.1, without a "
      "zone.";
  const std::string path =
      " is refused: allowed: a file name of 1 to 4095 bytes without control characters.";
  const std::string mtu = " is refused: allowed: 256, 512, 1024, 2048 or 4096.";
  const std::string keys = kKeys;
  const std::pair<std::string, std::string> kCases[] = {
      {"", "'' is no soft device. Next: write soft or soft:key=value,key=value."},
      {"soft0", "'soft0' is no soft device. Next: write soft or soft:key=value,key=value."},
      {"soft:",
       "a key is missing: between commas stands one key=value. Next: remove the comma or "
       "the colon."},
      {"soft:mtu=256,",
       "a key is missing: between commas stands one key=value. Next: remove the "
       "comma or the colon."},
      {"soft:mtu",
       "mtu has no value: allowed: 256, 512, 1024, 2048 or 4096. Next: write "
       "mtu=VALUE."},
      {"soft:drp=0.1", "unknown key 'drp': " + keys + " Next: write 'drop'."},
      {"soft:max_cq=5", "unknown key 'max_cq': " + keys + " Next: write 'max_cqe'."},
      {"soft:loss=0.1", "unknown key 'loss': " + keys},
      {"soft:Mtu=256", "unknown key 'Mtu': " + keys + " Next: write 'mtu'."},
      {"soft: mtu=256", "unknown key ' mtu': " + keys + " Next: write 'mtu'."},
      {"soft:=1", "unknown key '': " + keys},
      {"soft:mtu=", "mtu=''" + mtu},
      {"soft:mtu=1500", "mtu='1500'" + mtu},
      {"soft:mtu=8192", "mtu='8192'" + mtu},
      {"soft:mtu=4k", "mtu='4k'" + mtu},
      {"soft:inline=1025", "inline='1025' is refused: allowed: 0 to 1024 bytes."},
      {"soft:inline=-1", "inline='-1' is refused: allowed: 0 to 1024 bytes."},
      {"soft:max_cqe=0", "max_cqe='0' is refused: allowed: 1 to 16777216."},
      {"soft:max_cqe=16777217", "max_cqe='16777217' is refused: allowed: 1 to 16777216."},
      {"soft:link=mem",
       "link='mem' is refused: allowed: auto, memory or udp. Next: write 'memory'."},
      {"soft:gso=no", "gso='no' is refused: allowed: auto, on or off."},
      {"soft:profile=rxe",
       "profile='rxe' is refused: allowed: ibta or rxe-6.1. Next: write "
       "'rxe-6.1'."},
      {"soft:addr=host", "addr='host'" + address},
      {"soft:addr=fe80::1%eth0", "addr='fe80::1%eth0'" + address},
      {"soft:addr=0.0.0.0", "addr='0.0.0.0'" + address},
      {"soft:drop=1.5", "drop='1.5'" + chance},
      {"soft:duplicate=-0.1", "duplicate='-0.1'" + chance},
      {"soft:reorder=nan", "reorder='nan'" + chance},
      {"soft:corrupt=101%", "corrupt='101%'" + chance},
      {"soft:delay=10", "delay='10'" + delay},
      {"soft:delay=2m", "delay='2m'" + delay},
      {"soft:delay=61s", "delay='61s'" + delay},
      {"soft:seed=0x1", "seed='0x1' is refused: allowed: 0 to 18446744073709551615."},
      {"soft:pcap=", "pcap=''" + path},
      {"soft:config=", "config=''" + path},
      {"soft:pcap=a\nb", "pcap='a?b'" + path},
      {"soft:mtu=256,mtu=512", "mtu is given twice: as '256' and as '512'. Next: give it once."},
      {"soft:drop=1=2", "drop='1=2'" + chance},
      {"soft:config=/x,mtu=1", "mtu='1'" + mtu},
  };
  for (const auto& [text, sentence] : kCases) {
    const auto options = ParseDeviceString(text, NoConfig());
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(options.error().ToText(), "device string: " + sentence) << text;
    EXPECT_EQ(ExitCode(options.error().error_class), 1) << text;
  }
}

TEST(DeviceString, HasABound) {
  const auto options = ParseDeviceString("soft:pcap=" + std::string(8192, 'x'), NoConfig());
  ASSERT_FALSE(options);
  EXPECT_THAT(options.error().ToText(), HasSubstr("more than 8192 bytes"));
}

TEST(DeviceString, GoesBeforeItsConfigFileInAnyOrder) {
  const std::string config = R"({"mtu": 512, "inline": 10, "fault": {"drop": 0.5, "seed": 3}})";
  for (const char* text : {"soft:mtu=1024,drop=0,config=f", "soft:config=f,mtu=1024,drop=0"}) {
    const auto options = ParseDeviceString(text, Config(config));
    ASSERT_TRUE(options) << options.error().ToText();
    EXPECT_EQ(options->port.active_mtu_bytes, 1024u);
    EXPECT_EQ(options->limits.max_inline_bytes, 10u);
    EXPECT_EQ(options->fault.drop, 0.0);
    EXPECT_EQ(options->fault.seed, 3u);
  }
}

TEST(DeviceString, AddressReplacesTheGidTableOfTheFile) {
  const std::string config =
      R"({"port": {"gids": [{"index": 0, "gid": "10.0.0.1", "type": "RoCE v2"}]}})";
  const auto options = ParseDeviceString("soft:addr=10.0.0.2,config=f", Config(config));
  ASSERT_TRUE(options) << options.error().ToText();
  EXPECT_TRUE(options->address);
  EXPECT_FALSE(options->port.gids);
}

TEST(DeviceString, PassesTheNameOfTheFileAndItsErrorsOn) {
  std::string asked;
  const auto options = ParseDeviceString("soft:config=/etc/a.json", [&](const std::string& path) {
    asked = path;
    return Expected<std::string>(R"({"mtu": 1500})");
  });
  EXPECT_EQ(asked, "/etc/a.json");
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().ToText(),
            "config '/etc/a.json': mtu=1500 is refused: allowed: 256, 512, 1024, 2048 or 4096.");
}

TEST(DeviceString, RulesBetweenStringAndFileAreChecked) {
  const auto mtu =
      ParseDeviceString("soft:mtu=4096,config=f", Config(R"({"port": {"max_mtu": 1024}})"));
  ASSERT_FALSE(mtu);
  EXPECT_EQ(mtu.error().ToText(), "soft device: mtu=4096 is refused: port.max_mtu is 1024.");
  const auto address = ParseDeviceString("soft:addr=10.0.0.1,config=f",
                                         Config(R"({"port": {"link_layer": "InfiniBand"}})"));
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().ToText(),
            "soft device: addr is refused: port.link_layer is InfiniBand, which has no IP.");
  const auto link = ParseDeviceString("soft:link=udp,config=f",
                                      Config(R"({"port": {"link_layer": "InfiniBand"}})"));
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().ToText(),
            "soft device: link=udp is refused: port.link_layer is InfiniBand, which has no IP.");
  const auto gids =
      ParseDeviceString("soft:link=udp,config=f", Config(R"({"port": {"gids": []}})"));
  ASSERT_FALSE(gids);
  EXPECT_EQ(gids.error().ToText(),
            "soft device: port.gids is refused: with link=udp the GID is the address of the "
            "device, addr.");
}

TEST(DeviceString, TheUdpLinkMayHaveAnAddress) {
  const auto own = ParseDeviceString("soft:link=udp", {});
  ASSERT_TRUE(own);
  EXPECT_EQ(own->link, LinkKind::kUdp);
  EXPECT_FALSE(own->address);
  const auto given = ParseDeviceString("soft:link=udp,addr=10.0.0.1", {});
  ASSERT_TRUE(given);
  EXPECT_TRUE(given->address);
}

class ReadConfigFileTest : public testing::Test {
 protected:
  ReadConfigFileTest()
      : path_(testing::TempDir() + "/options_parse_test." + std::to_string(getpid())) {}
  ~ReadConfigFileTest() override { std::remove(path_.c_str()); }

  void Write(size_t bytes) { std::ofstream(path_) << std::string(bytes, ' '); }

  const std::string path_;
};

TEST_F(ReadConfigFileTest, ReadsUpToOneMebibyte) {
  Write(kMaxConfigBytes);
  const auto text = ReadConfigFile(path_);
  ASSERT_TRUE(text) << text.error().ToText();
  EXPECT_EQ(text->size(), kMaxConfigBytes);
  Write(kMaxConfigBytes + 1);
  const auto large = ReadConfigFile(path_);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().cause, "it is larger than 1 MiB");
}

TEST_F(ReadConfigFileTest, SaysWhyAFileCannotBeRead) {
  const auto missing = ReadConfigFile("/no/such/file");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().ToText(),
            "config file '/no/such/file' cannot be read: No such file or directory.");
  EXPECT_EQ(missing.error().errno_value, ENOENT);
  EXPECT_EQ(missing.error().error_class, ErrorClass::kUsage);
  const auto folder = ReadConfigFile("/");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().cause, "it is not a regular file");
}

TEST_F(ReadConfigFileTest, DoesNotWaitForTheWriterOfAPipe) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const auto pipe = ReadConfigFile(path_);
  ASSERT_FALSE(pipe);
  EXPECT_EQ(pipe.error().cause, "it is not a regular file");
}

TEST(Names, AreThoseOfTheDeviceString) {
  EXPECT_EQ(Name(LinkKind::kAuto), "auto");
  EXPECT_EQ(Name(LinkKind::kMemory), "memory");
  EXPECT_EQ(Name(LinkKind::kUdp), "udp");
  EXPECT_EQ(Name(Profile::kIbta), "ibta");
  EXPECT_EQ(Name(Profile::kRxe61), "rxe-6.1");
}

}  // namespace
}  // namespace verbscope::soft
