// Defects of rights, keys, bounds and of the data that messages carry.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "transports/soft/device/defect_fixture.h"

namespace verbscope::soft {
namespace {

constexpr uint32_t kBytes = 64;

class DefectDataTest : public DefectTest {
 protected:
  static void Fill(End& end, int byte, size_t bytes = kBytes) {
    std::memset(end.at(0), byte, bytes);
  }
  static int ByteAt(const End& end, size_t offset) { return static_cast<int>(*end.at(offset)); }
  // The status of one request.
  static ibv_wc_status Status(End& end, const SendWork& work) {
    EXPECT_EQ(Post(end, work), 0);
    return Wait(end.send_cq).status;
  }
  static uint64_t& Word(const End& end) { return *reinterpret_cast<uint64_t*>(end.at(0)); }
};

TEST_P(DefectDataTest, NoRights) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kNoRights);
    {
      auto [a, b] = ConnectedPair({}, {.access = IBV_ACCESS_LOCAL_WRITE});
      Fill(a, 7);
      EXPECT_EQ(Status(a, Write(a, b, 1, kBytes)), broken ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
      EXPECT_EQ(ByteAt(b, 0), broken ? 7 : 0);
    }
    auto [a, b] = ConnectedPair({}, {}, {.access = 0});
    EXPECT_EQ(Status(a, Read(a, b, 1, kBytes)), broken ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR);
    if (!broken) continue;
    EXPECT_EQ(Status(a, FetchAdd(a, b, 2, 1)), IBV_WC_SUCCESS);
    SendWork wrong_key = Write(a, b, 3, kBytes);
    wrong_key.wr.wr.rdma.rkey ^= 1;
    EXPECT_EQ(Status(a, wrong_key), IBV_WC_REM_ACCESS_ERR);
  }
}

TEST_P(DefectDataTest, NoRightsWritesToNothingThatCannotBeWritten) {
  Open(true, Defect::kNoRights);
  void* const memory = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  {
    auto [a, b] = ConnectedPair();
    const Mr mr =
        Must(b.device->RegisterMemory(b.pd.get(), {static_cast<std::byte*>(memory), 4096}, 0));
    SendWork work = Read(a, b, 1, kBytes);
    work.wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(memory);
    work.wr.wr.rdma.rkey = mr->rkey;
    EXPECT_EQ(Status(a, work), IBV_WC_SUCCESS);
    work.wr.opcode = IBV_WR_RDMA_WRITE;
    EXPECT_EQ(Status(a, work), IBV_WC_REM_ACCESS_ERR);
  }
  ::munmap(memory, 4096);
}

TEST_P(DefectDataTest, NoPd) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kNoPd);
    for (const bool local : {false, true}) {
      auto [a, b] = ConnectedPair();
      End& owner = local ? a : b;
      const Pd other = Must(owner.device->AllocatePd());
      const Mr mr =
          Must(owner.device->RegisterMemory(other.get(), owner.buffer->bytes(), kFullAccess));
      SendWork work = Write(a, b, 1, kBytes);
      (local ? work.sge.lkey : work.wr.wr.rdma.rkey) = mr->rkey;
      const ibv_wc_status honest = local ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR;
      EXPECT_EQ(Status(a, work), broken ? IBV_WC_SUCCESS : honest) << local;
    }
  }
}

TEST_P(DefectDataTest, NoBounds) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kNoBounds);
    for (const bool read : {false, true}) {
      auto [a, b] = ConnectedPair();
      // A region that ends inside of the buffer, in the middle of a packet.
      const Mr mr =
          Must(b.device->RegisterMemory(b.pd.get(), b.buffer->bytes().first(3000), kFullAccess));
      Fill(a, 7, 8192);
      Fill(b, 1, 8192);
      const auto work = [&a = a, &b = b, &mr, read](uint32_t bytes) {
        SendWork made = read ? Read(a, b, 1, bytes) : Write(a, b, 1, bytes);
        made.wr.wr.rdma.rkey = mr->rkey;
        return made;
      };
      EXPECT_EQ(Status(a, work(3064)), broken ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
      if (!broken) continue;
      EXPECT_EQ(ByteAt(read ? a : b, 2999), read ? 1 : 7);
      EXPECT_EQ(ByteAt(read ? a : b, 3000), read ? 0 : 1) << "is not touched";
      EXPECT_EQ(Status(a, work(3065)), IBV_WC_REM_ACCESS_ERR);
    }
  }
}

TEST_P(DefectDataTest, EmptyKey) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kEmptyKey);
    for (const bool local : {false, true}) {
      auto [a, b] = ConnectedPair();
      SendWork work = Write(a, b, 1, 0);
      (local ? work.sge.lkey : work.wr.wr.rdma.rkey) ^= 1;
      const ibv_wc_status failure = local ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR;
      EXPECT_EQ(Status(a, Write(a, b, 1, 0)), IBV_WC_SUCCESS);
      EXPECT_EQ(Status(a, work), broken ? failure : IBV_WC_SUCCESS) << local;
    }
  }
}

TEST_P(DefectDataTest, LazyAtomic) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kLazyAtomic);
    auto [a, b] = ConnectedPair();
    Word(b) = 5;
    EXPECT_EQ(Status(a, FetchAdd(a, b, 1, 3)), IBV_WC_SUCCESS);
    EXPECT_EQ(Word(a), 5U);
    EXPECT_EQ(Word(b), broken ? 5U : 8U);
    const uint64_t now = Word(b);
    EXPECT_EQ(Status(a, CompareSwap(a, b, 2, now, 100)), IBV_WC_SUCCESS);
    EXPECT_EQ(Word(a), now);
    EXPECT_EQ(Word(b), broken ? 5U : 100U);
  }
}

TEST_P(DefectDataTest, NoFence) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kNoFence);
    auto [a, b] = ConnectedPair();
    Fill(a, 0);
    Fill(b, 9);
    ASSERT_EQ(PostReceive(b, 1, kBytes, 4096), 0);
    SendWork read = Read(a, b, 2, kBytes);
    SendWork send = Send(a, 3, kBytes);
    send.wr.send_flags |= IBV_SEND_FENCE;
    read.wr.sg_list = &read.sge;
    send.wr.sg_list = &send.sge;
    read.wr.next = &send.wr;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(a.qp.get(), &read.wr, &bad), 0);
    EXPECT_EQ(Wait(a.send_cq).wr_id, 2U);
    EXPECT_EQ(Wait(a.send_cq).wr_id, 3U);
    EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(ByteAt(a, 0), 9);
    EXPECT_EQ(ByteAt(b, 4096), broken ? 0 : 9);
  }
}

TEST_P(DefectDataTest, CopyAtPost) {
  for (const bool broken : {false, true}) {
    SoftOptions options;
    options.fault.rules.push_back({.action = FaultAction::kDrop,
                                   .direction = FaultDirection::kSend,
                                   .packets = FaultClass::kSend,
                                   .transmission = 1});
    Open(broken, Defect::kCopyAtPost, options);
    auto [a, b] = ConnectedPair();
    Fill(a, 1, 3000);
    ASSERT_EQ(PostReceive(b, 1, 3000, 4096), 0);
    ASSERT_EQ(Post(a, Send(a, 2, 3000)), 0);
    Fill(a, 2, 3000);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(ByteAt(b, 4096), broken ? 1 : 2);
    EXPECT_EQ(ByteAt(b, 4096 + 2999), broken ? 1 : 2);
  }
}

TEST_P(DefectDataTest, InlineByReference) {
  for (const bool broken : {false, true}) {
    for (const bool gone : {false, true}) {
      Open(broken, Defect::kInlineByReference);
      auto [a, b] =
          ConnectedPair({.max_inline_bytes = kBytes}, {}, {.rnr_retry = 7, .min_rnr_timer = 14});
      void* const memory =
          ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(memory, MAP_FAILED);
      std::memset(memory, 1, kBytes);
      SendWork work = Send(a, 2, kBytes);
      work.sge = {.addr = reinterpret_cast<uintptr_t>(memory), .length = kBytes, .lkey = 0};
      work.wr.send_flags |= IBV_SEND_INLINE;
      ASSERT_EQ(Post(a, work), 0);
      // No receive: it is sent again. What was on its way at the change is gone two later.
      const auto refused = [&b = b] { return Counter(*b.device, "send_rnr_err"); };
      ASSERT_TRUE(PollUntil(b.recv_cq, [&] { return refused() > 0; }));
      std::memset(memory, 2, kBytes);
      if (gone) ::munmap(memory, 4096);
      const uint64_t enough = refused() + 2;
      ASSERT_TRUE(PollUntil(b.recv_cq, [&] { return refused() >= enough; }));
      ASSERT_EQ(PostReceive(b, 1, kBytes), 0);
      EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_SUCCESS);
      EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
      // What is gone cannot be read, and harms nobody.
      if (!gone || !broken) {
        EXPECT_EQ(ByteAt(b, 0), broken ? 2 : 1);
      }
      if (!gone) ::munmap(memory, 4096);
    }
  }
}

TEST_P(DefectDataTest, OverInline) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kOverInline);
    auto [a, b] = ConnectedPair({.max_inline_bytes = 16});
    Fill(a, 6, 3000);
    ASSERT_EQ(PostReceive(b, 1, 3000, 4096), 0);
    SendWork work = Send(a, 2, 3000);
    work.wr.send_flags |= IBV_SEND_INLINE;
    EXPECT_EQ(Post(a, work), broken ? 0 : EINVAL);
    if (!broken) continue;
    EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(ByteAt(b, 4096), 6);
    EXPECT_EQ(ByteAt(b, 4096 + 2999), 6);
  }
}

TEST_P(DefectDataTest, NoImmReceive) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kNoImmReceive);
    auto [a, b] = ConnectedPair();
    Fill(a, 3);
    ASSERT_EQ(PostReceive(b, 1, 0), 0);
    EXPECT_EQ(Status(a, WriteImmediate(a, b, 2, kBytes, 77)), IBV_WC_SUCCESS);
    EXPECT_EQ(ByteAt(b, 0), 3);
    if (broken) {
      ExpectEmpty(b.recv_cq);
    } else {
      EXPECT_EQ(Wait(b.recv_cq).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    }
  }
}

TEST_P(DefectDataTest, WriteTakesReceive) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kWriteTakesReceive);
    auto [a, b] = ConnectedPair();
    EXPECT_EQ(Status(a, Write(a, b, 1, kBytes)), IBV_WC_SUCCESS) << "also without a receive";
    ASSERT_EQ(PostReceive(b, 2, 0), 0);
    EXPECT_EQ(Status(a, Write(a, b, 3, kBytes)), IBV_WC_SUCCESS);
    if (!broken) {
      ExpectEmpty(b.recv_cq);
      continue;
    }
    const ibv_wc wc = Wait(b.recv_cq);
    EXPECT_EQ(wc.wr_id, 2U);
    EXPECT_EQ(wc.byte_len, kBytes);
    EXPECT_EQ(wc.wc_flags, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(, DefectDataTest, kIbtaDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
