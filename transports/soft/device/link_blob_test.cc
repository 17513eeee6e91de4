#include "transports/soft/device/link_blob.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace verbscope::soft {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

bool Same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::ranges::equal(a, b);
}

TEST(LinkBlob, ComesBackAsItWas) {
  const LinkBlob blobs[] = {{.memory = Bytes("memory")},
                            {.udp = Bytes("udp")},
                            {.memory = Bytes("memory"), .udp = Bytes("udp"), .chooses = true},
                            {.memory = Bytes("memory"), .chooses = true}};
  for (const LinkBlob& blob : blobs) {
    const std::vector<std::byte> bytes = EncodeLinkBlob(blob);
    const std::optional<LinkBlob> back = ParseLinkBlob(bytes);
    ASSERT_TRUE(back);
    EXPECT_TRUE(Same(back->memory, blob.memory));
    EXPECT_TRUE(Same(back->udp, blob.udp));
    EXPECT_EQ(back->chooses, blob.chooses);
  }
}

TEST(LinkBlob, WhatIsNoneIsRefused) {
  for (const std::string_view text :
       {std::string_view(""), std::string_view("x"), std::string_view("a"),
        std::string_view("a\0udp", 5), std::string_view("a\x05mem")}) {
    EXPECT_FALSE(ParseLinkBlob(Bytes(text))) << text;
  }
}

}  // namespace
}  // namespace verbscope::soft
