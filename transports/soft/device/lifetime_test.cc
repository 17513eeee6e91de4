// What may be destroyed when, and what happens with objects that are not alive.
#include <cerrno>
#include <functional>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

class LifetimeTest : public DeviceTest {
 protected:
  static void ExpectErrno(const Status& status, int code, std::string_view call) {
    ASSERT_FALSE(status);
    EXPECT_EQ(errno, code);
    EXPECT_EQ(status.error().errno_value, code);
    EXPECT_NE(status.error().message.find(call), std::string::npos) << status.error().message;
    EXPECT_FALSE(status.error().cause.empty());
    errno = 0;
  }
  template <class T>
  static void ExpectErrno(const Expected<T>& made, int code, std::string_view call) {
    if (made) {
      ADD_FAILURE() << call << " worked";
      return;
    }
    ExpectErrno(Status(Fail(made.error())), code, call);
  }
  // With the handle of the object changed, both forms of its use say ENOENT, and with it put right
  // again all is as before.
  template <class T>
  static void Damage(T& handle, const std::function<void()>& use) {
    const T good = handle;
    for (const T bad : {T{0}, T(good + 1000), T(~good)}) {
      handle = bad;
      use();
    }
    handle = good;
  }
};

TEST_P(LifetimeTest, ADomainIsBusyWhileRegionsQpsOrSharedQueuesUseIt) {
  SoftDevice& device = first();
  Pd pd = Must(device.AllocatePd());
  Cq cq = Must(device.CreateCq({.cqe = 4}));
  auto buffer = Must(device.AllocateBuffer({.bytes = 4096}));
  {
    const Mr mr = Must(device.RegisterMemory(pd.get(), buffer->bytes(), kFullAccess));
    ExpectErrno(pd.Close(), EBUSY, "ibv_dealloc_pd");
    EXPECT_TRUE(pd);
  }
  {
    const Qp qp = std::move(
        Must(device.CreateQp({.pd = pd.get(), .send_cq = cq.get(), .recv_cq = cq.get()})).qp);
    ExpectErrno(pd.Close(), EBUSY, "ibv_dealloc_pd");
  }
  {
    const Srq srq = Must(device.CreateSrq({.pd = pd.get()}));
    ExpectErrno(pd.Close(), EBUSY, "ibv_dealloc_pd");
  }
  EXPECT_TRUE(pd.Close());
}

TEST_P(LifetimeTest, QueuesAndChannelsAreBusyWhileSomethingUsesThem) {
  SoftDevice& device = first();
  Pd pd = Must(device.AllocatePd());
  CompChannel channel = Must(device.CreateCompChannel());
  Cq send = Must(device.CreateCq({.cqe = 4, .channel = channel.get()}));
  Cq receive = Must(device.CreateCq({.cqe = 4, .channel = channel.get()}));
  Srq srq = Must(device.CreateSrq({.pd = pd.get()}));
  Qp qp = std::move(
      Must(device.CreateQp(
               {.pd = pd.get(), .send_cq = send.get(), .recv_cq = receive.get(), .srq = srq.get()}))
          .qp);
  EXPECT_EQ(channel->refcnt, 2);
  ExpectErrno(send.Close(), EBUSY, "ibv_destroy_cq");
  ExpectErrno(receive.Close(), EBUSY, "ibv_destroy_cq");
  ExpectErrno(srq.Close(), EBUSY, "ibv_destroy_srq");
  ExpectErrno(channel.Close(), EBUSY, "ibv_destroy_comp_channel");
  EXPECT_TRUE(qp.Close());
  EXPECT_TRUE(send.Close());
  ExpectErrno(channel.Close(), EBUSY, "ibv_destroy_comp_channel");
  EXPECT_TRUE(receive.Close());
  EXPECT_EQ(channel->refcnt, 0);
  EXPECT_TRUE(channel.Close());
  EXPECT_TRUE(srq.Close());
}

TEST_P(LifetimeTest, ARegionMayGoWhileAReceiveNamesIt) {
  auto [a, b] = ConnectedPair();
  Mr mr = Must(b.device->RegisterMemory(b.pd.get(), b.buffer->bytes(), kFullAccess));
  ibv_sge sge = {.addr = b.address(), .length = 64, .lkey = mr->lkey};
  ibv_recv_wr wr = {.wr_id = 1, .next = nullptr, .sg_list = &sge, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(b.qp.get(), &wr, &bad), 0);
  EXPECT_TRUE(mr.Close());
  ExpectEmpty(b.recv_cq);
}

TEST_P(LifetimeTest, DamagedHandlesAreUnknown) {
  SoftDevice& device = first();
  End end = MakeEnd(device);
  Srq srq = Must(device.CreateSrq({.pd = end.pd.get()}));
  Damage(end.pd->handle, [&] {
    ExpectErrno(end.pd.Close(), ENOENT, "ibv_dealloc_pd");
    ExpectErrno(device.RegisterMemory(end.pd.get(), end.buffer->bytes(), 0), ENOENT, "ibv_reg_mr");
    ExpectErrno(device.CreateSrq({.pd = end.pd.get()}), ENOENT, "ibv_create_srq");
    ExpectErrno(
        device.CreateQp({.pd = end.pd.get(), .send_cq = end.send_cq, .recv_cq = end.recv_cq}),
        ENOENT, "ibv_create_qp");
  });
  Damage(end.mr->handle, [&] { ExpectErrno(end.mr.Close(), ENOENT, "ibv_dereg_mr"); });
  for (ibv_cq* cq : {end.send_cq, end.recv_cq}) {
    Damage(cq->handle, [&] {
      Cq& owner = cq == end.send_cq ? end.send_cq_owner : end.recv_cq_owner;
      ExpectErrno(owner.Close(), ENOENT, "ibv_destroy_cq");
      ExpectErrno(device.ResizeCq(cq, 256), ENOENT, "ibv_resize_cq");
      ExpectErrno(device.ModerateCq(cq, 1, 1), ENOENT, "ibv_modify_cq");
      ExpectErrno(
          device.CreateQp({.pd = end.pd.get(), .send_cq = end.send_cq, .recv_cq = end.recv_cq}),
          ENOENT, "ibv_create_qp");
    });
  }
  Damage(end.qp->handle, [&] {
    ExpectErrno(ToInit(end), ENOENT, "ibv_modify_qp");
    ExpectErrno(device.QueryQpState(end.qp.get()), ENOENT, "ibv_query_qp");
    ExpectErrno(end.qp.Close(), ENOENT, "ibv_destroy_qp");
    const auto blob = device.PeerBlob(end.qp.get());
    ExpectErrno(device.AcceptPeerBlob(end.qp.get(), blob), ENOENT, "connecting");
  });
  Damage(srq->handle, [&] {
    ExpectErrno(srq.Close(), ENOENT, "ibv_destroy_srq");
    ExpectErrno(device.SetSrqLimit(srq.get(), 1), ENOENT, "ibv_modify_srq");
    ExpectErrno(
        device.CreateQp(
            {.pd = end.pd.get(), .send_cq = end.send_cq, .recv_cq = end.recv_cq, .srq = srq.get()}),
        ENOENT, "ibv_create_qp");
  });
  EXPECT_TRUE(ToInit(end)) << "all is as before";
}

TEST_P(LifetimeTest, WhatTheProgramChangesInAPublicStructDoesNotMisleadDestruction) {
  End end = MakeEnd(first());
  Pd other = Must(first().AllocatePd());
  end.mr->lkey ^= 1;
  end.mr->length = 7;
  end.mr->pd = other.get();
  EXPECT_TRUE(end.mr.Close());
  end.qp->pd = other.get();
  end.qp->send_cq = nullptr;
  end.qp->qp_num = 1;
  EXPECT_TRUE(end.qp.Close());
  EXPECT_TRUE(end.pd.Close());
  EXPECT_TRUE(end.send_cq_owner.Close());
}

TEST_P(LifetimeTest, ObjectsThatAreGoneAreUnknown) {
  const auto opened = OpenDevice({});  // without a report of failed destructions
  SoftDevice& device = *opened;
  End end = MakeEnd(device);
  ibv_qp* qp = end.qp.get();
  ibv_cq* cq = end.send_cq;
  ASSERT_TRUE(end.qp.Close());
  ASSERT_TRUE(end.send_cq_owner.Close());
  ibv_qp_attr attributes = InitAttributes();
  ExpectErrno(device.ModifyQp(qp, attributes, kInitMask, "RESET to INIT"), ENOENT, "ibv_modify_qp");
  ExpectErrno(device.QueryQpState(qp), ENOENT, "ibv_query_qp");
  ExpectErrno(device.ResizeCq(cq, 4), ENOENT, "ibv_resize_cq");
  ExpectErrno(device.CreateQp({.pd = end.pd.get(), .send_cq = cq, .recv_cq = end.recv_cq}), ENOENT,
              "ibv_create_qp");
  Qp again(&device, qp);
  ExpectErrno(again.Close(), ENOENT, "ibv_destroy_qp");
}

TEST_P(LifetimeTest, ObjectsOfAnotherDeviceAreUnknown) {
  const auto other = OpenDevice({});
  End mine = MakeEnd(first());
  End theirs = MakeEnd(*other);
  ExpectErrno(first().RegisterMemory(theirs.pd.get(), mine.buffer->bytes(), 0), ENOENT,
              "ibv_reg_mr");
  ExpectErrno(
      first().CreateQp({.pd = mine.pd.get(), .send_cq = theirs.send_cq, .recv_cq = mine.recv_cq}),
      ENOENT, "ibv_create_qp");
  ExpectErrno(first().QueryQpState(theirs.qp.get()), ENOENT, "ibv_query_qp");
  theirs.Close();
}

TEST_P(LifetimeTest, DestroyingATargetUnderWayHurtsNobodyElse) {
  auto [a, b] = ConnectedPair({}, {}, {.timeout = 8, .retry_cnt = 1});
  auto [c, d] = ConnectedPair();
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_EQ(Post(a, Write(a, b, i, 60000)), 0);
    ASSERT_EQ(Post(c, Write(c, d, i, 60000)), 0);
  }
  ASSERT_TRUE(b.qp.Close());
  for (const ibv_wc& wc : WaitFor(c.send_cq, 20)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(WaitFor(a.send_cq, 20).size(), 20U);
}

TEST_P(LifetimeTest, ObjectsCanBeMadeAndDestroyedThousandsOfTimes) {
  auto [a, b] = ConnectedPair();
  for (int i = 0; i < 300; ++i) {
    End c = MakeEnd(first(), {.channel = true, .bytes = 4096});
    End d = MakeEnd(second(), {.bytes = 4096});
    ASSERT_TRUE(Connect(c, d));
    ASSERT_EQ(Post(c, Write(c, d, 1, 64)), 0);
    EXPECT_EQ(Wait(c.send_cq).status, IBV_WC_SUCCESS);
    EXPECT_NE(c.qp->qp_num, a.qp->qp_num);
  }
  ASSERT_EQ(Post(a, Write(a, b, 1, 64)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(, LifetimeTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
