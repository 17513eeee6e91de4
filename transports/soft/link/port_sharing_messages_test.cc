#include "transports/soft/link/port_sharing_messages.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

namespace verbscope::soft {
namespace {

using Kind = SharingMessage::Kind;

const SharingMessage kGood[] = {
    {.kind = Kind::kHello},
    {.kind = Kind::kHello, .index = 2, .slots = 3, .id = 7},
    {.kind = Kind::kHello, .index = 127, .slots = 128, .id = 7},
    {.kind = Kind::kEntry, .index = 0, .tag = 1, .id = 7},
    {.kind = Kind::kEntry, .index = 127, .tag = 255, .id = ~0ULL},
    {.kind = Kind::kWant, .index = 5},
    {.kind = Kind::kWelcome, .index = 3, .tag = 9, .id = 7},
    {.kind = Kind::kRefused, .errno_value = 28},
};

const SharingMessage kBad[] = {
    {.kind = static_cast<Kind>(0), .index = 0},
    {.kind = static_cast<Kind>(6), .index = 0, .tag = 1, .id = 7},
    {.kind = Kind::kHello, .index = kNoSlot, .id = 7},          // no slot, yet an owner
    {.kind = Kind::kHello, .index = kNoSlot, .slots = 1},       // knows what it cannot know
    {.kind = Kind::kHello, .index = 2, .slots = 3},             // no owner
    {.kind = Kind::kHello, .index = 2, .slots = 2, .id = 7},    // does not know its own slot
    {.kind = Kind::kHello, .index = 2, .slots = 129, .id = 7},  // too many
    {.kind = Kind::kHello, .index = 128, .slots = 129, .id = 7},
    {.kind = Kind::kEntry, .index = 128, .tag = 1, .id = 7},
    {.kind = Kind::kEntry, .index = kNoSlot, .tag = 1, .id = 7},
    {.kind = Kind::kEntry, .index = 0, .tag = 0, .id = 7},
    {.kind = Kind::kEntry, .index = 0, .tag = 256, .id = 7},
    {.kind = Kind::kEntry, .index = 0, .tag = 1},
    {.kind = Kind::kWelcome, .index = kNoSlot, .tag = 1, .id = 7},
    {.kind = Kind::kWant},
    {.kind = Kind::kRefused},
};

TEST(PortSharingMessages, ComeBackAsTheyWere) {
  for (const SharingMessage& message : kGood) {
    EXPECT_EQ(ParseSharingMessage(EncodeSharingMessage(message)), message);
  }
}

TEST(PortSharingMessages, NumbersNoMemberSendsAreRefused) {
  for (const SharingMessage& message : kBad) {
    EXPECT_FALSE(ParseSharingMessage(EncodeSharingMessage(message)))
        << "kind " << static_cast<uint32_t>(message.kind) << " index " << message.index;
  }
}

TEST(PortSharingMessages, OtherSizesAndMagicsAreRefused) {
  std::vector<std::byte> bytes = EncodeSharingMessage(kGood[0]);
  EXPECT_FALSE(ParseSharingMessage(std::span(bytes).first(bytes.size() - 1)));
  EXPECT_FALSE(ParseSharingMessage({}));
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(ParseSharingMessage(bytes));
  bytes.pop_back();
  bytes[0] ^= std::byte{1};
  EXPECT_FALSE(ParseSharingMessage(bytes));
}

TEST(PortSharingMessages, KeeperIsNamedAfterUserAndAddress) {
  const LocalAddress a = LocalAddress::Ipv4(127, 0, 0, 1);
  EXPECT_NE(KeeperName(0, a), KeeperName(1, a));
  EXPECT_NE(KeeperName(0, a), KeeperName(0, LocalAddress::Ipv4(127, 0, 0, 2)));
  LocalAddress link_local;
  link_local.gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  link_local.interface_index = 2;
  const std::string on_two = KeeperName(~0U, link_local);
  link_local.interface_index = 3;
  EXPECT_NE(KeeperName(~0U, link_local), on_two);
  EXPECT_LT(on_two.size(), 100U);  // an abstract name has 107 bytes
}

}  // namespace
}  // namespace verbscope::soft
