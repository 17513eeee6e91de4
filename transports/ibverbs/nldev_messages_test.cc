#include "transports/ibverbs/nldev_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>

#include <cerrno>
#include <cstring>

#include "transports/ibverbs/resources_netlink.h"

namespace verbscope {
namespace {

using Bytes = std::vector<std::byte>;
using testing::IsEmpty;
using testing::SizeIs;

template <class T>
Bytes Raw(T value) {
  Bytes bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

Bytes Text(const std::string& text) {
  const auto raw = std::as_bytes(std::span(text.c_str(), text.size() + 1));
  return {raw.begin(), raw.end()};
}

Bytes Joined(const std::vector<Bytes>& parts) {
  Bytes bytes;
  for (const Bytes& part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

Bytes Attribute(int type, const Bytes& value) {
  const nlattr header = {.nla_len = static_cast<uint16_t>(NLA_HDRLEN + value.size()),
                         .nla_type = static_cast<uint16_t>(type)};
  Bytes bytes = Joined({Raw(header), value});
  bytes.resize(NLA_ALIGN(bytes.size()));
  return bytes;
}

Bytes Message(uint16_t type, const Bytes& payload) {
  const nlmsghdr header = {.nlmsg_len = static_cast<uint32_t>(NLMSG_HDRLEN + payload.size()),
                           .nlmsg_type = type,
                           .nlmsg_flags = NLM_F_MULTI,
                           .nlmsg_seq = 1,
                           .nlmsg_pid = 0};
  return Joined({Raw(header), payload});
}

Bytes Answer(uint16_t command, const Bytes& payload) {
  return Message(static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command)), payload);
}

const NldevKind& KindOf(std::string_view name) {
  return *std::ranges::find(kNldevKinds, name, &NldevKind::name);
}

Bytes Entries(const NldevKind& kind, const std::vector<Bytes>& entries) {
  std::vector<Bytes> parts;
  for (const Bytes& entry : entries) parts.push_back(Attribute(kind.entry | NLA_F_NESTED, entry));
  return Answer(kind.command, Joined({Attribute(RDMA_NLDEV_ATTR_DEV_INDEX, Raw(uint32_t{0})),
                                      Attribute(RDMA_NLDEV_ATTR_DEV_NAME, Text("rxe0")),
                                      Attribute(kind.table | NLA_F_NESTED, Joined(parts))}));
}

NldevAnswer Parsed(const Bytes& datagram, std::string_view kind, bool direct_is_last = true) {
  NldevAnswer answer;
  ParseNldevResources(datagram, KindOf(kind), direct_is_last, answer);
  return answer;
}

TEST(NldevDumpTest, NamesTheDeviceByItsIndex) {
  const Bytes all = NldevDump(RDMA_NLDEV_CMD_GET, 7);
  ASSERT_THAT(all, SizeIs(16));
  nlmsghdr header;
  std::memcpy(&header, all.data(), sizeof header);
  EXPECT_EQ(header.nlmsg_len, 16u);
  EXPECT_EQ(header.nlmsg_type, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET));
  EXPECT_EQ(header.nlmsg_flags, NLM_F_REQUEST | NLM_F_DUMP);
  EXPECT_EQ(header.nlmsg_seq, 7u);
  EXPECT_THAT(NldevDump(RDMA_NLDEV_CMD_RES_QP_GET, 8, 3), SizeIs(24));
}

TEST(NldevDevicesTest, IndexAndNameOfEach) {
  const Bytes device = Joined({Attribute(RDMA_NLDEV_ATTR_DEV_INDEX, Raw(uint32_t{5})),
                               Attribute(RDMA_NLDEV_ATTR_DEV_NAME, Text("mlx5_0")),
                               Attribute(RDMA_NLDEV_ATTR_PORT_INDEX, Raw(uint32_t{1}))});
  NldevAnswer answer;
  ParseNldevDevices(Answer(RDMA_NLDEV_CMD_GET, device), answer);
  ASSERT_THAT(answer.devices, SizeIs(1));
  EXPECT_EQ(answer.devices[0].index, 5u);
  EXPECT_EQ(answer.devices[0].name, "mlx5_0");
  EXPECT_FALSE(answer.done);
  ParseNldevDevices(Message(NLMSG_DONE, Raw(int{0})), answer);
  EXPECT_TRUE(answer.done);
  EXPECT_EQ(answer.errno_value, 0);
}

TEST(NldevResourcesTest, AQueuePairOfAUser) {
  const Bytes entry = Joined({Attribute(RDMA_NLDEV_ATTR_PORT_INDEX, Raw(uint32_t{1})),
                              Attribute(RDMA_NLDEV_ATTR_RES_LQPN, Raw(uint32_t{17})),
                              Attribute(RDMA_NLDEV_ATTR_RES_RQPN, Raw(uint32_t{18})),
                              Attribute(RDMA_NLDEV_ATTR_RES_RQ_PSN, Raw(uint32_t{100})),
                              Attribute(RDMA_NLDEV_ATTR_RES_SQ_PSN, Raw(uint32_t{200})),
                              Attribute(RDMA_NLDEV_ATTR_RES_TYPE, Raw(uint8_t{2})),
                              Attribute(RDMA_NLDEV_ATTR_RES_STATE, Raw(uint8_t{3})),
                              Attribute(RDMA_NLDEV_ATTR_RES_PDN, Raw(uint32_t{4})),
                              Attribute(RDMA_NLDEV_ATTR_RES_PID, Raw(uint32_t{4711}))});
  const NldevAnswer answer = Parsed(Entries(KindOf("qp"), {entry}), "qp");
  ASSERT_THAT(answer.rows, SizeIs(1));
  const ResourceRow wanted = {.kind = "qp",
                              .id = 17,
                              .owner = "user",
                              .pid = 4711,
                              .pd = 4,
                              .port = 1,
                              .type = "RC",
                              .state = "RTS",
                              .rqpn = 18,
                              .rq_psn = 100,
                              .sq_psn = 200};
  EXPECT_EQ(answer.rows[0], wanted);
}

TEST(NldevResourcesTest, ACompletionQueueOfTheKernelInBothNumberings) {
  const Bytes entry = Joined({Attribute(RDMA_NLDEV_ATTR_RES_CQE, Raw(uint32_t{1023})),
                              Attribute(RDMA_NLDEV_ATTR_RES_USECNT, Raw(uint64_t{2})),
                              Attribute(RDMA_NLDEV_ATTR_RES_POLL_CTX, Raw(uint8_t{2})),
                              Attribute(RDMA_NLDEV_ATTR_RES_CQN, Raw(uint32_t{1})),
                              Attribute(RDMA_NLDEV_ATTR_RES_KERN_NAME, Text("ib_core"))});
  const Bytes datagram = Entries(KindOf("cq"), {entry, entry});
  const NldevAnswer answer = Parsed(datagram, "cq");
  ASSERT_THAT(answer.rows, SizeIs(2));
  const ResourceRow& row = answer.rows[1];
  EXPECT_EQ(row.id, 1u);
  EXPECT_EQ(row.owner, "kernel");
  EXPECT_EQ(row.name, "ib_core");
  EXPECT_EQ(row.cqe, 1023u);
  EXPECT_EQ(row.users, 2u);
  EXPECT_EQ(row.poll_context, "unbound-workqueue");
  EXPECT_EQ(Parsed(datagram, "cq", /*direct_is_last=*/false).rows[0].poll_context, "workqueue");
}

TEST(NldevResourcesTest, AMemoryRegionWithAndWithoutKeys) {
  const Bytes plain = Joined({Attribute(RDMA_NLDEV_ATTR_RES_MRLEN, Raw(uint64_t{1} << 33)),
                              Attribute(RDMA_NLDEV_ATTR_RES_MRN, Raw(uint32_t{9}))});
  const Bytes keys = Joined({plain, Attribute(RDMA_NLDEV_ATTR_RES_RKEY, Raw(uint32_t{0x1234})),
                             Attribute(RDMA_NLDEV_ATTR_RES_LKEY, Raw(uint32_t{0x5678}))});
  const NldevAnswer answer = Parsed(Entries(KindOf("mr"), {plain, keys}), "mr");
  ASSERT_THAT(answer.rows, SizeIs(2));
  EXPECT_EQ(answer.rows[0].length_bytes, uint64_t{1} << 33);
  EXPECT_FALSE(answer.rows[0].rkey);
  EXPECT_EQ(answer.rows[1].rkey, 0x1234u);
  EXPECT_EQ(answer.rows[1].lkey, 0x5678u);
}

TEST(NldevResourcesTest, WhatIsNotUnderstoodIsLeftOut) {
  const Bytes entry = Joined({Attribute(RDMA_NLDEV_ATTR_RES_LQPN, Raw(uint8_t{1})),  // short
                              Attribute(RDMA_NLDEV_ATTR_RES_TYPE, Raw(uint8_t{255})),
                              Attribute(4000, Text("from a newer kernel"))});
  const NldevAnswer answer = Parsed(Entries(KindOf("qp"), {entry, {}}), "qp");
  ASSERT_THAT(answer.rows, SizeIs(2));
  EXPECT_FALSE(answer.rows[0].id);
  EXPECT_EQ(answer.rows[0].type, "255");
  EXPECT_EQ(answer.rows[0].owner, "");
  EXPECT_FALSE(answer.broken);
  EXPECT_THAT(Parsed(Entries(KindOf("mr"), {entry}), "qp").rows, IsEmpty());
}

TEST(NldevResourcesTest, ARefusalEndsTheAnswer) {
  const NldevAnswer answer = Parsed(Message(NLMSG_ERROR, Raw(int{-EINVAL})), "srq");
  EXPECT_TRUE(answer.done);
  EXPECT_EQ(answer.errno_value, EINVAL);
}

TEST(NldevResourcesTest, EveryCutDatagramIsBrokenOrShorter) {
  const Bytes entry = Attribute(RDMA_NLDEV_ATTR_RES_LQPN, Raw(uint32_t{17}));
  const Bytes datagram = Entries(KindOf("qp"), {entry, entry});
  for (size_t size = 1; size < datagram.size(); ++size) {
    EXPECT_TRUE(
        Parsed(Bytes(datagram.begin(), datagram.begin() + static_cast<int>(size)), "qp").broken)
        << size;
  }
  EXPECT_FALSE(Parsed(datagram, "qp").broken);
}

TEST(DirectIsLastTest, FromKernel5Dot8On) {
  EXPECT_FALSE(DirectIsLast("4.19.0-27-amd64"));
  EXPECT_FALSE(DirectIsLast("5.7.19"));
  EXPECT_TRUE(DirectIsLast("5.8.0"));
  EXPECT_TRUE(DirectIsLast("5.10.0-33"));
  EXPECT_TRUE(DirectIsLast("6.1.0-28-amd64"));
  for (const char* text : {"", "x", "6", "6."}) EXPECT_TRUE(DirectIsLast(text)) << text;
}

// Whatever this host has: the call ends, with rows or a reason.
TEST(ReadResourcesTest, ThisHostAnswersOrSaysWhyNot) {
  const auto resources = ReadResources({});
  if (!resources) {
    EXPECT_FALSE(resources.error().cause.empty());
    EXPECT_FALSE(resources.error().next_step.empty());
  }
}

}  // namespace
}  // namespace verbscope
