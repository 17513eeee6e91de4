// Every limit of the device holds exactly: at the maximum it works, one more is refused, and the
// refusal names the limit.
#include <cerrno>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

class LimitsTest : public testing::Test {
 protected:
  // A device with small limits, and one of each object for others to be made with.
  void Open(SoftOptions options = {}) {
    DeviceLimits& limits = options.limits.device;
    limits.max_qp_wr = 100;
    limits.max_sge = 3;
    limits.max_cqe = 50;
    limits.max_qp = 4;
    limits.max_cq = 5;
    limits.max_mr = 6;
    limits.max_pd = 7;
    limits.max_srq = 3;
    limits.max_mr_bytes = 8192;
    limits.max_rd_atomic_initiator = 5;
    limits.max_rd_atomic_responder = 6;
    limits.comp_vectors = 2;
    options.limits.max_srq_wr = 20;
    options.limits.max_inline_bytes = 40;
    device_ = OpenDevice(options);
    device_->set_teardown_report(&report_);
    pd_ = Must(device_->AllocatePd());
    cq_ = Must(device_->CreateCq({.cqe = 4}));
    buffer_ = Must(device_->AllocateBuffer({.bytes = 65536}));
  }
  template <class T>
  static void ExpectRefused(const Expected<T>& made, int code, std::string_view limit) {
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().errno_value, code);
    EXPECT_EQ(errno, code);
    EXPECT_NE(made.error().cause.find(limit), std::string::npos) << made.error().cause;
    errno = 0;
  }
  // Makes objects until there are `max`, one of which may be there already, and one more.
  template <class Make>
  void ExpectAtMost(size_t max, size_t there, Make make, std::string_view limit) {
    std::vector<decltype(Must(make()))> objects;
    while (there + objects.size() < max) objects.push_back(Must(make()));
    ExpectRefused(make(), ENOMEM, limit);
    objects.pop_back();
    objects.push_back(Must(make()));
  }
  verbscope::QpOptions Qp() const {
    return {.pd = pd_.get(), .send_cq = cq_.get(), .recv_cq = cq_.get()};
  }

  NoTeardownFailures report_;
  std::unique_ptr<SoftDevice> device_;
  std::unique_ptr<Buffer> buffer_;
  Pd pd_;
  Cq cq_;
};

TEST_F(LimitsTest, NumbersOfObjects) {
  Open();
  ExpectAtMost(
      7, 1, [this] { return device_->AllocatePd(); }, "max_pd=7");
  ExpectAtMost(
      5, 1, [this] { return device_->CreateCq({.cqe = 1}); }, "max_cq=5");
  ExpectAtMost(
      3, 0, [this] { return device_->CreateSrq({.pd = pd_.get()}); }, "max_srq=3");
  ExpectAtMost(
      4, 0, [this] { return device_->CreateQp(Qp()); }, "max_qp=4");
  ExpectAtMost(
      6, 0, [this] { return device_->RegisterMemory(pd_.get(), buffer_->bytes().first(8), 0); },
      "max_mr=6");
}

TEST_F(LimitsTest, DepthOfCompletionQueues) {
  Open();
  const Cq cq = Must(device_->CreateCq({.cqe = 50}));
  EXPECT_GE(cq->cqe, 50);
  ExpectRefused(device_->CreateCq({.cqe = 51}), EINVAL, "max_cqe=50");
  ExpectRefused(device_->CreateCq({.cqe = 0}), EINVAL, "max_cqe=50");
  EXPECT_TRUE(device_->ResizeCq(cq_.get(), 50));
  ExpectRefused(device_->ResizeCq(cq_.get(), 51), EINVAL, "max_cqe=50");
}

TEST_F(LimitsTest, CompletionVectors) {
  Open();
  EXPECT_TRUE(device_->CreateCq({.cqe = 1, .comp_vector = 1}));
  ExpectRefused(device_->CreateCq({.cqe = 1, .comp_vector = 2}), EINVAL, "vectors 0 … 1");
  ExpectRefused(device_->CreateCq({.cqe = 1, .comp_vector = -1}), EINVAL, "vectors 0 … 1");
  EXPECT_EQ(pd_->context->num_comp_vectors, 2);
}

TEST_F(LimitsTest, QueuesSgesAndInlineDataOfQps) {
  Open();
  verbscope::QpOptions most = Qp();
  most.max_send_wr = most.max_recv_wr = 100;
  most.max_send_sge = most.max_recv_sge = 3;
  most.max_inline_bytes = 40;
  EXPECT_EQ(*device_->MaxInlineBytes(), 40U);
  const CreatedQp made = Must(device_->CreateQp(most));
  EXPECT_EQ(made.max_inline_bytes, 40U);
  for (uint32_t verbscope::QpOptions::*member :
       {&verbscope::QpOptions::max_send_wr, &verbscope::QpOptions::max_recv_wr,
        &verbscope::QpOptions::max_send_sge, &verbscope::QpOptions::max_recv_sge,
        &verbscope::QpOptions::max_inline_bytes}) {
    verbscope::QpOptions more = most;
    ++(more.*member);
    ExpectRefused(device_->CreateQp(more), EINVAL, "max_qp_wr=100, max_sge=3, max_inline=40");
  }
}

TEST_F(LimitsTest, ADeviceWithoutInlineHasNone) {
  SoftOptions options;
  Open(options);
  options.limits.max_inline_bytes = 0;
  const auto device = OpenDevice(options);
  End end = MakeEnd(*device);
  EXPECT_EQ(*device->MaxInlineBytes(), 0U);
  ExpectRefused(device->CreateQp({.pd = end.pd.get(),
                                  .send_cq = end.send_cq,
                                  .recv_cq = end.recv_cq,
                                  .max_inline_bytes = 1}),
                EINVAL, "max_inline=0");
  end.Close();
}

TEST_F(LimitsTest, ADeviceMayTakeMoreInlineThanItSays) {
  SoftOptions options;
  options.limits.reported_inline_bytes = 30;
  Open(options);
  verbscope::QpOptions qp = Qp();
  qp.max_inline_bytes = kMaxInlineBytes;
  EXPECT_EQ(Must(device_->CreateQp(qp)).max_inline_bytes, 30U);
  qp.max_inline_bytes = kMaxInlineBytes + 1;
  ExpectRefused(device_->CreateQp(qp), EINVAL, "max_inline=1024");
}

TEST_F(LimitsTest, SharedReceiveQueues) {
  Open();
  const Srq srq = Must(device_->CreateSrq({.pd = pd_.get(), .max_wr = 20, .max_sge = 3}));
  ExpectRefused(device_->CreateSrq({.pd = pd_.get(), .max_wr = 21}), EINVAL, "max_srq_wr=20");
  ExpectRefused(device_->CreateSrq({.pd = pd_.get(), .max_wr = 1, .max_sge = 4}), EINVAL,
                "max_srq_sge=3");
  ExpectRefused(device_->CreateSrq({.pd = pd_.get(), .max_wr = 0}), EINVAL, "max_srq_wr=20");
  EXPECT_TRUE(device_->SetSrqLimit(srq.get(), 20));
  ExpectRefused(device_->SetSrqLimit(srq.get(), 21), EINVAL, "max_wr=20");
}

TEST_F(LimitsTest, SizeOfARegion) {
  Open();
  EXPECT_TRUE(device_->RegisterMemory(pd_.get(), buffer_->bytes().first(8192), kFullAccess));
  ExpectRefused(device_->RegisterMemory(pd_.get(), buffer_->bytes().first(8193), kFullAccess),
                ENOMEM, "max_mr_size=8192");
}

TEST_F(LimitsTest, BytesOfAllRegionsTogether) {
  SoftOptions options;
  options.limits.max_registered_bytes = 10000;
  Open(options);
  Mr first = Must(device_->RegisterMemory(pd_.get(), buffer_->bytes().first(6000), kFullAccess));
  ExpectRefused(device_->RegisterMemory(pd_.get(), buffer_->bytes().first(4001), kFullAccess),
                ENOMEM, "10000 bytes in all");
  Mr second = Must(device_->RegisterMemory(pd_.get(), buffer_->bytes().first(4000), kFullAccess));
  ExpectRefused(device_->RegisterMemory(pd_.get(), buffer_->bytes().first(1), kFullAccess), ENOMEM,
                "10000 bytes in all");
  ASSERT_TRUE(first.Close());
  EXPECT_TRUE(device_->RegisterMemory(pd_.get(), buffer_->bytes().first(6000), kFullAccess));
}

TEST_F(LimitsTest, OutstandingReadsAndAtomics) {
  Open();
  End a = MakeEnd(*device_, {.cqe = 50, .max_sge = 3, .bytes = 4096});
  ASSERT_TRUE(ToInit(a));
  const auto blob = device_->PeerBlob(a.qp.get());
  ASSERT_TRUE(device_->AcceptPeerBlob(a.qp.get(), blob));
  ibv_qp_attr rtr = RtrAttributes(*device_, *a.qp.get());
  rtr.max_dest_rd_atomic = 7;
  ExpectRefused(device_->ModifyQp(a.qp.get(), rtr, kRtrMask, ""), EINVAL, "max_qp_rd_atom=6");
  rtr.max_dest_rd_atomic = 6;
  ASSERT_TRUE(device_->ModifyQp(a.qp.get(), rtr, kRtrMask, ""));
  ibv_qp_attr rts = RtsAttributes();
  rts.max_rd_atomic = 6;
  ExpectRefused(device_->ModifyQp(a.qp.get(), rts, kRtsMask, ""), EINVAL, "max_qp_init_rd_atom=5");
  rts.max_rd_atomic = 5;
  EXPECT_TRUE(device_->ModifyQp(a.qp.get(), rts, kRtsMask, ""));
  a.Close();
}

TEST_F(LimitsTest, LengthOfAMessage) {
  SoftOptions options;
  options.limits.max_message_bytes = 3000;
  Open(options);
  for (const uint32_t bytes : {3000U, 3001U}) {
    End a = MakeEnd(*device_, {.cqe = 50, .one_cq = true, .max_sge = 3, .bytes = 4096});
    End b = MakeEnd(*device_, {.cqe = 50, .one_cq = true, .max_sge = 3, .bytes = 4096});
    ASSERT_TRUE(Connect(a, b));
    ASSERT_EQ(Post(a, Write(a, b, 1, bytes)), 0);
    EXPECT_EQ(Wait(a.send_cq).status, bytes == 3000 ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR);
  }
}

TEST_F(LimitsTest, PortsAreCountedFromOne) {
  Open();
  EXPECT_TRUE(device_->QueryPort(1));
  ExpectRefused(device_->QueryPort(0), EINVAL, "one port, number 1");
  ExpectRefused(device_->QueryPort(2), EINVAL, "one port, number 1");
}

}  // namespace
}  // namespace verbscope::soft
