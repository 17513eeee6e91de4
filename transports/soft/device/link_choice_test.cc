// Which link carries the packets of devices that have both: what they tell each other decides, and
// messages go through.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "transports/soft/device/device_fixture.h"
#include "transports/soft/device/link_blob.h"
#include "transports/soft/link/rendezvous_messages.h"
#include "transports/soft/link/udp_blob.h"

namespace verbscope::soft {
namespace {

using Blob = std::vector<std::byte>;

template <class F>
Blob Changed(const Blob& blob, F&& change) {
  const std::optional<LinkBlob> parts = ParseLinkBlob(blob);
  EXPECT_TRUE(parts);
  Expected<LinkAddress> address = ParseBlob(parts->memory);
  EXPECT_TRUE(address);
  change(*address);
  const Blob memory = EncodeBlob(*address);
  return EncodeLinkBlob({.memory = memory, .udp = parts->udp, .chooses = parts->chooses});
}

// The same device as if it were of another user.
Blob OfAnother(const Blob& blob) {
  return Changed(blob, [](LinkAddress& address) { ++address.uid; });
}

class LinkChoiceTest : public testing::Test {
 protected:
  std::unique_ptr<SoftDevice> Open(LinkKind link) {
    SoftOptions options;
    options.link = link;
    std::unique_ptr<SoftDevice> device = OpenDevice(options);
    device->set_teardown_report(&report_);
    return device;
  }

  // Connects as Connect does, with the blobs that `a` and `b` are given.
  static Status Join(End& a, End& b, const Blob& for_a, const Blob& for_b) {
    for (End* end : {&a, &b}) {
      if (Status status = ToInit(*end); !status) return status;
    }
    if (Status status = OneSide(a, b, for_a); !status) return status;
    return OneSide(b, a, for_b);
  }

  static Status OneSide(End& end, End& peer, const Blob& blob) {
    if (Status status = end.device->AcceptPeerBlob(end.qp.get(), blob); !status) return status;
    ibv_qp_attr attributes = RtrAttributes(*end.device, *peer.qp.get(), {}, peer.device);
    if (Status status = end.device->ModifyQp(end.qp.get(), attributes, kRtrMask, "RTR"); !status) {
      return status;
    }
    return ToRts(end);
  }

  static Blob BlobOf(End& end) { return end.device->PeerBlob(end.qp.get()); }

  static void ExpectMessagesPass(End& a, End& b) {
    for (End* from : {&a, &b}) {
      End& to = from == &a ? b : a;
      ASSERT_EQ(PostReceive(to, 1, 64), 0);
      ASSERT_EQ(Post(*from, Send(*from, 2, 64)), 0);
      EXPECT_EQ(Wait(from->send_cq).status, IBV_WC_SUCCESS);
      EXPECT_EQ(Wait(to.recv_cq).status, IBV_WC_SUCCESS);
    }
  }

  NoTeardownFailures report_;
};

TEST_F(LinkChoiceTest, MemoryWhenThePeerIsOfThisUserHere) {
  const auto left = Open(LinkKind::kAuto);
  const auto right = Open(LinkKind::kAuto);
  End a = MakeEnd(*left);
  End b = MakeEnd(*right);
  ASSERT_TRUE(Join(a, b, BlobOf(b), BlobOf(a)));
  ExpectMessagesPass(a, b);
  for (SoftDevice* device : {left.get(), right.get()}) {
    EXPECT_EQ(device->ReportLink().link, "memory");
    EXPECT_EQ(device->ReportLink().icrc, "not needed in memory");
  }
}

TEST_F(LinkChoiceTest, UdpWhenThePeerCannotProveThatItIs) {
  const auto left = Open(LinkKind::kAuto);
  const auto right = Open(LinkKind::kAuto);
  End a = MakeEnd(*left);
  End b = MakeEnd(*right);
  const Status joined = Join(a, b, OfAnother(BlobOf(b)), OfAnother(BlobOf(a)));
  ASSERT_TRUE(joined) << joined.error().ToText();
  ExpectMessagesPass(a, b);
  for (SoftDevice* device : {left.get(), right.get()}) {
    EXPECT_EQ(device->ReportLink().link, "udp");
    EXPECT_EQ(device->ReportLink().icrc, "made, and checked in full (32 bits)");
  }
}

TEST_F(LinkChoiceTest, ADeviceThatAsksForALinkGetsItFromOneThatChooses) {
  for (const LinkKind link : {LinkKind::kMemory, LinkKind::kUdp}) {
    const auto left = Open(LinkKind::kAuto);
    const auto right = Open(link);
    End a = MakeEnd(*left);
    End b = MakeEnd(*right);
    const Status joined = Join(a, b, BlobOf(b), BlobOf(a));
    ASSERT_TRUE(joined) << joined.error().ToText();
    ExpectMessagesPass(a, b);
    EXPECT_EQ(left->ReportLink().link, right->ReportLink().link);
    EXPECT_EQ(left->ReportLink().link, Name(link));
  }
}

TEST_F(LinkChoiceTest, OneLinkAtATimeAndFreeToChooseAgainAfterwards) {
  const auto left = Open(LinkKind::kAuto);
  const auto right = Open(LinkKind::kAuto);
  const auto third = Open(LinkKind::kUdp);
  End a = MakeEnd(*left);
  End b = MakeEnd(*right);
  ASSERT_TRUE(Join(a, b, BlobOf(b), BlobOf(a)));
  {
    End other = MakeEnd(*left);
    End udp = MakeEnd(*third);
    const Status refused = Join(other, udp, BlobOf(udp), BlobOf(other));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("in memory"), std::string::npos);
    EXPECT_NE(refused.error().next_step.find("link=udp"), std::string::npos);
    ExpectMessagesPass(a, b);
  }
  a.Close();
  End again = MakeEnd(*left);
  End udp = MakeEnd(*third);
  ASSERT_TRUE(Join(again, udp, BlobOf(udp), BlobOf(again)));
  ExpectMessagesPass(again, udp);
  EXPECT_EQ(left->ReportLink().link, "udp");
  // And back.
  b.Close();
  again.Close();
  udp.Close();
  End c = MakeEnd(*left);
  End d = MakeEnd(*right);
  ASSERT_TRUE(Join(c, d, BlobOf(d), BlobOf(c)));
  ExpectMessagesPass(c, d);
  EXPECT_EQ(left->ReportLink().link, "memory");
}

TEST_F(LinkChoiceTest, EventsComeByEitherLink) {
  const auto left = Open(LinkKind::kAuto);
  const auto right = Open(LinkKind::kAuto);
  const EndOptions with_events{.channel = true};
  End a = MakeEnd(*left, with_events);
  End b = MakeEnd(*right, with_events);
  ASSERT_TRUE(Join(a, b, OfAnother(BlobOf(b)), OfAnother(BlobOf(a))));
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  ASSERT_EQ(ibv_req_notify_cq(b.recv_cq, 0), 0);
  ASSERT_EQ(Post(a, Send(a, 2, 64)), 0);
  EXPECT_TRUE(Readable(b.channel->fd, std::chrono::seconds(20)));
  const Expected<ibv_cq*> cq = right->GetCqEvent(b.channel.get());
  ASSERT_TRUE(cq);
  EXPECT_EQ(*cq, b.recv_cq);
  right->AckCqEvents(*cq, 1);
  EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
}

TEST_F(LinkChoiceTest, APeerThatIsNoSoftDeviceIsRefusedWithWhatHelps) {
  const auto left = Open(LinkKind::kAuto);
  End a = MakeEnd(*left);
  const Status refused = left->AcceptPeerBlob(a.qp.get(), {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().next_step.find("link=udp,addr="), std::string::npos);
}

TEST_F(LinkChoiceTest, APeerThatHasNeitherIsToldBothReasons) {
  const auto left = Open(LinkKind::kAuto);
  const auto right = Open(LinkKind::kAuto);
  End a = MakeEnd(*left);
  End b = MakeEnd(*right);
  const Blob another = OfAnother(BlobOf(b));
  const Blob no_udp = EncodeLinkBlob({.memory = ParseLinkBlob(another)->memory, .chooses = true});
  const Status refused = Join(a, b, no_udp, BlobOf(a));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().cause.find("memory: "), std::string::npos);
  EXPECT_NE(refused.error().cause.find("UDP: "), std::string::npos);
}

// The control connection came through a tunnel: addresses of the loopback interface lead nowhere.
TEST_F(LinkChoiceTest, APeerOnAnotherHostIsNotLookedForOnThisOne) {
  const auto left = Open(LinkKind::kAuto);
  const auto right = Open(LinkKind::kAuto);
  End a = MakeEnd(*left);
  End b = MakeEnd(*right);
  const Blob elsewhere = Changed(BlobOf(b), [](LinkAddress& address) { ++address.host_boot; });
  const Blob other_namespace =
      Changed(BlobOf(b), [](LinkAddress& address) { ++address.net_namespace; });
  for (const Blob& blob : {elsewhere, other_namespace}) {
    const Status refused = Join(a, b, blob, BlobOf(a));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().next_step.find("link=udp,addr="), std::string::npos);
    ASSERT_TRUE(ToState(a, IBV_QPS_RESET));
    ASSERT_TRUE(ToState(b, IBV_QPS_RESET));
  }
}

TEST_F(LinkChoiceTest, AnAddressThatWasGivenIsTheOneOnUdp) {
  SoftOptions options;
  options.address = ibv_gid{.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}};
  const auto left = OpenDevice(options);
  const auto right = Open(LinkKind::kAuto);
  End a = MakeEnd(*left);
  End b = MakeEnd(*right);
  const Blob blob = BlobOf(a);
  const std::optional<LinkBlob> parts = ParseLinkBlob(blob);
  ASSERT_TRUE(parts);
  const Expected<UdpAddresses> addresses = ParseUdpBlob(parts->udp);
  ASSERT_TRUE(addresses) << addresses.error().ToText();
  EXPECT_TRUE(std::ranges::equal(addresses->front(), std::span(options.address->raw)));
  ASSERT_TRUE(Join(a, b, OfAnother(BlobOf(b)), OfAnother(BlobOf(a))));
  ExpectMessagesPass(a, b);
}

TEST_F(LinkChoiceTest, UntilThereIsAPeerNothingIsChosen) {
  const auto device = Open(LinkKind::kAuto);
  EXPECT_EQ(device->ReportLink().link, "auto");
  EXPECT_EQ(Open(LinkKind::kMemory)->ReportLink().link, "memory");
  EXPECT_EQ(Open(LinkKind::kUdp)->ReportLink().link, "udp");
}

// A message that asked for no ACK gets one in time, however seldom the receiver looks.
TEST_F(LinkChoiceTest, AProgramThatPollsSeldomOwesNoAck) {
  const auto left = Open(LinkKind::kUdp);
  const auto right = Open(LinkKind::kUdp);
  End a = MakeEnd(*left);
  End b = MakeEnd(*right);
  ASSERT_TRUE(Connect(a, b, {.timeout = 17}));  // 537 ms
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  SendWork quiet = Send(a, 2, 64);
  quiet.wr.send_flags = 0;
  ASSERT_EQ(Post(a, quiet), 0);
  EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_SUCCESS);
  ibv_wc wc = {};
  const Deadline deadline = Soon();
  while (Counter(*left, "rcvd_pkts") == 0 && !deadline.Passed()) {
    ::usleep(2000);  // the program has other things to do
    ASSERT_EQ(ibv_poll_cq(b.recv_cq, 1, &wc), 0);
    ASSERT_EQ(ibv_poll_cq(a.send_cq, 1, &wc), 0);
  }
  EXPECT_EQ(Counter(*left, "rcvd_pkts"), 1U);
  EXPECT_EQ(Counter(*right, "duplicate_request"), 0U);
}

TEST_F(LinkChoiceTest, APeerThatIsGoneIsNotLookedForByUdp) {
  const auto left = Open(LinkKind::kAuto);
  End a = MakeEnd(*left);
  Blob gone;
  ibv_qp_attr attributes = {};
  {
    const auto right = Open(LinkKind::kAuto);
    End b = MakeEnd(*right);
    gone = BlobOf(b);
    attributes = RtrAttributes(*left, *b.qp.get(), {}, right.get());
  }
  ASSERT_TRUE(ToInit(a));
  ASSERT_TRUE(left->AcceptPeerBlob(a.qp.get(), gone));
  const Status refused = left->ModifyQp(a.qp.get(), attributes, kRtrMask, "RTR");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error_class, ErrorClass::kSetup);
}

TEST_F(LinkChoiceTest, ABlobOfNobodyIsRefused) {
  for (const LinkKind link : {LinkKind::kAuto, LinkKind::kMemory, LinkKind::kUdp}) {
    const auto device = Open(link);
    End end = MakeEnd(*device);
    const Blob strange = {std::byte{'z'}, std::byte{1}, std::byte{2}};
    EXPECT_FALSE(device->AcceptPeerBlob(end.qp.get(), strange));
  }
}

}  // namespace
}  // namespace verbscope::soft
