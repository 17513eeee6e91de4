// IbverbsDevice over a fake library: opening, objects, and what becomes of failures.
#include "transports/ibverbs/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "transports/ibverbs/device_fixture.h"

namespace verbscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ibv_qp_attr RtrAttributes() {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = 0x12;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.grh.sgid_index = 1;
  attributes.ah_attr.grh.dgid.raw[15] = 2;
  return attributes;
}
constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN;

TEST_F(IbverbsDeviceTest, InfoHoldsAttributesIdentityAndPorts) {
  const DeviceInfo& info = MustOpen().info();
  EXPECT_EQ(info.name, "renamed0");
  EXPECT_EQ(info.provider, "rxe");
  EXPECT_EQ(info.kind, DeviceKind::kSoftware);
  EXPECT_EQ(info.firmware, "1.2.3");
  EXPECT_EQ(info.vendor_id, 0xffffffu);
  EXPECT_EQ(info.limits.comp_vectors, 2u);
  EXPECT_TRUE(info.limits.atomics);
  ASSERT_THAT(info.ports, SizeIs(1));
  EXPECT_THAT(info.ports[0].gids, SizeIs(1));
}

TEST_F(IbverbsDeviceTest, AFirmwareTextThatFillsItsFieldIsNotReadBeyondIt) {
  std::fill(std::begin(verbs_.device_attributes.fw_ver), std::end(verbs_.device_attributes.fw_ver),
            'x');
  EXPECT_EQ(MustOpen().info().firmware, std::string(64, 'x'));
}

TEST_F(IbverbsDeviceTest, AMissingDeviceNodeIsNamedBeforeTheLibraryWaitsForIt) {
  system_.RemoveDeviceNode("uverbs1");
  const auto opened = Open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().errno_value, ENOENT);
  EXPECT_THAT(opened.error().message, HasSubstr("/infiniband/uverbs1"));
  EXPECT_THAT(opened.error().cause, HasSubstr("container"));
}

TEST_F(IbverbsDeviceTest, AnIwarpDeviceIsNotOpened) {
  listed_->node_type = IBV_NODE_RNIC;
  listed_->transport_type = IBV_TRANSPORT_IWARP;
  const auto opened = Open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("iWARP"));
}

TEST_F(IbverbsDeviceTest, AnOpenThatFailsSaysWhy) {
  verbs_.fail["OpenDevice"] = EACCES;
  const auto opened = Open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("ibv_open_device(device=renamed0)"));
  EXPECT_THAT(opened.error().next_step, HasSubstr("udev"));
}

TEST_F(IbverbsDeviceTest, AFailureAtAnyCallIsAnErrorAndLeavesNothingBehind) {
  // Open, query device, query port, GID table, PD, MR, channel, CQ, QP.
  constexpr int kCalls = 9;
  constexpr int kGidTable = 4;  // has a fallback
  for (const int code : {ENOMEM, EINVAL, EIO, ENOSYS}) {
    for (int nth = 1; nth <= kCalls; ++nth) {
      verbs_.fail_nth = nth;
      verbs_.fail_nth_errno = code;
      auto opened = Open();
      Error error;
      if (opened) {
        auto objects = CreateAll(**opened, memory_);
        if (!objects) error = objects.error();
        EXPECT_EQ(verbs_.fail_nth, 0) << "the call to fail was not made";
      } else {
        error = opened.error();
      }
      EXPECT_EQ(error.errno_value, nth == kGidTable ? 0 : code) << nth;
      EXPECT_EQ(error.message.empty(), nth == kGidTable) << nth;
      opened = Fail(Error());
      EXPECT_EQ(verbs_.live_objects(), 0u) << nth;
    }
  }
}

TEST_F(IbverbsDeviceTest, ARegistrationOfNoBytesIsOurBug) {
  Device& device = MustOpen();
  const auto pd = device.AllocatePd();
  const auto mr = device.RegisterMemory(pd->get(), {}, 0);
  ASSERT_FALSE(mr);
  EXPECT_EQ(mr.error().error_class, ErrorClass::kInternal);
}

TEST_F(IbverbsDeviceTest, ENomemSpeaksOfTheLimitOfLockedMemory) {
  Device& device = MustOpen();
  auto pd = device.AllocatePd();
  verbs_.fail = {{"RegMr", ENOMEM}, {"CreateCq", ENOMEM}};
  const auto mr = device.RegisterMemory(pd->get(), memory_, 0);
  ASSERT_FALSE(mr);
  EXPECT_THAT(mr.error().message, HasSubstr("ibv_reg_mr(device=renamed0, length=64"));
  EXPECT_THAT(mr.error().cause, HasSubstr("limit of locked memory"));
  const auto cq = device.CreateCq({.cqe = 16});
  ASSERT_FALSE(cq);
  EXPECT_THAT(cq.error().cause, HasSubstr("limit of locked memory"));
}

TEST_F(IbverbsDeviceTest, ACqBeyondTheLimitsSaysWhichLimit) {
  Device& device = MustOpen();
  const auto large = device.CreateCq({.cqe = 40000});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().cause, "cqe 40000 is above the device's limit 32767");
  const auto vector = device.CreateCq({.cqe = 1, .comp_vector = 2});
  ASSERT_FALSE(vector);
  EXPECT_THAT(vector.error().cause, HasSubstr("2 completion vectors"));
  EXPECT_THAT(vector.error().next_step, HasSubstr("--comp-vector"));
  // A number that does not fit the verb's type is not turned into a negative one.
  const auto absurd = device.CreateCq({.cqe = UINT32_MAX});
  ASSERT_FALSE(absurd);
  EXPECT_THAT(absurd.error().cause, HasSubstr("4294967295 is above"));
}

TEST_F(IbverbsDeviceTest, AQpBeyondTheLimitsSaysWhichField) {
  Device& device = MustOpen();
  auto objects = MustCreateAll();
  QpOptions options = {.pd = objects->pd.get(),
                       .send_cq = objects->cq.get(),
                       .recv_cq = objects->cq.get(),
                       .max_send_wr = 20000};
  const auto deep = device.CreateQp(options);
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().cause, "max_send_wr 20000 is above the device's limit 16384");

  options.max_send_wr = 1;
  options.max_inline_bytes = 401;
  const auto inlined = device.CreateQp(options);
  ASSERT_FALSE(inlined);
  EXPECT_EQ(inlined.error().cause, "max_inline_data 401 is above the device's limit 400");
  EXPECT_THAT(inlined.error().next_step, HasSubstr("--inline 400"));
}

TEST_F(IbverbsDeviceTest, TheInlineLimitIsSearchedOnce) {
  Device& device = MustOpen();
  EXPECT_EQ(device.MaxInlineBytes(), 400u);
  const int created = verbs_.qps_created;
  EXPECT_GT(created, 1);
  EXPECT_LE(created, 12);
  EXPECT_EQ(device.MaxInlineBytes(), 400u);
  EXPECT_EQ(verbs_.qps_created, created);
  EXPECT_EQ(verbs_.live_objects(), 1u);  // the context
}

TEST_F(IbverbsDeviceTest, AFailedSearchIsNotCached) {
  Device& device = MustOpen();
  verbs_.fail["CreateQp"] = ENOMEM;
  EXPECT_FALSE(device.MaxInlineBytes());
  verbs_.fail.clear();
  EXPECT_EQ(device.MaxInlineBytes(), 400u);
}

TEST_F(IbverbsDeviceTest, ATransitionToRtrIsCheckedBeforeTheCall) {
  Device& device = MustOpen();
  auto objects = MustCreateAll();
  ibv_qp_attr attributes = RtrAttributes();
  attributes.ah_attr.grh.sgid_index = 2;  // an empty entry
  const Status zero_gid = device.ModifyQp(objects->qp.get(), attributes, kRtrMask, "INIT to RTR");
  ASSERT_FALSE(zero_gid);
  EXPECT_THAT(zero_gid.error().message, HasSubstr("the GID at index 2 is zero"));
  EXPECT_EQ(verbs_.last_modify.dest_qp_num, 0u);  // not called

  attributes = RtrAttributes();
  EXPECT_TRUE(device.ModifyQp(objects->qp.get(), attributes, kRtrMask, "INIT to RTR"));
  EXPECT_EQ(verbs_.last_modify.dest_qp_num, 0x12u);
  EXPECT_EQ(device.QueryQpState(objects->qp.get()), IBV_QPS_RTR);
}

TEST_F(IbverbsDeviceTest, ARefusedTransitionShowsItsAttributesAndCause) {
  Device& device = MustOpen();
  auto objects = MustCreateAll();
  verbs_.fail["ModifyQp"] = ETIMEDOUT;
  ibv_qp_attr attributes = RtrAttributes();
  const Status status = device.ModifyQp(objects->qp.get(), attributes, kRtrMask, "INIT to RTR");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message,
              AllOf(HasSubstr("ibv_modify_qp(device=renamed0, QP 0x"), HasSubstr("INIT to RTR"),
                    HasSubstr("path_mtu 1024"), HasSubstr("sgid_index 1")));
  EXPECT_THAT(status.error().cause, HasSubstr("no neighbour answered"));
}

TEST_F(IbverbsDeviceTest, WithoutExtendedInterfacesObjectsAreMadeAsUsual) {
  Device& device = MustOpen();
  auto objects = MustCreateAll();
  Expected<Cq> cq = device.CreateCq({.cqe = 4, .extended = true});
  ASSERT_TRUE(cq);
  EXPECT_EQ(device.Extended(cq->get()), nullptr);
  Expected<CreatedQp> qp = device.CreateQp(
      {.pd = objects->pd.get(), .send_cq = cq->get(), .recv_cq = cq->get(), .extended = true});
  ASSERT_TRUE(qp);
  EXPECT_EQ(device.Extended(qp->qp.get()), nullptr);
}

TEST_F(IbverbsDeviceTest, ASharedReceiveQueueAndItsLimit) {
  auto device = Open();
  ASSERT_TRUE(device);
  Pd pd = std::move(*device->AllocatePd());
  Expected<Srq> srq = device->CreateSrq({.pd = pd.get(), .max_wr = 8, .max_sge = 2});
  ASSERT_TRUE(srq.has_value());
  ASSERT_TRUE(device->SetSrqLimit(srq->get(), 3).has_value());
  EXPECT_EQ(verbs_.last_modify_srq.srq_limit, 3u);
  Cq cq = std::move(*device->CreateCq({.cqe = 4}));
  CreatedQp qp = std::move(*device->CreateQp({.pd = pd.get(),
                                              .send_cq = cq.get(),
                                              .recv_cq = cq.get(),
                                              .srq = srq->get(),
                                              .signal_all = true}));
  EXPECT_EQ(verbs_.last_create_qp.srq, srq->get());
  EXPECT_EQ(verbs_.last_create_qp.sq_sig_all, 1);
  const Status busy = srq->Close();
  ASSERT_FALSE(busy.has_value());
  EXPECT_EQ(busy.error().errno_value, EBUSY);
  ASSERT_TRUE(qp.qp.Close().has_value());
  EXPECT_TRUE(srq->Close().has_value());
}

TEST_F(IbverbsDeviceTest, ModerationIsHandedOnAndItsRefusalExplained) {
  Device& device = MustOpen();
  auto objects = MustCreateAll();
  EXPECT_TRUE(device.ModerateCq(objects->cq.get(), 16, 8));
  EXPECT_EQ(verbs_.last_modify_cq.attr_mask, static_cast<uint32_t>(IBV_CQ_ATTR_MODERATE));
  EXPECT_EQ(verbs_.last_modify_cq.moderate.cq_count, 16);
  EXPECT_EQ(verbs_.last_modify_cq.moderate.cq_period, 8);
  verbs_.fail["ModifyCq"] = EOPNOTSUPP;
  const Status status = device.ModerateCq(objects->cq.get(), 16, 8);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("ibv_modify_cq(device=renamed0"));
  EXPECT_THAT(status.error().cause, HasSubstr("does not hold events back"));
}

TEST_F(IbverbsDeviceTest, AQueryThatFailsDoesNotStopATransitionThatWorks) {
  Device& device = MustOpen();
  auto objects = MustCreateAll();
  for (const int code : {ENOSYS, EOPNOTSUPP, EINVAL}) {
    verbs_.fail = {{"QueryPort", code}, {"QueryGid", code}};
    ibv_qp_attr attributes = RtrAttributes();
    EXPECT_TRUE(device.ModifyQp(objects->qp.get(), attributes, kRtrMask, "INIT to RTR"));
  }
  verbs_.fail.clear();
}

TEST_F(IbverbsDeviceTest, ARealDeviceOffersNoBlobAndIgnoresASoftDevicesOne) {
  Device& device = MustOpen();
  EXPECT_THAT(device.PeerBlob(nullptr), IsEmpty());
  EXPECT_TRUE(device.AcceptPeerBlob(nullptr, memory_));
  const std::vector<std::byte> too_long(Device::kMaxBlobBytes + 1);
  const Status refused = device.AcceptPeerBlob(nullptr, too_long);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().side, Side::kPeer);
}

TEST_F(IbverbsDeviceTest, BuffersComeFromThisHost) {
  Device& device = MustOpen();
  const auto buffer = device.AllocateBuffer({.bytes = 100});
  ASSERT_TRUE(buffer);
  EXPECT_THAT((*buffer)->bytes(), SizeIs(100));
}

}  // namespace
}  // namespace verbscope
