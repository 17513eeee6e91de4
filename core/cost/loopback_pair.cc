#include "core/cost/loopback_pair.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/deadline.h"
#include "core/causes/completion_failure.h"
#include "core/plan/plan.h"

namespace verbscope {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
constexpr uint32_t kLookAtTheClock = 256;  // empty polls between two looks

}  // namespace

EndpointInfo InfoOf(Device& device, ibv_qp* qp, uint32_t psn, const PathOptions& path) {
  EndpointInfo info;
  info.qps.push_back({.qpn = qp->qp_num, .psn = psn, .blob = device.PeerBlob(qp)});
  info.lid = path.port.lid;
  info.gid = path.gid;
  info.mtu_bytes = path.path_mtu_bytes;
  info.rd_atomic = ServedAtOnce(device, Plan{});
  return info;
}

Expected<std::unique_ptr<LoopbackPair>> LoopbackPair::Create(const CostStage& stage,
                                                             const CostLimits& limits,
                                                             const PairOptions& options) {
  std::unique_ptr<LoopbackPair> pair(new LoopbackPair(stage, limits));
  if (Status status = pair->CreateObjects(options); !status) return Fail(status.error());
  if (Status status = pair->Connect(); !status) return Fail(status.error());
  return pair;
}

Status LoopbackPair::CreateObjects(const PairOptions& options) {
  Expected<Pd> pd = device_.AllocatePd();
  if (!pd) return Fail(std::move(pd.error()));
  pd_ = std::move(*pd);
  Expected<std::unique_ptr<Buffer>> buffer = device_.AllocateBuffer({.bytes = kBufferBytes});
  if (!buffer) return Fail(std::move(buffer.error()));
  buffer_ = std::move(*buffer);
  Expected<Mr> mr = device_.RegisterMemory(pd_.get(), buffer_->bytes(), kAccess);
  if (!mr) return Fail(std::move(mr.error()));
  mr_ = std::move(*mr);
  if (options.channel) {
    Expected<CompChannel> channel = device_.CreateCompChannel();
    if (!channel) return Fail(std::move(channel.error()));
    channel_ = std::move(*channel);
  }
  Expected<Cq> cq = device_.CreateCq(
      {.cqe = options.send_depth, .channel = channel_.get(), .extended = options.extended});
  if (!cq) return Fail(std::move(cq.error()));
  send_cq_ = std::move(*cq);
  cq = device_.CreateCq({.cqe = 16, .extended = options.extended});
  if (!cq) return Fail(std::move(cq.error()));
  idle_cq_ = std::move(*cq);
  for (Qp* qp : {&sender_, &receiver_}) {
    const bool sends = qp == &sender_;
    Expected<CreatedQp> made =
        device_.CreateQp({.pd = pd_.get(),
                          .send_cq = sends ? send_cq_.get() : idle_cq_.get(),
                          .recv_cq = idle_cq_.get(),
                          .max_send_wr = sends ? options.send_depth : 1,
                          .max_inline_bytes = sends ? options.inline_bytes : 0,
                          .extended = options.extended && sends});
    if (!made) return Fail(std::move(made.error()));
    *qp = std::move(made->qp);
  }
  sges_.resize(options.send_depth);
  requests_.resize(options.send_depth);
  return {};
}

Status LoopbackPair::Connect() {
  const Plan plan;
  const uint32_t psns[] = {RandomPsn(), RandomPsn()};
  ibv_qp* const qps[] = {sender_.get(), receiver_.get()};
  for (ibv_qp* qp : qps) {
    if (Status status = ToInit(device_, qp, plan, path_, IBV_ACCESS_REMOTE_WRITE); !status) {
      return status;
    }
  }
  // The receiver first: it must be ready before the sender may send.
  for (const size_t own : {1, 0}) {
    const EndpointInfo peer = InfoOf(device_, qps[1 - own], psns[1 - own], path_);
    if (Status status = ConnectQp(device_, qps[own], psns[own], plan, path_, peer, 0); !status) {
      return status;
    }
  }
  return {};
}

uint64_t LoopbackPair::local_address() const {
  return reinterpret_cast<uintptr_t>(buffer_->bytes().data());
}

uint64_t LoopbackPair::remote_address() const { return local_address() + kBufferBytes / 2; }

ibv_send_wr* LoopbackPair::Writes(uint32_t count, uint32_t bytes, unsigned flags, bool signal_all) {
  for (uint32_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    sges_[i] = {.addr = local_address(), .length = bytes, .lkey = lkey()};
    ibv_send_wr& request = requests_[i];
    request = {};
    request.wr_id = i;
    request.next = last ? nullptr : &requests_[i + 1];
    request.sg_list = &sges_[i];
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = flags;
    if (last || signal_all) request.send_flags |= IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = remote_address();
    request.wr.rdma.rkey = rkey();
  }
  return requests_.data();
}

Status LoopbackPair::Posted(int result, const char* call) const {
  if (result == 0) return {};
  return Fail(CallError(ErrorClass::kRun, call, fmt::format("QP {:#x}", sender_->qp_num), result));
}

Status LoopbackPair::Judge(const ibv_wc& completion) const {
  if (completion.status == IBV_WC_SUCCESS) return {};
  CompletionFailure failure;
  failure.status = completion.status;
  failure.vendor_err = completion.vendor_err;
  failure.wr_id = completion.wr_id;
  failure.qp_num = completion.qp_num;
  failure.op = "WRITE";
  failure.remote_qp_num = receiver_->qp_num;
  if (Expected<ibv_qp_state> state = device_.QueryQpState(sender_.get()); state) {
    failure.qp_state = QpStateName(*state);
  }
  failure.link_layer = path_.port.link_layer;
  failure.path_mtu_bytes = path_.path_mtu_bytes;
  return Fail(ExplainCompletion(failure));
}

Status LoopbackPair::Drain(uint32_t completions) {
  const Deadline patience = Deadline::After(kPatience);
  uint32_t empty = 0;
  while (completions > 0) {
    ibv_wc found[16];
    const int wanted = static_cast<int>(std::min<uint32_t>(completions, std::size(found)));
    const int got = ibv_poll_cq(send_cq_.get(), wanted, found);
    if (got < 0) return Posted(-got, "ibv_poll_cq");
    for (int i = 0; i < got; ++i) {
      if (Status status = Judge(found[i]); !status) return status;
    }
    completions -= static_cast<uint32_t>(got);
    if (got > 0 || ++empty % kLookAtTheClock != 0) continue;
    if (Status status = limits_.Check(); !status) return status;
    if (!patience.Passed()) continue;
    Error error;
    error.error_class = ErrorClass::kRun;
    error.message = fmt::format("{} completions of WRITEs did not come within {} s", completions,
                                kPatience.count());
    error.cause = "the device does not work on its requests";
    error.next_step = "verbscope send-lat --loopback shows whether messages arrive at all";
    return Fail(std::move(error));
  }
  return {};
}

void LoopbackPair::Settle(std::chrono::nanoseconds time) const {
  const Deadline end = Deadline::After(time);
  do {
    ibv_wc none;
    ibv_poll_cq(idle_cq_.get(), 1, &none);
  } while (!end.Passed());
}

}  // namespace verbscope
