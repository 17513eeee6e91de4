#include "transports/soft/wire/opcode.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace verbscope::soft {
namespace {

TEST(OpcodeTable, HasThe23RcOpcodesAndNothingElse) {
  std::set<std::string_view> names;
  for (int byte = 0; byte < 256; ++byte) {
    const OpcodeInfo& info = Info(static_cast<uint8_t>(byte));
    EXPECT_EQ(info.valid(), byte <= 0x17 && byte != 0x15) << byte;
    if (info.valid()) names.insert(info.name);
  }
  EXPECT_EQ(names.size(), 23U);  // no name twice
}

TEST(OpcodeTable, EveryRowIsConsistent) {
  for (int byte = 0; byte < 256; ++byte) {
    const OpcodeInfo& info = Info(static_cast<uint8_t>(byte));
    if (!info.valid()) {
      EXPECT_EQ(info.flags, 0);
      continue;
    }
    EXPECT_NE(info.Is(kOpRequest), info.Is(kOpResponse)) << info.name;
    EXPECT_LE(info.Is(kOpSend) + info.Is(kOpWrite) + info.Is(kOpRead) + info.Is(kOpAtomic), 1);
    // A first or middle packet is full; only one that ends a message may be shorter.
    EXPECT_EQ(info.payload == PayloadRule::kFull, !info.Is(kOpEnds)) << info.name;
    const bool last = info.Is(kOpEnds) && !info.Is(kOpStarts);
    EXPECT_EQ(info.payload == PayloadRule::kOneToMtu, last) << info.name;
    if (info.Is(kOpImm) || info.Is(kOpIeth)) {
      EXPECT_TRUE(info.Is(kOpEnds)) << info.name;
    }
    if (info.Is(kOpAeth)) {
      EXPECT_TRUE(info.Is(kOpResponse)) << info.name;
    }
    if (info.Is(kOpAtomicAckEth)) {
      EXPECT_TRUE(info.Is(kOpAeth)) << info.name;
    }
    EXPECT_EQ(info.Is(kOpWrite) && info.Is(kOpStarts) && !info.Is(kOpReth), false) << info.name;
  }
}

TEST(OpcodeTable, ExtensionBytesAreThoseOfTheHeaders) {
  EXPECT_EQ(Info(Opcode::kSendMiddle).extension_bytes, 0);
  EXPECT_EQ(Info(Opcode::kSendOnlyImm).extension_bytes, 4);
  EXPECT_EQ(Info(Opcode::kWriteFirst).extension_bytes, 16);
  EXPECT_EQ(Info(Opcode::kWriteLastImm).extension_bytes, 4);
  EXPECT_EQ(Info(Opcode::kWriteOnlyImm).extension_bytes, 20);
  EXPECT_EQ(Info(Opcode::kReadRequest).extension_bytes, 16);
  EXPECT_EQ(Info(Opcode::kReadResponseFirst).extension_bytes, 4);
  EXPECT_EQ(Info(Opcode::kReadResponseMiddle).extension_bytes, 0);
  EXPECT_EQ(Info(Opcode::kAck).extension_bytes, 4);
  EXPECT_EQ(Info(Opcode::kAtomicAck).extension_bytes, 12);
  EXPECT_EQ(Info(Opcode::kCompareSwap).extension_bytes, 28);
  EXPECT_EQ(Info(Opcode::kSendLastInvalidate).extension_bytes, 4);
}

TEST(PayloadFits, EachRuleAtItsEdges) {
  constexpr uint32_t kMtu = 1024;
  struct Case {
    PayloadRule rule;
    bool zero, one, below, full, above;
  };
  for (const Case& c : {Case{PayloadRule::kNone, true, false, false, false, false},
                        Case{PayloadRule::kFull, false, false, false, true, false},
                        Case{PayloadRule::kOneToMtu, false, true, true, true, false},
                        Case{PayloadRule::kUpToMtu, true, true, true, true, false}}) {
    EXPECT_EQ(PayloadFits(c.rule, 0, kMtu), c.zero);
    EXPECT_EQ(PayloadFits(c.rule, 1, kMtu), c.one);
    EXPECT_EQ(PayloadFits(c.rule, kMtu - 1, kMtu), c.below);
    EXPECT_EQ(PayloadFits(c.rule, kMtu, kMtu), c.full);
    EXPECT_EQ(PayloadFits(c.rule, kMtu + 1, kMtu), c.above);
    EXPECT_FALSE(PayloadFits(c.rule, UINT32_MAX, kMtu));
  }
}

}  // namespace
}  // namespace verbscope::soft
