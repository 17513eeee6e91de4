// What the options make a device do and look like: control calls that fail, completions that lie,
// ports of another kind.
#include <dirent.h>

#include <cerrno>
#include <set>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

constexpr int kInjected = EOVERFLOW;  // that no call fails with by itself

size_t EntriesOf(const char* folder) {
  size_t count = 0;
  DIR* dir = ::opendir(folder);
  EXPECT_NE(dir, nullptr);
  while (::readdir(dir) != nullptr) ++count;
  ::closedir(dir);
  return count;
}

class Collected final : public TeardownReport {
 public:
  void Add(Error error) override { errors.push_back(std::move(error)); }
  std::vector<Error> errors;
};

// A whole run of a program, that ends at its first error. What is left is destroyed by its owners.
class WholeRun {
 public:
  explicit WholeRun(const SoftOptions& options) : options_(options) {}

  // All errors: of the run, then of the teardown.
  std::vector<Error> Go() {
    Run();
    return std::move(report_.errors);
  }
  bool gids_missing() const { return gids_missing_; }

 private:
  template <class T>
  bool Take(Expected<T> made, T& to) {
    if (!made) {
      report_.Add(std::move(made.error()));
      return false;
    }
    to = std::move(*made);
    return true;
  }
  bool Check(Status status) {
    if (!status) report_.Add(std::move(status.error()));
    return status.has_value();
  }
  void Run() {
    std::unique_ptr<SoftDevice> device;
    if (!Take(SoftDevice::Open(options_, "test"), device)) return;
    device->set_teardown_report(&report_);
    PortInfo port;
    if (!Take(device->QueryPort(1), port)) return;
    gids_missing_ = port.gids.empty();
    const auto buffer = Must(device->AllocateBuffer({.bytes = 4096}));
    Pd pd;
    Mr mr;
    CompChannel channel;
    Cq cq;
    Srq srq;
    CreatedQp created;
    if (!Take(device->AllocatePd(), pd) ||
        !Take(device->RegisterMemory(pd.get(), buffer->bytes(), kFullAccess), mr) ||
        !Take(device->CreateCompChannel(), channel) ||
        !Take(device->CreateCq({.cqe = 8, .channel = channel.get()}), cq) ||
        !Check(device->ResizeCq(cq.get(), 16)) || !Take(device->CreateSrq({.pd = pd.get()}), srq) ||
        !Check(device->SetSrqLimit(srq.get(), 1)) ||
        !Take(device->CreateQp(
                  {.pd = pd.get(), .send_cq = cq.get(), .recv_cq = cq.get(), .srq = srq.get()}),
              created)) {
      return;
    }
    Use(*device, created.qp, cq.get(), channel.get());
  }
  void Use(SoftDevice& device, Qp& qp, ibv_cq* cq, ibv_comp_channel* channel) {
    ibv_qp_attr init = InitAttributes();
    if (!Check(device.ModifyQp(qp.get(), init, kInitMask, "RESET to INIT"))) return;
    const auto blob = device.PeerBlob(qp.get());
    if (!Check(device.AcceptPeerBlob(qp.get(), blob))) return;
    ibv_qp_attr rtr = RtrAttributes(device, *qp.get());
    ibv_qp_attr rts = RtsAttributes();
    ibv_qp_state state = IBV_QPS_RESET;
    if (!Check(device.ModifyQp(qp.get(), rtr, kRtrMask, "INIT to RTR")) ||
        !Check(device.ModifyQp(qp.get(), rts, kRtsMask, "RTR to RTS")) ||
        !Take(device.QueryQpState(qp.get()), state)) {
      return;
    }
    // A WRITE of nothing to itself completes with an event.
    EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
    ibv_send_wr wr = {};
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(qp.get(), &wr, &bad), 0);
    ibv_cq* event = nullptr;
    if (!Take(device.GetCqEvent(channel), event)) return;
    device.AckCqEvents(event, 1);
    std::optional<AsyncEvent> async;
    if (!Take(device.NextAsyncEvent(Deadline::After({})), async)) return;
  }

  const SoftOptions options_;
  Collected report_;
  bool gids_missing_ = false;
};

SoftOptions OneGid() {
  SoftOptions options;
  options.address = ibv_gid{.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}};
  return options;
}

TEST(ControlHooksTest, WhicheverCallFailsItIsNamedAndNothingLeaks) {
  EXPECT_TRUE(WholeRun(OneGid()).Go().empty());
  const size_t descriptors = EntriesOf("/proc/self/fd");
  const size_t threads = EntriesOf("/proc/self/task");
  std::set<std::string> named;
  uint64_t calls = 0;
  for (uint64_t n = 1;; ++n) {
    SoftOptions options = OneGid();
    options.hooks.control.push_back({.nth = n, .errno_value = kInjected});
    WholeRun run(options);
    const std::vector<Error> errors = run.Go();
    EXPECT_EQ(EntriesOf("/proc/self/fd"), descriptors) << "call " << n;
    EXPECT_EQ(EntriesOf("/proc/self/task"), threads) << "call " << n;
    calls = n;
    if (errors.empty()) {
      if (run.gids_missing()) continue;  // an entry that cannot be read is left out
      break;
    }
    const Error& error = errors.front();
    EXPECT_EQ(error.errno_value, kInjected) << error.ToText();
    EXPECT_EQ(error.message.substr(0, 4), "ibv_");
    named.insert(error.message.substr(4, error.message.find_first_of("( ", 4) - 4));
    // What follows is only that others were still in use.
    for (size_t i = 1; i < errors.size(); ++i) EXPECT_EQ(errors[i].errno_value, EBUSY);
  }
  EXPECT_GT(calls, 23U);
  // Every call that a device makes; the rest of the list no device of this program makes.
  std::set<std::string> all(kControlCalls.begin(), kControlCalls.end());
  all.erase("query_gid");
  all.erase("query_pkey");
  EXPECT_EQ(named, all);
}

TEST(ControlHooksTest, AFailedDestructionCanBeRepeated) {
  SoftOptions options;
  options.hooks.control.push_back({.call = "dealloc_pd", .nth = 1, .errno_value = EBUSY});
  const auto device = OpenDevice(options);
  Pd pd = Must(device->AllocatePd());
  EXPECT_FALSE(pd.Close());
  EXPECT_TRUE(pd);
  EXPECT_TRUE(pd.Close());
  EXPECT_FALSE(pd);
}

using HooksTest = DeviceTest;

TEST_P(HooksTest, AnInjectedStatusChangesTheCompletionAndNothingElse) {
  SoftOptions options;
  options.hooks.completions.push_back(
      {.nth = 2, .status = IBV_WC_REM_ACCESS_ERR, .vendor_err = 0x77});
  OpenDevices(options);
  auto [a, b] = ConnectedPair();
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(Post(a, Write(a, b, i, 8)), 0);
    const ibv_wc wc = Wait(a.send_cq);
    EXPECT_EQ(wc.wr_id, i);
    EXPECT_EQ(wc.qp_num, a.qp->qp_num);
    EXPECT_EQ(wc.status, i == 2 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
    EXPECT_EQ(wc.vendor_err, i == 2 ? 0x77U : 0U);
  }
  EXPECT_EQ(StateOf(a), IBV_QPS_RTS);
}

TEST_P(HooksTest, GarbageLeavesWhatTheVerbsDefine) {
  SoftOptions options;
  options.hooks.completions.push_back({.nth = 0, .garbage = true});
  OpenDevices(options);
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  ASSERT_EQ(Post(a, SendImmediate(a, 2, 16, 9)), 0);
  const ibv_wc receive = Wait(b.recv_cq);
  EXPECT_EQ(receive.status, IBV_WC_SUCCESS);
  EXPECT_EQ(receive.wr_id, 1U);
  EXPECT_EQ(receive.opcode, IBV_WC_RECV);
  EXPECT_EQ(receive.byte_len, 16U);
  EXPECT_EQ(receive.imm_data, 9U);
  EXPECT_NE(receive.vendor_err, 0U);
  const ibv_wc send = Wait(a.send_cq);
  EXPECT_EQ(send.status, IBV_WC_SUCCESS);
  EXPECT_EQ(send.opcode, IBV_WC_SEND);
  EXPECT_NE(send.byte_len, 16U);
  SendWork bad = Write(a, b, 3, 8);
  bad.wr.wr.rdma.rkey ^= 1;
  ASSERT_EQ(Post(a, bad), 0);
  const ibv_wc failed = Wait(a.send_cq);
  EXPECT_EQ(failed.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(failed.wr_id, 3U);
  EXPECT_EQ(failed.qp_num, a.qp->qp_num);
  EXPECT_NE(failed.opcode, IBV_WC_RDMA_WRITE);
  // The slots of a QP are freed by its completions, garbage or not.
  ASSERT_TRUE(b.qp.Close());
}

TEST_P(HooksTest, AnInfiniBandPortConnectsByLid) {
  SoftOptions options;
  options.port.link_layer = LinkLayer::kInfiniBand;
  options.port.lid = 7;
  OpenDevices(options);
  EXPECT_EQ(first().QueryPort(1)->link_layer, LinkLayer::kInfiniBand);
  End a = MakeEnd(first());
  End b = MakeEnd(second());
  for (End* end : {&a, &b}) {
    End& peer = end == &a ? b : a;
    ASSERT_TRUE(ToInit(*end));
    const auto blob = peer.device->PeerBlob(peer.qp.get());
    ASSERT_TRUE(end->device->AcceptPeerBlob(end->qp.get(), blob));
    ibv_qp_attr rtr = RtrAttributes(*end->device, *peer.qp.get());
    rtr.ah_attr.is_global = 0;
    rtr.ah_attr.grh = {};
    rtr.ah_attr.dlid = 0;
    EXPECT_FALSE(end->device->ModifyQp(end->qp.get(), rtr, kRtrMask, "INIT to RTR"));
    rtr.ah_attr.dlid = 7;
    ASSERT_TRUE(end->device->ModifyQp(end->qp.get(), rtr, kRtrMask, "INIT to RTR"));
    ASSERT_TRUE(ToRts(*end));
  }
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  ASSERT_EQ(Post(a, Send(a, 2, 64)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
}

TEST_P(HooksTest, HolesAndUnreadableEntriesOfTheGidTableCannotBeUsed) {
  SoftOptions options;
  const ibv_gid gid = *OneGid().address;
  options.port.gids =
      std::vector<GidSlot>{{.index = 1, .type = "RoCE v2"},
                           {.index = 2, .gid = gid, .type = "RoCE v2", .unreadable_errno = EIO},
                           {.index = 5, .gid = gid, .type = "RoCE v2"}};
  OpenDevices(options);
  ASSERT_EQ(first().info().ports.front().gids.size(), 1U);
  End a = MakeEnd(first());
  End b = MakeEnd(second());
  ASSERT_TRUE(ToInit(a));
  const auto blob = b.device->PeerBlob(b.qp.get());
  ASSERT_TRUE(a.device->AcceptPeerBlob(a.qp.get(), blob));
  ibv_qp_attr rtr = RtrAttributes(first(), *b.qp.get());
  for (const uint8_t index : {uint8_t{0}, uint8_t{1}, uint8_t{2}, uint8_t{6}}) {
    rtr.ah_attr.grh.sgid_index = index;
    EXPECT_FALSE(first().ModifyQp(a.qp.get(), rtr, kRtrMask, "INIT to RTR")) << int{index};
  }
  rtr.ah_attr.grh.sgid_index = 5;
  EXPECT_TRUE(first().ModifyQp(a.qp.get(), rtr, kRtrMask, "INIT to RTR"));
}

TEST_P(HooksTest, APortThatIsDownConnectsNobody) {
  SoftOptions options;
  options.port.state = IBV_PORT_DOWN;
  OpenDevices(options);
  End a = MakeEnd(first());
  End b = MakeEnd(second());
  ASSERT_TRUE(ToInit(a));
  const Status refused = ToRtr(a, b);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("DOWN"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(, HooksTest, kMemoryDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
