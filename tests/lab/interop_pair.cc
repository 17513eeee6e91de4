#include "tests/lab/interop_pair.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/lab/namespace_guard.h"
#include "transports/ibverbs/provider.h"

namespace verbscope::soft {
namespace {

ibv_gid GidOf(const char* address) {
  const std::string text =
      std::string_view(address).find(':') == std::string_view::npos ? "::ffff:" : "";
  ibv_gid gid = {};
  EXPECT_EQ(::inet_pton(AF_INET6, (text + address).c_str(), gid.raw), 1) << address;
  return gid;
}

// Leaves the device null if it has no such address.
void Place(Party& party, std::unique_ptr<Device> device) {
  for (const GidEntry& entry : device->info().ports.front().gids) {
    if (std::memcmp(entry.raw.raw, party.gid.raw, sizeof(party.gid.raw)) != 0) continue;
    party.gid_index = static_cast<uint8_t>(entry.index);
    party.device = std::move(device);
    return;
  }
  ADD_FAILURE() << device->info().name << " has no GID of the address";
}

Status ToRtr(Party& party, End& end, const Party& peer, const End& peer_end,
             const ConnectOptions& options) {
  const std::vector<std::byte> blob = peer.device->PeerBlob(peer_end.qp.get());
  if (Status told = party.device->AcceptPeerBlob(end.qp.get(), blob); !told) return told;
  ibv_qp_attr attributes =
      RtrAttributes(*party.device, *peer_end.qp.get(), options, peer.device.get());
  attributes.ah_attr.grh.sgid_index = party.gid_index;
  attributes.ah_attr.grh.dgid = peer.gid;
  const NamespaceGuard inside(party.network);
  return party.device->ModifyQp(end.qp.get(), attributes, kRtrMask, "INIT to RTR");
}

}  // namespace

std::string CapturePath() {
  const char* folder = std::getenv("VERBSCOPE_CAPTURES");
  if (folder == nullptr) return "";
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test.test_suite_name()) + "." + test.name();
  std::replace(name.begin(), name.end(), '/', '-');
  return std::string(folder) + "/" + name + ".pcap";
}

Party OpenRxe(const char* address) {
  Party party{.gid = GidOf(address)};
  Expected<std::unique_ptr<Device>> device = IbverbsProvider().Open("rxe0");
  EXPECT_TRUE(device) << device.error().ToText();
  if (device) Place(party, std::move(*device));
  return party;
}

SoftOptions Tireless() {
  SoftOptions options;
  options.profile = Profile::kRxe61;
  return options;
}

Party OpenSoft(const std::string& network, const char* address, SoftOptions options) {
  Party party{.network = network, .gid = GidOf(address)};
  options.link = LinkKind::kUdp;
  options.address = party.gid;
  if (options.pcap_path.empty()) options.pcap_path = CapturePath();
  const NamespaceGuard inside(network);
  if (std::unique_ptr<SoftDevice> device = OpenDevice(options)) Place(party, std::move(device));
  return party;
}

Status ConnectParties(Party& one, End& end_of_one, Party& two, End& end_of_two,
                      const ConnectOptions& options) {
  for (End* end : {&end_of_one, &end_of_two}) {
    if (Status status = ToInit(*end, options); !status) return status;
  }
  if (Status status = ToRtr(one, end_of_one, two, end_of_two, options); !status) return status;
  if (Status status = ToRtr(two, end_of_two, one, end_of_one, options); !status) return status;
  for (End* end : {&end_of_one, &end_of_two}) {
    if (Status status = ToRts(*end, options); !status) return status;
  }
  return {};
}

std::string InteropParam::NameOf(const testing::TestParamInfo<InteropParam>& info) {
  return std::string(info.param.soft_requests ? "SoftToRxe" : "RxeToSoft") +
         (info.param.ipv6 ? "Ipv6" : "Ipv4") + "Mtu" + std::to_string(128U << info.param.mtu);
}

void InteropTest::SetUp() {
  const bool ipv6 = GetParam().ipv6;
  soft_ = OpenSoft("peer", ipv6 ? "fd09::2" : "10.9.0.2");
  rxe_ = OpenRxe(ipv6 ? "fd09::1" : "10.9.0.1");
  ASSERT_TRUE(soft_.device != nullptr && rxe_.device != nullptr);
  soft_.device->set_teardown_report(&report_);
  rxe_.device->set_teardown_report(&report_);
}

void InteropTest::ConnectEnds(ConnectOptions options, const EndOptions& memory) {
  options.mtu = GetParam().mtu;
  soft_end_.Close();
  rxe_end_.Close();
  soft_end_ = MakeEnd(*soft_.device, memory);
  rxe_end_ = MakeEnd(*rxe_.device, memory);
  const Status connected = ConnectParties(soft_, soft_end_, rxe_, rxe_end_, options);
  ASSERT_TRUE(connected) << connected.error().ToText();
}

}  // namespace verbscope::soft
