// The control side: presentation, limits, transitions, faults, order of destruction.
#include "transports/fake/fake_device.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <vector>

#include "transports/fake/fake_pair.h"

namespace verbscope {
namespace {

class Errors : public TeardownReport {
 public:
  void Add(Error error) override { all.push_back(std::move(error)); }
  std::vector<Error> all;
};

class FakeDeviceTest : public testing::Test {
 protected:
  std::shared_ptr<FakeFabric> fabric_ = std::make_shared<FakeFabric>();
};

int ErrnoOf(const Error& error) { return error.errno_value; }
template <class T>
int ErrnoOf(const Expected<T>& result) {
  return result ? 0 : result.error().errno_value;
}

TEST_F(FakeDeviceTest, ProviderPresentsDevicesAndWhyOneCannotBeUsed) {
  FakeDeviceOptions broken = DefaultFakeDevice("broken0");
  broken.unusable = CallError(ErrorClass::kSetup, "ibv_open_device", "broken0", EPERM);
  FakeProvider provider(fabric_, {DefaultFakeDevice("fake0"), broken});
  const auto rows = Must(provider.List());
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "fake0");
  EXPECT_EQ(rows[0].info.value().ports.at(0).gids.at(1).value,
            "0000:0000:0000:0000:0000:ffff:0a00:0001");
  EXPECT_FALSE(rows[1].info);
  EXPECT_EQ(rows[1].error.value().errno_value, EPERM);
  EXPECT_EQ(Must(provider.Open("fake0"))->info().name, "fake0");
  EXPECT_EQ(ErrnoOf(provider.Open("broken0")), EPERM);
  EXPECT_EQ(ErrnoOf(provider.Open("other")), ENODEV);
  provider.FailList(CallError(ErrorClass::kSetup, "ibv_get_device_list", "", ENOSYS));
  EXPECT_EQ(ErrnoOf(provider.List()), ENOSYS);
}

TEST_F(FakeDeviceTest, EverythingIsGoneAfterTeardown) {
  {
    FakePair pair;
    const FakeLive live = pair.fabric->live();
    EXPECT_EQ(live.devices, 2);
    EXPECT_EQ(live.pds, 2);
    EXPECT_EQ(live.buffers, 2);
    EXPECT_EQ(live.mrs, 2);
    EXPECT_EQ(live.channels, 2);
    EXPECT_EQ(live.cqs, 4);
    EXPECT_EQ(live.qps, 2);
    fabric_ = pair.fabric;
  }
  EXPECT_EQ(fabric_->live().total(), 0);
}

TEST_F(FakeDeviceTest, PortIsReadAfreshAndMustExist) {
  FakeDevice device(fabric_, DefaultFakeDevice());
  PortInfo port = Must(device.QueryPort(1));
  EXPECT_TRUE(port.active);
  port.active = false;
  port.state = "DOWN";
  device.SetPort(port);
  EXPECT_EQ(Must(device.QueryPort(1)).state, "DOWN");
  EXPECT_EQ(device.info().ports.at(0).state, "ACTIVE");
  EXPECT_EQ(ErrnoOf(device.QueryPort(2)), EINVAL);
}

TEST_F(FakeDeviceTest, LimitsAreEnforced) {
  FakeEnd end = MakeFakeEnd(fabric_, 1);
  FakeDevice& device = *end.device;
  const DeviceLimits& limits = device.info().limits;
  EXPECT_EQ(ErrnoOf(device.CreateCq({.cqe = 0})), EINVAL);
  EXPECT_EQ(ErrnoOf(device.CreateCq({.cqe = limits.max_cqe + 1})), EINVAL);
  EXPECT_EQ(ErrnoOf(device.CreateCq({.cqe = limits.max_cqe})), 0);
  EXPECT_EQ(ErrnoOf(device.CreateCq({.comp_vector = 2})), EINVAL);
  QpOptions qp = {.pd = end.pd.get(), .send_cq = end.send_cq.get(), .recv_cq = end.recv_cq.get()};
  qp.max_inline_bytes = Must(device.MaxInlineBytes());
  EXPECT_EQ(ErrnoOf(device.CreateQp(qp)), 0);
  ++qp.max_inline_bytes;
  EXPECT_EQ(ErrnoOf(device.CreateQp(qp)), EINVAL);
  qp.max_inline_bytes = 0;
  qp.max_recv_wr = limits.max_qp_wr + 1;
  EXPECT_EQ(ErrnoOf(device.CreateQp(qp)), EINVAL);
  EXPECT_EQ(ErrnoOf(device.CreateQp({})), EINVAL);
  EXPECT_EQ(ErrnoOf(device.AllocateBuffer({.bytes = limits.max_mr_bytes + 1})), ENOMEM);
  EXPECT_TRUE(Must(device.AllocateBuffer({.bytes = 0}))->bytes().empty());
  EXPECT_EQ(ErrnoOf(device.RegisterMemory(end.pd.get(), {}, IBV_ACCESS_REMOTE_WRITE)), EINVAL);
}

TEST_F(FakeDeviceTest, TransitionsNeedTheirOrderAndTheirAttributes) {
  FakeEnd end = MakeFakeEnd(fabric_, 1);
  const auto modify = [&](ibv_qp_state to, int mask) {
    ibv_qp_attr attributes = {};
    attributes.qp_state = to;
    attributes.port_num = 1;
    return ErrnoOf(end.device->ModifyQp(end.qp.get(), attributes, mask | IBV_QP_STATE, "test"));
  };
  const int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  EXPECT_EQ(modify(IBV_QPS_RTR, 0), EINVAL);
  EXPECT_EQ(modify(IBV_QPS_INIT, init & ~IBV_QP_PORT), EINVAL);
  EXPECT_EQ(modify(IBV_QPS_INIT, init), 0);
  EXPECT_EQ(end.qp->state, IBV_QPS_INIT);
  EXPECT_EQ(modify(IBV_QPS_RTS, 0), EINVAL);
  EXPECT_EQ(modify(IBV_QPS_RTR, 0), EINVAL);
  EXPECT_EQ(modify(IBV_QPS_ERR, 0), 0);
  EXPECT_EQ(Must(end.device->QueryQpState(end.qp.get())), IBV_QPS_ERR);
  EXPECT_EQ(modify(IBV_QPS_RESET, 0), 0);
}

TEST_F(FakeDeviceTest, PathMustBePossibleFromThePort) {
  FakeEnd end = MakeFakeEnd(fabric_, 1);
  ibv_qp_attr good = {};
  good.port_num = 1;
  good.qp_state = IBV_QPS_INIT;
  const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  ASSERT_TRUE(end.device->ModifyQp(end.qp.get(), good, init, "RESET to INIT"));
  good.qp_state = IBV_QPS_RTR;
  good.path_mtu = IBV_MTU_1024;
  good.ah_attr.is_global = 1;
  good.ah_attr.grh.sgid_index = 1;
  const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  const auto cause_with = [&](const std::function<void(ibv_qp_attr&)>& change) {
    ibv_qp_attr attributes = good;
    change(attributes);
    const Status status = end.device->ModifyQp(end.qp.get(), attributes, rtr, "INIT to RTR");
    return status ? "" : status.error().cause;
  };
  EXPECT_EQ(cause_with([](ibv_qp_attr& a) { a.path_mtu = IBV_MTU_2048; }),
            "path MTU 2048 is above the port's 1024");
  EXPECT_EQ(cause_with([](ibv_qp_attr& a) { a.ah_attr.is_global = 0; }),
            "Ethernet needs a GID (is_global)");
  EXPECT_EQ(cause_with([](ibv_qp_attr& a) { a.ah_attr.grh.sgid_index = 9; }),
            "GID index 9 is empty");
  EXPECT_EQ(cause_with([](ibv_qp_attr&) {}), "");
}

// All of a device's set-up, stopping at the first failure.
Status BringUp(Device& device) {
  auto port = device.QueryPort(1);
  if (!port) return Fail(port.error());
  auto buffer = device.AllocateBuffer({.bytes = 64});
  if (!buffer) return Fail(buffer.error());
  auto pd = device.AllocatePd();
  if (!pd) return Fail(pd.error());
  auto mr = device.RegisterMemory(pd->get(), (*buffer)->bytes(), IBV_ACCESS_LOCAL_WRITE);
  if (!mr) return Fail(mr.error());
  auto channel = device.CreateCompChannel();
  if (!channel) return Fail(channel.error());
  auto cq = device.CreateCq({.channel = channel->get()});
  if (!cq) return Fail(cq.error());
  auto qp = device.CreateQp({.pd = pd->get(), .send_cq = cq->get(), .recv_cq = cq->get()});
  if (!qp) return Fail(qp.error());
  if (auto limit = device.MaxInlineBytes(); !limit) return Fail(limit.error());
  if (auto state = device.QueryQpState(qp->qp.get()); !state) return Fail(state.error());
  ibv_qp_attr reset = {};
  reset.qp_state = IBV_QPS_RESET;
  Status status = device.ModifyQp(qp->qp.get(), reset, IBV_QP_STATE, "any to RESET");
  if (!status) return status;
  return device.AcceptPeerBlob(qp->qp.get(), device.PeerBlob(qp->qp.get()));
}

TEST_F(FakeDeviceTest, EveryControlCallCanFailOnceAndLeaksNothing) {
  FakeDevice good(fabric_, DefaultFakeDevice());
  ASSERT_TRUE(BringUp(good));
  const int calls = good.control_calls();
  ASSERT_EQ(calls, 11);
  for (int nth = 1; nth <= calls + 1; ++nth) {
    FakeDeviceOptions options = DefaultFakeDevice();
    options.fault = {.nth = nth, .errno_value = EIO, .call = {}};
    FakeDevice device(fabric_, options);
    Errors errors;
    device.set_teardown_report(&errors);
    EXPECT_EQ(ErrnoOf(BringUp(device)), nth <= calls ? EIO : 0) << "call " << nth;
    EXPECT_TRUE(errors.all.empty());
    EXPECT_EQ(fabric_->live().total(), 2) << "the two devices, after call " << nth;
  }
}

TEST_F(FakeDeviceTest, AFaultCanBeLimitedToOneCall) {
  FakeDevice device(fabric_, DefaultFakeDevice());
  device.FailControlCall({.nth = 2, .errno_value = ENOMEM, .call = "ibv_create_cq"});
  EXPECT_EQ(ErrnoOf(device.CreateCq({})), 0);
  EXPECT_EQ(ErrnoOf(device.AllocatePd()), 0);
  const auto cq = device.CreateCq({});
  ASSERT_FALSE(cq);
  EXPECT_EQ(ErrnoOf(cq), ENOMEM);
  EXPECT_NE(cq.error().message.find("ibv_create_cq"), std::string::npos);
  EXPECT_EQ(ErrnoOf(device.CreateCq({})), 0);
}

TEST_F(FakeDeviceTest, AFailedDestructionIsReportedAndSeenAsALeak) {
  Errors errors;
  {
    FakeDevice device(fabric_, DefaultFakeDevice());
    device.set_teardown_report(&errors);
    const Pd pd = Must(device.AllocatePd());
    device.FailNextDestroy(EIO);
  }
  ASSERT_EQ(errors.all.size(), 1U);
  EXPECT_EQ(ErrnoOf(errors.all[0]), EIO);
  EXPECT_EQ(fabric_->live().pds, 1);
}

TEST_F(FakeDeviceTest, ObjectsInUseCannotBeDestroyed) {
  FakeEnd end = MakeFakeEnd(fabric_, 1);
  EXPECT_EQ(ErrnoOf(end.pd.Close()), EBUSY);
  EXPECT_EQ(ErrnoOf(end.send_cq.Close()), EBUSY);
  EXPECT_EQ(ErrnoOf(end.channel.Close()), EBUSY);
  ASSERT_TRUE(end.qp.Close());
  EXPECT_EQ(ErrnoOf(end.pd.Close()), EBUSY) << "the MR uses it";
  ASSERT_TRUE(end.mr.Close());
  EXPECT_EQ(ErrnoOf(end.pd.Close()), 0);
  ASSERT_TRUE(end.send_cq.Close());
  EXPECT_EQ(ErrnoOf(end.channel.Close()), EBUSY) << "the receive CQ uses it";
  ASSERT_TRUE(end.recv_cq.Close());
  EXPECT_EQ(ErrnoOf(end.channel.Close()), 0);
}

TEST_F(FakeDeviceTest, OnlyItsOwnBlobIsAccepted) {
  FakeEnd end = MakeFakeEnd(fabric_, 1);
  FakeDevice& device = *end.device;
  std::vector<std::byte> blob = device.PeerBlob(end.qp.get());
  EXPECT_EQ(ErrnoOf(device.AcceptPeerBlob(end.qp.get(), {})), EPROTO);
  EXPECT_FALSE(fabric_->Look(end.qp.get()).blob_accepted);
  EXPECT_EQ(ErrnoOf(device.AcceptPeerBlob(end.qp.get(), blob)), 0);
  EXPECT_TRUE(fabric_->Look(end.qp.get()).blob_accepted);
  blob.back() = std::byte{0};
  EXPECT_EQ(ErrnoOf(device.AcceptPeerBlob(end.qp.get(), blob)), EPROTO);
}

TEST_F(FakeDeviceTest, ContextSaysWhatIsMissing) {
  FakeEnd end = MakeFakeEnd(fabric_, 1);
  EXPECT_STREQ(end.qp->context->device->name, "fake0");
  ibv_cq_init_attr_ex attributes = {};
  attributes.cqe = 1;
  EXPECT_EQ(ibv_create_cq_ex(end.qp->context, &attributes), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace verbscope
