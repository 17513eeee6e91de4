#include "transports/soft/wire/icrc_cache.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace verbscope::soft {
namespace {

Flow MakeFlow(bool ipv4) {
  Flow flow;
  flow.source[0] = flow.destination[0] = 0xfd;
  flow.source[15] = 1;
  flow.destination[15] = 2;
  if (ipv4) {
    flow.source = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
    flow.destination = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
  }
  flow.source_port = 0xc123;
  flow.hop_limit = 64;
  flow.traffic_class = 0x2e;
  return flow;
}

// Whatever comes in whatever order, known or not, it is what TransportIcrc says.
TEST(IcrcCache, IsTransportIcrc) {
  std::minstd_rand random(3);
  for (const bool ipv4 : {true, false}) {
    Flow flow = MakeFlow(ipv4);
    IcrcCache cache;
    for (int i = 0; i < 20'000; ++i) {
      const size_t bytes = 12 + 4 * (random() % 40);
      std::vector<std::byte> transport(bytes);
      for (std::byte& byte : transport) byte = static_cast<std::byte>(random());
      flow.source_port = static_cast<uint16_t>(0xc000 + random() % 3);
      const auto id = static_cast<uint16_t>(ipv4 ? random() % 100 : 0);
      ASSERT_EQ(cache.Of(flow, transport, id), TransportIcrc(flow, transport, id))
          << bytes << " bytes, ID " << id;
    }
  }
}

TEST(IcrcCache, TheLongestPacketHasAPlace) {
  const Flow flow = MakeFlow(true);
  IcrcCache cache;
  const std::vector<std::byte> transport(65'500);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cache.Of(flow, transport), TransportIcrc(flow, transport));
}

}  // namespace
}  // namespace verbscope::soft
