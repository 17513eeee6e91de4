// Messages whose last packet is spoiled: what lies in memory then, and that nothing else is
// different.
#include "transports/soft/engine/spoiled_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "transports/soft/engine/engine_fixture.h"

namespace verbscope::soft::testing {
namespace {

constexpr size_t kMtu = 256;
constexpr size_t kAt = 4096;  // of the message at its target

// The n-th message, from 1, gets the verdict; the others none.
class NthMessage final : public DataFilter {
 public:
  NthMessage(uint64_t nth, const DataVerdict& verdict) : nth_(nth), verdict_(verdict) {}
  DataVerdict NextMessage() override { return ++messages == nth_ ? verdict_ : DataVerdict{}; }
  uint64_t messages = 0;

 private:
  const uint64_t nth_;
  const DataVerdict verdict_;
};

class SpoiledDataTest : public ::testing::TestWithParam<std::tuple<ibv_wr_opcode, size_t>> {
 protected:
  bool read() const { return std::get<0>(GetParam()) == IBV_WR_RDMA_READ; }
  size_t bytes() const { return std::get<1>(GetParam()); }
  size_t last_packet() const { return (bytes() - 1) % kMtu + 1; }

  // One message from a's offset 0 to b's kAt, or for READs the other way round; in two pieces at
  // the target where the verbs let it. The places at the target that differ from the source.
  std::vector<size_t> Differences(Connection& c, DataFilter& filter) {
    Endpoint& target = read() ? c.a : c.b;
    const Endpoint& source = read() ? c.b : c.a;
    target.side.engine.env().data_filter = &filter;
    c.a.Fill(1);
    c.b.Fill(1);
    // As it is to be: the message, and around it what was there.
    std::vector<std::byte> expected = target.memory;
    std::copy_n(source.memory.begin() + 8192, bytes(), expected.begin() + kAt);
    const size_t half = bytes() / 2;
    const std::vector<ibv_sge> pieces = {target.Piece(kAt, half),
                                         target.Piece(kAt + half, bytes() - half)};
    const ibv_wr_opcode opcode = std::get<0>(GetParam());
    if (opcode == IBV_WR_SEND) {
      EXPECT_EQ(c.b.Receive(7, pieces), 0);
    }
    Work work = {.id = 1, .opcode = opcode, .rkey = c.b.key};
    work.local = read() ? pieces : std::vector<ibv_sge>{c.a.Piece(8192, bytes())};
    work.remote = c.b.Address(read() ? 8192 : kAt);
    EXPECT_EQ(c.a.Post(work), 0);
    c.world.Run();
    const std::vector<ibv_wc> sends = c.a.PollSend();
    EXPECT_EQ(sends.size(), 1U);
    for (const ibv_wc& wc : sends) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    for (const ibv_wc& wc : c.b.PollReceive()) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.byte_len, bytes());
    }
    std::vector<size_t> differences;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (target.memory[i] != expected[i]) differences.push_back(i);
    }
    return differences;
  }
  std::vector<size_t> Spoilt(const DataVerdict& verdict) {
    Connection c({.mtu = IBV_MTU_256});
    NthMessage filter(1, verdict);
    std::vector<size_t> differences = Differences(c, filter);
    EXPECT_EQ(filter.messages, 1U);
    return differences;
  }
};

TEST_P(SpoiledDataTest, OneBitOfTheLastPacketIsFlipped) {
  const size_t middle = kAt + bytes() - last_packet() + last_packet() / 2;
  EXPECT_EQ(Spoilt({.flip_bit = true}), std::vector<size_t>{middle});
}

TEST_P(SpoiledDataTest, TheLastPacketIsMissing) {
  const std::vector<size_t> missing = Spoilt({.skip_last = true});
  ASSERT_FALSE(missing.empty());
  EXPECT_GE(missing.front(), kAt + bytes() - last_packet());
  EXPECT_LT(missing.back(), kAt + bytes());
  EXPECT_GE(missing.size(), last_packet() / 2) << "the patterns agree here and there";
}

TEST_P(SpoiledDataTest, TheByteBehindIsOverwritten) {
  EXPECT_EQ(Spoilt({.write_past = true}), std::vector<size_t>{kAt + bytes()});
}

TEST_P(SpoiledDataTest, RepeatedPacketsAreCountedOnceAndTheOthersStayRight) {
  Connection c({.channel = {.lost_per_mille = 100, .doubled_per_mille = 100}, .mtu = IBV_MTU_256});
  NthMessage filter(10, {.flip_bit = true});
  for (uint64_t i = 1; i <= 20; ++i) {
    EXPECT_EQ(Differences(c, filter).size(), i == 10 ? 1U : 0U);
    EXPECT_EQ(filter.messages, i);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , SpoiledDataTest,
    ::testing::Combine(::testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ),
                       ::testing::Values(size_t{2}, kMtu - 1, kMtu, kMtu + 2, 5 * kMtu)),
    [](const auto& param_info) {
      const ibv_wr_opcode opcode = std::get<0>(param_info.param);
      return std::string(opcode == IBV_WR_SEND         ? "Send"
                         : opcode == IBV_WR_RDMA_WRITE ? "Write"
                                                       : "Read") +
             std::to_string(std::get<1>(param_info.param));
    });

TEST(WritePastTest, NothingBehindTheRegionIsTouched) {
  std::vector<std::byte> memory(16);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  MemoryTable table(8);
  ASSERT_TRUE(table.Add({.key = 7, .pd = 1, .address = address, .bytes = 8}));
  WritePast(table, 7, address + 8, 1);
  WritePast(table, 8, address + 4, 1);
  WritePast(table, 7, address + 4, 2);
  EXPECT_EQ(memory, std::vector<std::byte>(16));
  WritePast(table, 7, address + 7, 1);
  EXPECT_EQ(memory[7], std::byte{0xff});
}

TEST(SpoiledMessagesTest, WithoutDataThereIsNothingToSpoil) {
  Connection c;
  NthMessage filter(1, {.flip_bit = true, .write_past = true});
  for (Endpoint* end : {&c.a, &c.b}) end->side.engine.env().data_filter = &filter;
  ASSERT_EQ(c.b.Receive(7, {}), 0);
  ASSERT_EQ(c.b.Receive(8, {}), 0);
  const ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
  for (const ibv_wr_opcode opcode : opcodes) ASSERT_EQ(c.a.Post({.opcode = opcode}), 0);
  c.world.Run();
  EXPECT_EQ(c.a.PollSend().size(), 3U);
  EXPECT_EQ(filter.messages, 0U);
}

}  // namespace
}  // namespace verbscope::soft::testing
