#include "core/host/system_text.h"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

TEST(PrettyNameTest, QuotesAreTakenOff) {
  EXPECT_EQ(PrettyNameOf("NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(PrettyNameOf("PRETTY_NAME='Alpine Linux v3.20'"), "Alpine Linux v3.20");
  EXPECT_EQ(PrettyNameOf("PRETTY_NAME=Plain\n"), "Plain");
}

TEST(PrettyNameTest, EscapedCharactersAreThemselves) {
  EXPECT_EQ(PrettyNameOf(R"(PRETTY_NAME="a \"b\" \\ c")"), R"(a "b" \ c)");
}

TEST(PrettyNameTest, MissingOrBrokenLinesAreEmptyOrPlain) {
  EXPECT_EQ(PrettyNameOf(""), "");
  EXPECT_EQ(PrettyNameOf("NAME=x\nNOT_PRETTY_NAME=y\n"), "");
  EXPECT_EQ(PrettyNameOf("PRETTY_NAME="), "");
  EXPECT_EQ(PrettyNameOf("PRETTY_NAME=\""), "\"");
}

TEST(CpuModelTest, X86GivesItsModelName) {
  EXPECT_EQ(CpuModelOf("processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 106\n"
                       "model name\t: Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz\n"
                       "processor\t: 1\nmodel name\t: another\n"),
            "Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz");
}

TEST(CpuModelTest, ArmGivesImplementerAndPart) {
  const std::string neoverse =
      "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n";
  EXPECT_EQ(CpuModelOf(neoverse), "Arm part 0xd0c");
  EXPECT_EQ(CpuModelOf("CPU implementer : 0x99\nCPU part : 0x001\n"),
            "implementer 0x99 part 0x001");
}

TEST(CpuModelTest, OtherArchitecturesGiveWhatTheyHave) {
  EXPECT_EQ(CpuModelOf("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n"),
            "POWER9, altivec supported");
  EXPECT_EQ(CpuModelOf("hart\t: 1\nuarch\t: sifive,u74-mc\n"), "sifive,u74-mc");
  EXPECT_EQ(CpuModelOf("processor: 0\nno colon here\n"), "");
  EXPECT_EQ(CpuModelOf(""), "");
}

TEST(StatusBytesTest, KilobytesBecomeBytes) {
  const std::string status = "Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    1234 kB\nVmRSS:\t 7 kB\n";
  EXPECT_EQ(StatusBytes(status, "VmHWM"), 1234u * 1024);
  EXPECT_EQ(StatusBytes(status, "VmSwap"), std::nullopt);
}

TEST(StatusBytesTest, AnythingElseIsRefused) {
  EXPECT_EQ(StatusBytes("VmHWM:\t12 MB\n", "VmHWM"), std::nullopt);
  EXPECT_EQ(StatusBytes("VmHWM:\t kB\n", "VmHWM"), std::nullopt);
  EXPECT_EQ(StatusBytes("VmHWM:\t-3 kB\n", "VmHWM"), std::nullopt);
  EXPECT_EQ(StatusBytes("VmHWM:\t99999999999999999999 kB\n", "VmHWM"), std::nullopt);
  EXPECT_EQ(StatusBytes("VmHWM:\t18446744073709551615 kB\n", "VmHWM"), std::nullopt);
}

}  // namespace
}  // namespace verbscope
