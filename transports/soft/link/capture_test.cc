#include "transports/soft/link/capture.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/soft/link/capture_file.h"
#include "transports/soft/link/link_test_support.h"

namespace verbscope::soft {
namespace {

uint64_t g_now_ns = 0;
uint64_t TestClock() { return g_now_ns; }

class CaptureTest : public testing::Test {
 protected:
  CaptureTest() : path_(testing::TempDir() + "/capture_test.pcap") {
    g_now_ns = 1'700'000'000'123'456'789;
  }
  ~CaptureTest() override { std::filesystem::remove(path_); }

  std::unique_ptr<CaptureFile> Open() {
    auto file = CaptureFile::Open(path_, TestClock);
    EXPECT_TRUE(file) << file.error().ToText();
    return file ? std::move(*file) : nullptr;
  }
  std::vector<std::byte> Content() const {
    std::ifstream in(path_, std::ios::binary);
    const std::vector<char> chars((std::istreambuf_iterator<char>(in)), {});
    std::vector<std::byte> bytes(chars.size());
    std::memcpy(bytes.data(), chars.data(), chars.size());
    return bytes;
  }
  struct Packet {
    uint32_t seconds;
    uint32_t nanoseconds;
    std::vector<std::byte> frame;
  };
  // Checks the whole structure of the file.
  std::vector<Packet> Packets() const {
    const std::vector<std::byte> bytes = Content();
    constexpr uint8_t kHeader[] = {0x4d, 0x3c, 0xb2, 0xa1, 2,   0,   4, 0, 0,   0, 0, 0,
                                   0,    0,    0,    0,    255, 255, 0, 0, 101, 0, 0, 0};
    EXPECT_GE(bytes.size(), sizeof(kHeader));
    EXPECT_EQ(std::memcmp(bytes.data(), kHeader, sizeof(kHeader)), 0);
    std::vector<Packet> packets;
    for (size_t at = sizeof(kHeader); at < bytes.size();) {
      uint32_t fields[4];
      EXPECT_LE(at + sizeof(fields), bytes.size());
      std::memcpy(fields, bytes.data() + at, sizeof(fields));
      at += sizeof(fields);
      EXPECT_EQ(fields[2], fields[3]);
      EXPECT_LE(at + fields[2], bytes.size());
      packets.push_back({fields[0],
                         fields[1],
                         {bytes.begin() + static_cast<ptrdiff_t>(at),
                          bytes.begin() + static_cast<ptrdiff_t>(at + fields[2])}});
      at += fields[2];
    }
    return packets;
  }

  const std::string path_;
};

TEST_F(CaptureTest, RecordsBothDirectionsWithTheirAddresses) {
  TestPeer a;
  TestPeer b;
  const auto to_b = a.link->Connect(b.link->LocalBlob(), TestFlow(1, 2), Soon());
  const auto to_a = b.link->Connect(a.link->LocalBlob(), TestFlow(2, 1), Soon());
  ASSERT_TRUE(to_b && to_a);
  a.link->Serve();
  const auto data = Pattern(333, 1);
  const auto answer = Pattern(4096, 2);
  {
    auto file = Open();
    ASSERT_NE(file, nullptr);
    CaptureSink sink(*file, *a.link, *a.link, *a.link);
    CaptureReceiver receiver(*file, a.received, *a.link);
    const std::span<const std::byte> whole(data);
    const std::span<const std::byte> pieces[] = {whole.first(100), whole.subspan(100)};
    DeviceLockHolder hold(a.lock);
    EXPECT_TRUE(sink.CanSend(*to_b));
    ASSERT_TRUE(sink.Send(*to_b, SendHeader(5, data.size()), pieces));
    g_now_ns += 1'000'000'001;
    b.SendAndFlush(*to_a, SendHeader(6, answer.size()), answer);
    ASSERT_EQ(a.link->Poll(receiver, 10), 1U);
  }
  ASSERT_EQ(a.received.packets.size(), 1U);
  const std::vector<Packet> packets = Packets();
  ASSERT_EQ(packets.size(), 2U);
  EXPECT_EQ(packets[0].seconds, 1'700'000'000U);
  EXPECT_EQ(packets[0].nanoseconds, 123'456'789U);
  EXPECT_EQ(packets[1].seconds, 1'700'000'001U);
  EXPECT_EQ(packets[1].nanoseconds, 123'456'790U);
  const Flow flows[] = {TestFlow(1, 2), TestFlow(2, 1)};
  for (size_t i = 0; i < 2; ++i) {
    const auto frame = ParseFrame(packets[i].frame);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->flow, flows[i]);
    EXPECT_TRUE(VerifyTransport(frame->flow, frame->transport));
    Header header;
    std::span<const std::byte> payload;
    ASSERT_EQ(Decode(frame->transport.first(frame->transport.size() - kIcrcBytes), header, payload),
              DecodeResult::kOk);
    EXPECT_EQ(header.psn, 5 + i);
    EXPECT_EQ(std::vector<std::byte>(payload.begin(), payload.end()), i == 0 ? data : answer);
  }
}

TEST_F(CaptureTest, RecordsDamagedPacketsAsTheyAre) {
  TestPeer a;
  TestPeer b;
  const PathId path = a.ConnectTo(b);
  std::vector<std::byte> packet;
  {
    auto file = Open();
    ASSERT_NE(file, nullptr);
    CaptureSink sink(*file, *a.link, *a.link, *a.link);
    const auto data = Pattern(50, 1);
    const std::span<const std::byte> pieces[] = {data};
    DeviceLockHolder hold(a.lock);
    BuildTransport(TestFlow(1, 2), SendHeader(1, 50), pieces, packet);
    packet[30] ^= std::byte{1};
    ASSERT_TRUE(sink.SendRaw(path, packet));
  }
  const std::vector<Packet> packets = Packets();
  ASSERT_EQ(packets.size(), 1U);
  const auto frame = ParseFrame(packets[0].frame);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->flow, TestFlow(1, 2));
  EXPECT_TRUE(
      std::equal(packet.begin(), packet.end(), frame->transport.begin(), frame->transport.end()));
  EXPECT_FALSE(VerifyTransport(frame->flow, frame->transport));
}

TEST_F(CaptureTest, RecordsOnlyWhatTheLinkTook) {
  TestPeer a;
  TestPeer b;
  const PathId path = a.ConnectTo(b);
  {
    auto file = Open();
    ASSERT_NE(file, nullptr);
    CaptureSink sink(*file, *a.link, *a.link, *a.link);
    DeviceLockHolder hold(a.lock);
    uint32_t sent = 0;
    while (sink.Send(path, SendHeader(sent, 0), {})) ++sent;
    EXPECT_EQ(sent, 64U);
    EXPECT_FALSE(sink.CanSend(path));
    EXPECT_TRUE(sink.Send(99, SendHeader(0, 0), {}));  // lost, and of no known address
  }
  EXPECT_EQ(Packets().size(), 64U);
}

TEST_F(CaptureTest, IsWrittenEachSecond) {
  auto file = Open();
  ASSERT_NE(file, nullptr);
  file->Write(Pattern(100, 1));
  file->Tick();
  EXPECT_EQ(Packets().size(), 0U);
  g_now_ns += 999'999'999;
  file->Tick();
  EXPECT_EQ(Packets().size(), 0U);
  g_now_ns += 1;
  file->Tick();
  EXPECT_EQ(Packets().size(), 1U);
}

TEST_F(CaptureTest, SurvivesMoreThanABuffer) {
  {
    auto file = Open();
    ASSERT_NE(file, nullptr);
    for (uint32_t i = 0; i < 1000; ++i) file->Write(Pattern(4000, i));
    EXPECT_GT(Packets().size(), 800U);
  }
  const std::vector<Packet> packets = Packets();
  ASSERT_EQ(packets.size(), 1000U);
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(packets[i].frame, Pattern(4000, i));
}

TEST_F(CaptureTest, SaysWhyItCannotBegin) {
  const auto file = CaptureFile::Open("/nonexistent/x.pcap");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().error_class, ErrorClass::kSetup);
  EXPECT_NE(file.error().message.find("/nonexistent/x.pcap"), std::string::npos);
  EXPECT_EQ(file.error().errno_value, ENOENT);
  EXPECT_FALSE(CaptureFile::Open("/dev/full"));
}

// A limit on the size of files stands for a full disk.
TEST_F(CaptureTest, FullDiskEndsTheCaptureOnly) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 600'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    auto file = Open();
    ASSERT_NE(file, nullptr);
    EXPECT_FALSE(file->TakeError());
    for (uint32_t i = 0; i < 1000; ++i) file->Write(Pattern(4000, i));
    EXPECT_TRUE(file->Broken());
    const auto error = file->TakeError();
    ASSERT_TRUE(error);
    EXPECT_NE(error->message.find("capture ends early"), std::string::npos) << error->message;
    EXPECT_FALSE(file->TakeError());  // once
    file->Tick();
    file->Flush();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  // What is there is whole.
  const std::vector<Packet> packets = Packets();
  EXPECT_GT(packets.size(), 50U);
  for (uint32_t i = 0; i < packets.size(); ++i) ASSERT_EQ(packets[i].frame, Pattern(4000, i));
}

}  // namespace
}  // namespace verbscope::soft
