#include "transports/soft/device/device_fixture.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace verbscope::soft {
namespace {

constexpr uint64_t kNoCompletion = UINT64_MAX;

SendWork Work(const End& from, uint64_t id, uint32_t bytes, size_t offset, ibv_wr_opcode opcode) {
  SendWork work;
  work.sge = {.addr = from.address(offset), .length = bytes, .lkey = from.mr->lkey};
  work.wr.wr_id = id;
  work.wr.num_sge = 1;
  work.wr.opcode = opcode;
  work.wr.send_flags = IBV_SEND_SIGNALED;
  return work;
}

SendWork Remote(const End& from, const End& to, uint64_t id, uint32_t bytes, size_t offset,
                ibv_wr_opcode opcode) {
  SendWork work = Work(from, id, bytes, offset, opcode);
  work.wr.wr.rdma.remote_addr = to.address(offset);
  work.wr.wr.rdma.rkey = to.mr->rkey;
  return work;
}

SendWork Atomic(const End& from, const End& to, uint64_t id, ibv_wr_opcode opcode) {
  SendWork work = Work(from, id, sizeof(uint64_t), 0, opcode);
  work.wr.wr.atomic.remote_addr = to.address();
  work.wr.wr.atomic.rkey = to.mr->rkey;
  return work;
}

}  // namespace

const Expectations& ExpectationsOf(Profile profile) {
  static constexpr Expectations kIbta = {.too_long_requester = IBV_WC_REM_INV_REQ_ERR,
                                         .too_long_responder = IBV_WC_LOC_LEN_ERR,
                                         .bad_receive_responder = IBV_WC_LOC_PROT_ERR,
                                         .error_events = true,
                                         .retry_7_is_forever = false};
  static constexpr Expectations kRxe61 = {.too_long_requester = IBV_WC_REM_OP_ERR,
                                          .too_long_responder = IBV_WC_LOC_QP_OP_ERR,
                                          .bad_receive_responder = IBV_WC_LOC_QP_OP_ERR,
                                          .error_events = false,
                                          .retry_7_is_forever = true};
  return profile == Profile::kIbta ? kIbta : kRxe61;
}

std::string DeviceParam::NameOf(const testing::TestParamInfo<DeviceParam>& info) {
  return std::string(info.param.profile == Profile::kIbta ? "Ibta" : "Rxe61") +
         (info.param.one_device ? "OneDevice" : "TwoDevices") +
         (info.param.link == LinkKind::kUdp ? "Udp" : "");
}

ibv_qp_attr InitAttributes(const ConnectOptions& options) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qp_access_flags = options.access;
  return attributes;
}

ibv_qp_attr RtrAttributes(Device& device, const ibv_qp& peer, const ConnectOptions& options,
                          Device* peer_device) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = options.mtu;
  attributes.dest_qp_num = peer.qp_num;
  attributes.rq_psn = options.psn;
  attributes.max_dest_rd_atomic = options.rd_atomic;
  attributes.min_rnr_timer = options.min_rnr_timer;
  const PortInfo& port = device.info().ports.front();
  ibv_ah_attr& address = attributes.ah_attr;
  address.port_num = 1;
  address.dlid = static_cast<uint16_t>(port.lid);
  // Both ends are on this host, so the last GID, the loopback's, is good for both in memory.
  const PortInfo& peer_port = (peer_device != nullptr ? *peer_device : device).info().ports.front();
  address.is_global = 1;
  address.grh.sgid_index = static_cast<uint8_t>(port.gids.back().index);
  address.grh.dgid = peer_port.gids.back().raw;
  address.grh.hop_limit = 64;
  return attributes;
}

ibv_qp_attr RtsAttributes(const ConnectOptions& options) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = options.psn;
  attributes.timeout = options.timeout;
  attributes.retry_cnt = options.retry_cnt;
  attributes.rnr_retry = options.rnr_retry;
  attributes.max_rd_atomic = options.rd_atomic;
  return attributes;
}

Status ToInit(End& end, const ConnectOptions& options) {
  ibv_qp_attr attributes = InitAttributes(options);
  return end.device->ModifyQp(end.qp.get(), attributes, kInitMask, "RESET to INIT");
}

Status ToRtr(End& end, End& peer, const ConnectOptions& options) {
  const std::vector<std::byte> blob = peer.device->PeerBlob(peer.qp.get());
  if (Status status = end.device->AcceptPeerBlob(end.qp.get(), blob); !status) return status;
  ibv_qp_attr attributes = RtrAttributes(*end.device, *peer.qp.get(), options, peer.device);
  return end.device->ModifyQp(end.qp.get(), attributes, kRtrMask, "INIT to RTR");
}

Status ToRts(End& end, const ConnectOptions& options) {
  ibv_qp_attr attributes = RtsAttributes(options);
  return end.device->ModifyQp(end.qp.get(), attributes, kRtsMask, "RTR to RTS");
}

Status ToState(End& end, ibv_qp_state state) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = state;
  return end.device->ModifyQp(end.qp.get(), attributes, IBV_QP_STATE, "to " + QpStateName(state));
}

Status Connect(End& a, End& b, const ConnectOptions& options) {
  for (End* end : {&a, &b}) {
    if (Status status = ToInit(*end, options); !status) return status;
  }
  if (Status status = ToRtr(a, b, options); !status) return status;
  if (Status status = ToRtr(b, a, options); !status) return status;
  for (End* end : {&a, &b}) {
    if (Status status = ToRts(*end, options); !status) return status;
  }
  return {};
}

SendWork Send(const End& from, uint64_t id, uint32_t bytes, size_t offset) {
  return Work(from, id, bytes, offset, IBV_WR_SEND);
}

SendWork SendImmediate(const End& from, uint64_t id, uint32_t bytes, uint32_t immediate) {
  SendWork work = Work(from, id, bytes, 0, IBV_WR_SEND_WITH_IMM);
  work.wr.imm_data = immediate;
  return work;
}

SendWork Write(const End& from, const End& to, uint64_t id, uint32_t bytes, size_t offset) {
  return Remote(from, to, id, bytes, offset, IBV_WR_RDMA_WRITE);
}

SendWork WriteImmediate(const End& from, const End& to, uint64_t id, uint32_t bytes,
                        uint32_t immediate) {
  SendWork work = Remote(from, to, id, bytes, 0, IBV_WR_RDMA_WRITE_WITH_IMM);
  work.wr.imm_data = immediate;
  return work;
}

SendWork Read(const End& from, const End& to, uint64_t id, uint32_t bytes, size_t offset) {
  return Remote(from, to, id, bytes, offset, IBV_WR_RDMA_READ);
}

SendWork FetchAdd(const End& from, const End& to, uint64_t id, uint64_t add) {
  SendWork work = Atomic(from, to, id, IBV_WR_ATOMIC_FETCH_AND_ADD);
  work.wr.wr.atomic.compare_add = add;
  return work;
}

SendWork CompareSwap(const End& from, const End& to, uint64_t id, uint64_t compare, uint64_t swap) {
  SendWork work = Atomic(from, to, id, IBV_WR_ATOMIC_CMP_AND_SWP);
  work.wr.wr.atomic.compare_add = compare;
  work.wr.wr.atomic.swap = swap;
  return work;
}

int Post(End& end, SendWork work) {
  work.wr.sg_list = &work.sge;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(end.qp.get(), &work.wr, &bad);
}

int PostReceive(End& end, uint64_t id, uint32_t bytes, size_t offset) {
  ibv_sge sge = {.addr = end.address(offset), .length = bytes, .lkey = end.mr->lkey};
  ibv_recv_wr wr = {.wr_id = id, .next = nullptr, .sg_list = &sge, .num_sge = bytes > 0 ? 1 : 0};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(end.qp.get(), &wr, &bad);
}

int PostSharedReceive(ibv_srq* srq, const End& memory, uint64_t id, uint32_t bytes) {
  ibv_sge sge = {.addr = memory.address(), .length = bytes, .lkey = memory.mr->lkey};
  ibv_recv_wr wr = {.wr_id = id, .next = nullptr, .sg_list = &sge, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_srq_recv(srq, &wr, &bad);
}

ibv_wc Wait(ibv_cq* cq) {
  ibv_wc wc = {};
  const Deadline deadline = Soon();
  do {
    const int got = ibv_poll_cq(cq, 1, &wc);
    if (got == 1) return wc;
    EXPECT_EQ(got, 0);
  } while (!deadline.Passed());
  ADD_FAILURE() << "no completion within the deadline";
  wc.wr_id = kNoCompletion;
  wc.status = IBV_WC_GENERAL_ERR;
  return wc;
}

std::vector<ibv_wc> WaitFor(ibv_cq* cq, size_t count) {
  std::vector<ibv_wc> all;
  while (all.size() < count) {
    all.push_back(Wait(cq));
    if (all.back().wr_id == kNoCompletion) break;
  }
  return all;
}

void ExpectEmpty(ibv_cq* cq) {
  ibv_wc wc = {};
  for (int i = 0; i < 2000; ++i) {
    const int got = ibv_poll_cq(cq, 1, &wc);
    ASSERT_EQ(got, 0) << "status " << wc.status << " of request " << wc.wr_id;
  }
}

void AwaitDirectWake(End& from, End& to) {
  const Deadline deadline = Soon();
  const uint64_t before = Counter(*from.device, "peer_channels_woken");
  while (Counter(*from.device, "peer_channels_woken") == before) {
    ASSERT_FALSE(deadline.Passed());
    ASSERT_EQ(PostReceive(to, 1, 8), 0);
    ASSERT_EQ(ibv_req_notify_cq(to.recv_cq, 0), 0);
    ASSERT_EQ(Post(from, Send(from, 1, 8)), 0);
    ASSERT_TRUE(Readable(to.channel->fd, std::chrono::seconds(20)));
    const Expected<ibv_cq*> event = to.device->GetCqEvent(to.channel.get());
    ASSERT_TRUE(event);
    ASSERT_EQ(*event, to.recv_cq);
    to.device->AckCqEvents(*event, 1);
    Wait(to.recv_cq);
    Wait(from.send_cq);
  }
}

bool Readable(int fd, std::chrono::milliseconds wait) {
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, static_cast<int>(wait.count())) == 1;
}

void SetNonBlocking(ibv_comp_channel* channel) {
  EXPECT_EQ(::fcntl(channel->fd, F_SETFL, ::fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
}

uint64_t Counter(Device& device, std::string_view name) {
  for (const auto& [counter, value] : device.ReadCounters(1)) {
    if (counter == name) return value;
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

std::vector<std::string> AsyncEvents(Device& device, std::chrono::milliseconds wait) {
  std::vector<std::string> types;
  for (;;) {
    const auto event = device.NextAsyncEvent(Deadline::After(wait));
    EXPECT_TRUE(event) << event.error().ToText();
    if (!event || !*event) return types;
    types.push_back((*event)->text.substr(0, (*event)->text.find(' ')));
  }
}

bool AwaitAsyncEvent(Device& device, std::string_view type) {
  for (;;) {
    const auto event = device.NextAsyncEvent(Soon());
    EXPECT_TRUE(event) << event.error().ToText();
    if (!event || !*event) return false;
    if ((*event)->text.substr(0, (*event)->text.find(' ')) == type) return true;
  }
}

ibv_qp_state StateOf(End& end) {
  const Expected<ibv_qp_state> state = end.device->QueryQpState(end.qp.get());
  EXPECT_TRUE(state) << state.error().ToText();
  return state.value_or(IBV_QPS_UNKNOWN);
}

std::vector<std::byte> Pattern(size_t bytes, uint32_t seed) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>((seed * 2654435761U + i * 37 + i / 253) >> 2);
  }
  return data;
}

std::unique_ptr<SoftDevice> OpenDevice(const SoftOptions& options) {
  Expected<std::unique_ptr<SoftDevice>> device = SoftDevice::Open(options, "test");
  EXPECT_TRUE(device) << device.error().ToText();
  return device ? std::move(*device) : nullptr;
}

End MakeEnd(Device& device, const EndOptions& options) {
  End end;
  end.device = &device;
  end.pd = Must(device.AllocatePd());
  end.buffer = Must(device.AllocateBuffer({.bytes = options.bytes}));
  end.mr = Must(device.RegisterMemory(end.pd.get(), end.buffer->bytes(), options.access));
  if (options.channel) end.channel = Must(device.CreateCompChannel());
  const CqOptions cq = {.cqe = options.cqe, .channel = end.channel.get()};
  end.send_cq_owner = Must(device.CreateCq(cq));
  if (!options.one_cq) end.recv_cq_owner = Must(device.CreateCq(cq));
  end.send_cq = end.send_cq_owner.get();
  end.recv_cq = options.one_cq ? end.send_cq : end.recv_cq_owner.get();
  verbscope::QpOptions qp;
  qp.pd = end.pd.get();
  qp.send_cq = end.send_cq;
  qp.recv_cq = end.recv_cq;
  qp.srq = options.srq;
  qp.signal_all = options.signal_all;
  qp.max_send_wr = options.max_send_wr;
  qp.max_recv_wr = options.max_recv_wr;
  qp.max_send_sge = qp.max_recv_sge = options.max_sge;
  qp.max_inline_bytes = options.max_inline_bytes;
  end.qp = std::move(Must(device.CreateQp(qp)).qp);
  return end;
}

void DeviceTest::OpenDevices(const SoftOptions& options) {
  SoftOptions mine = options;
  mine.profile = GetParam().profile;
  if (udp()) mine.link = LinkKind::kUdp;
  first_ = OpenDevice(mine);
  first_->set_teardown_report(&report_);
  if (GetParam().one_device) return;
  second_ = OpenDevice(mine);
  second_->set_teardown_report(&report_);
}

SoftDevice& DeviceTest::Opened(std::unique_ptr<SoftDevice>& device) {
  if (first_ == nullptr) OpenDevices();
  return *device;
}

std::pair<End, End> DeviceTest::ConnectedPair(const EndOptions& a, const EndOptions& b,
                                              const ConnectOptions& options) {
  std::pair<End, End> ends(MakeEnd(first(), a), MakeEnd(second(), b));
  const Status status = Connect(ends.first, ends.second, options);
  EXPECT_TRUE(status) << status.error().ToText();
  return ends;
}

}  // namespace verbscope::soft
