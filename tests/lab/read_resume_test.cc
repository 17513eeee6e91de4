// READs whose answers are lost on the way from rxe: the soft device asks for the rest, and rxe
// begins that with a Middle packet, where an adapter would send a First. netem loses packets of rxe
// only. Runs in the lab (rxe_interop_suite.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tests/lab/interop_pair.h"
#include "tests/soft/mixed_traffic.h"
#include "transports/soft/wire/frame.h"
#include "transports/soft/wire/header.h"
#include "transports/soft/wire/icrc.h"

namespace verbscope::soft {
namespace {

constexpr uint32_t kBytes = 64 * 1024;
constexpr size_t kFileHeader = 24;
constexpr size_t kRecordHeader = 16;

// Of all READs in a capture, how the answers to a request for the rest of one began.
struct Resumed {
  size_t with_first = 0;
  size_t with_middle = 0;
};

Resumed CountResumed(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::span<const std::byte> file = std::as_bytes(std::span(text));
  std::set<uint32_t> asked;  // PSNs at which a rest was asked for, and no answer came yet
  uint32_t whole = 0;        // the remaining bytes of whole READs
  Resumed resumed;
  for (size_t at = kFileHeader; at + kRecordHeader <= file.size();) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, &file[at + 8], sizeof(bytes));
    const std::optional<Frame> frame = ParseFrame(file.subspan(at + kRecordHeader, bytes));
    at += kRecordHeader + bytes;
    if (!frame) continue;
    Header header;
    std::span<const std::byte> payload;
    const auto packet = frame->transport.first(frame->transport.size() - kIcrcBytes);
    if (Decode(packet, header, payload) != DecodeResult::kOk) continue;
    if (header.opcode == Opcode::kReadRequest) {
      whole = std::max(whole, header.dma_length);
      if (header.dma_length < whole) asked.insert(header.psn);
    } else if (asked.erase(header.psn) > 0) {
      resumed.with_first += header.opcode == Opcode::kReadResponseFirst ? 1 : 0;
      resumed.with_middle += header.opcode == Opcode::kReadResponseMiddle ? 1 : 0;
    }
  }
  return resumed;
}

TEST(ReadResume, GoesOnWhereTheAnswerStopped) {
  NoTeardownFailures report;
  const uint64_t reads = Setting("VERBSCOPE_MESSAGES", 200);
  std::string path = CapturePath();
  if (path.empty()) path = testing::TempDir() + "/read_resume.pcap";
  {
    SoftOptions options = Tireless();
    options.pcap_path = path;
    Party soft = OpenSoft("peer", "10.9.0.2", options);
    Party rxe = OpenRxe("10.9.0.1");
    ASSERT_TRUE(soft.device != nullptr && rxe.device != nullptr);
    soft.device->set_teardown_report(&report);
    End from = MakeEnd(*soft.device);
    End to = MakeEnd(*rxe.device);
    ASSERT_TRUE(ConnectParties(soft, from, rxe, to, {.timeout = 8, .retry_cnt = 7}));
    for (uint64_t i = 0; i < reads; ++i) {
      const std::vector<std::byte> data = Pattern(kBytes, static_cast<uint32_t>(i));
      std::memcpy(to.at(0), data.data(), kBytes);
      ASSERT_EQ(Post(from, Read(from, to, i, kBytes)), 0);
      const ibv_wc wc = Wait(from.send_cq);
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.wr_id, i);
      ASSERT_EQ(std::memcmp(from.at(0), data.data(), kBytes), 0) << "READ " << i;
    }
    ExpectEmpty(from.send_cq);
    EXPECT_GT(Counter(*soft.device, "completer_retry_err"), reads);
  }
  const Resumed resumed = CountResumed(path);
  std::printf("# rests of READs that began with First: %zu, with Middle: %zu\n", resumed.with_first,
              resumed.with_middle);
  EXPECT_GT(resumed.with_middle, reads);
}

}  // namespace
}  // namespace verbscope::soft
