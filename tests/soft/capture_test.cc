// Captures of mixed traffic, IPv4 and IPv6: every packet that was sent or received is in the file,
// with headers that parse by the rules of annex A17 and a right ICRC. tests/soft/soft_suite.py lets
// tshark and scapy judge the same files (VERBSCOPE_CAPTURES names the folder to leave them in).
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/soft/mixed_traffic.h"
#include "transports/soft/wire/frame.h"
#include "transports/soft/wire/icrc.h"

namespace verbscope::soft {
namespace {

constexpr size_t kFileHeader = 24;
constexpr size_t kRecordHeader = 16;

std::string Folder() {
  for (const char* name : {"VERBSCOPE_CAPTURES", "TEST_TMPDIR"}) {
    if (const char* folder = std::getenv(name); folder != nullptr) return folder;
  }
  return testing::TempDir();
}

ibv_gid Address(const char* text) {
  ibv_gid gid = {};
  EXPECT_EQ(::inet_pton(AF_INET6, text, gid.raw), 1);
  return gid;
}

std::vector<std::byte> ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

// Runs traffic into `path`. Returns what the capturing device sent and received.
uint64_t Record(const std::string& path, const char* address) {
  NoTeardownFailures report;
  SoftOptions options;
  options.address = Address(address);
  options.pcap_path = path;
  const std::unique_ptr<SoftDevice> left = OpenDevice(options);
  options.pcap_path.clear();
  const std::unique_ptr<SoftDevice> right = OpenDevice(options);
  left->set_teardown_report(&report);
  right->set_teardown_report(&report);
  const EndOptions memory{.signal_all = true, .bytes = MixedTrafficBytes()};
  End a = MakeEnd(*left, memory);
  End b = MakeEnd(*right, memory);
  EXPECT_TRUE(Connect(a, b, {.mtu = IBV_MTU_1024, .retry_cnt = 7, .rd_atomic = 8}));
  RunMixedTraffic(a, b, /*seed=*/7, /*messages=*/2000);
  return Counter(*left, "sent_pkts") + Counter(*left, "rcvd_pkts");
}

void ExpectEveryPacket(const std::string& path, uint64_t packets) {
  const std::vector<std::byte> file = ReadAll(path);
  std::set<Opcode> seen;
  uint64_t found = 0;
  for (size_t at = kFileHeader; at + kRecordHeader <= file.size(); ++found) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, &file[at + 8], sizeof(bytes));
    ASSERT_LE(at + kRecordHeader + bytes, file.size());
    const std::span<const std::byte> packet(&file[at + kRecordHeader], bytes);
    const std::optional<Frame> frame = ParseFrame(packet);
    ASSERT_TRUE(frame) << "packet " << found;
    ASSERT_TRUE(VerifyIcrc(packet)) << "packet " << found;
    Header header;
    std::span<const std::byte> payload;
    const auto transport = frame->transport.first(frame->transport.size() - kIcrcBytes);
    ASSERT_EQ(Decode(transport, header, payload), DecodeResult::kOk);
    seen.insert(header.opcode);
    at += kRecordHeader + bytes;
  }
  EXPECT_EQ(found, packets);
  // All RC opcodes but the two SENDs with invalidate.
  EXPECT_EQ(seen.size(), 21u);
}

TEST(Capture, HoldsEveryPacketOfIpv4Traffic) {
  const std::string path = Folder() + "/ipv4.pcap";
  const uint64_t packets = Record(path, "::ffff:127.0.0.1");
  ExpectEveryPacket(path, packets);
}

TEST(Capture, HoldsEveryPacketOfIpv6Traffic) {
  const std::string path = Folder() + "/ipv6.pcap";
  const uint64_t packets = Record(path, "::1");
  ExpectEveryPacket(path, packets);
}

}  // namespace
}  // namespace verbscope::soft
