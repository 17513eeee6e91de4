#include "core/scenario/fresh_qp.h"

#include <sched.h>

#include <utility>

#include "core/scenario/channel.h"
#include "core/scenario/explain.h"
#include "core/scenario/scenario.h"

namespace verbscope {
namespace {

Plan WithOptions(Plan plan, const FreshQpOptions& options) {
  plan.timeout_code = options.timeout_code.value_or(plan.timeout_code);
  plan.retry_count = options.retry_count.value_or(plan.retry_count);
  plan.rnr_retry = options.rnr_retry.value_or(plan.rnr_retry);
  plan.rnr_timer_code = options.rnr_timer_code.value_or(plan.rnr_timer_code);
  return plan;
}

}  // namespace

Expected<std::unique_ptr<FreshQp>> FreshQp::Create(Stage& stage, const FreshQpOptions& options) {
  std::unique_ptr<FreshQp> qp(new FreshQp(stage, options, WithOptions(stage.plan(), options)));
  if (Status status = qp->CreateObjects(); !status) return Fail(std::move(status.error()));
  if (Status status = ToInit(stage.device(), qp->qp(), qp->plan_, stage.path(), options.qp_access);
      !status) {
    return Fail(std::move(status.error()));
  }
  qp->psn_ = RandomPsn();
  return qp;
}

Status FreshQp::CreateObjects() {
  for (const auto create : {&FreshQp::CreateMemory, &FreshQp::CreateCqs, &FreshQp::CreateQp}) {
    if (Status status = (this->*create)(); !status) return status;
  }
  return {};
}

Status FreshQp::CreateMemory() {
  Device& device = stage_.device();
  Expected<Pd> pd = device.AllocatePd();
  if (!pd) return Fail(std::move(pd.error()));
  pd_ = std::move(*pd);
  Expected<std::unique_ptr<Buffer>> buffer =
      device.AllocateBuffer({.bytes = options_.buffer_bytes});
  if (!buffer) return Fail(std::move(buffer.error()));
  buffer_ = std::move(*buffer);
  Expected<Mr> mr = device.RegisterMemory(pd_.get(), bytes(), options_.memory_access);
  if (!mr) return Fail(std::move(mr.error()));
  mr_ = std::move(*mr);
  if (!options_.foreign_region) return {};
  pd = device.AllocatePd();
  if (!pd) return Fail(std::move(pd.error()));
  foreign_pd_ = std::move(*pd);
  mr = device.RegisterMemory(foreign_pd_.get(), bytes(), options_.memory_access);
  if (!mr) return Fail(std::move(mr.error()));
  foreign_mr_ = std::move(*mr);
  return {};
}

Status FreshQp::CreateCqs() {
  if (options_.share_cqs != nullptr) return {};
  Device& device = stage_.device();
  if (options_.channel) {
    Expected<CompChannel> channel = MakeNonBlockingChannel(device);
    if (!channel) return Fail(std::move(channel.error()));
    channel_ = std::move(*channel);
  }
  const auto entries = [this](uint32_t depth) { return options_.cqe > 0 ? options_.cqe : depth; };
  Expected<Cq> cq =
      device.CreateCq({.cqe = entries(options_.send_depth), .channel = channel_.get()});
  if (!cq) return Fail(std::move(cq.error()));
  send_cq_ = std::move(*cq);
  cq = device.CreateCq({.cqe = entries(options_.receive_depth), .channel = channel_.get()});
  if (!cq) return Fail(std::move(cq.error()));
  receive_cq_ = std::move(*cq);
  return {};
}

Status FreshQp::CreateQp() {
  Device& device = stage_.device();
  if (options_.shared_receives) {
    Expected<Srq> srq = device.CreateSrq({.pd = pd_.get(),
                                          .max_wr = options_.receive_depth,
                                          .max_sge = options_.max_recv_sge});
    if (!srq) return Fail(std::move(srq.error()));
    srq_ = std::move(*srq);
  }
  Expected<CreatedQp> qp = device.CreateQp({.pd = pd_.get(),
                                            .send_cq = send_cq(),
                                            .recv_cq = receive_cq(),
                                            .srq = srq_.get(),
                                            .signal_all = options_.signal_all,
                                            .max_send_wr = options_.send_depth,
                                            .max_recv_wr = srq_ ? 0 : options_.receive_depth,
                                            .max_send_sge = options_.max_send_sge,
                                            .max_recv_sge = options_.max_recv_sge,
                                            .max_inline_bytes = options_.max_inline_bytes});
  if (!qp) return Fail(std::move(qp.error()));
  qp_ = std::move(qp->qp);
  max_inline_bytes_ = qp->max_inline_bytes;
  return {};
}

EndpointInfo FreshQp::Info() const {
  EndpointInfo info;
  info.qps.push_back(
      {.qpn = qp_->qp_num, .psn = psn_, .blob = stage_.device().PeerBlob(qp_.get())});
  info.lid = stage_.path().port.lid;
  info.gid = stage_.path().gid;
  info.mtu_bytes = stage_.path().path_mtu_bytes;
  info.rkey = mr_->rkey;
  info.address = address();
  info.buffer_bytes = bytes().size();
  info.rd_atomic = ServedAtOnce(stage_.device(), plan_);
  return info;
}

Status FreshQp::Connect() {
  Expected<EndpointInfo> remote = stage_.SwapEndpoints(Info());
  if (!remote) return Fail(std::move(remote.error()));
  remote_ = std::move(*remote);
  if (Status status = ConnectQp(stage_.device(), qp_.get(), psn_, plan_, stage_.path(), remote_, 0);
      !status) {
    return status;
  }
  return stage_.Meet("connected");
}

Status FreshQp::Reset() {
  // The other side's last packets find a queue pair until both are here.
  if (Status status = stage_.Meet("reset"); !status) return status;
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RESET;
  if (Status status =
          stage_.device().ModifyQp(qp_.get(), attributes, IBV_QP_STATE, "any state to RESET");
      !status) {
    return status;
  }
  for (ibv_cq* cq : {send_cq(), receive_cq()}) {
    ibv_wc old;
    while (ibv_poll_cq(cq, 1, &old) > 0) {
    }
  }
  psn_ = RandomPsn();
  return ToInit(stage_.device(), qp_.get(), plan_, stage_.path(), options_.qp_access);
}

int FreshQp::PostReceive(uint64_t wr_id, std::span<ibv_sge> sges) {
  ibv_recv_wr request = {};
  request.wr_id = wr_id;
  request.sg_list = sges.empty() ? nullptr : sges.data();
  request.num_sge = static_cast<int>(sges.size());
  ibv_recv_wr* bad = nullptr;
  return srq_ ? ibv_post_srq_recv(srq_.get(), &request, &bad)
              : ibv_post_recv(qp_.get(), &request, &bad);
}

int FreshQp::PostSend(ibv_send_wr& request) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp_.get(), &request, &bad);
}

ibv_sge FreshQp::Sge(size_t offset, size_t length) const {
  return {.addr = address(offset), .length = static_cast<uint32_t>(length), .lkey = mr_->lkey};
}

Expected<std::optional<ibv_wc>> FreshQp::AwaitSend(std::chrono::nanoseconds limit) {
  return stage_.Await(send_cq(), limit);
}

Expected<std::optional<ibv_wc>> FreshQp::AwaitReceive(std::chrono::nanoseconds limit) {
  return stage_.Await(receive_cq(), limit);
}

Expected<ibv_qp_state> FreshQp::AwaitState(ibv_qp_state wanted, std::chrono::nanoseconds limit) {
  const Deadline deadline = Deadline::After(limit);
  for (;;) {
    Expected<ibv_qp_state> state = stage_.device().QueryQpState(qp_.get());
    if (!state || *state == wanted || deadline.Passed()) return state;
    ::sched_yield();
  }
}

Error FreshQp::Explain(const ibv_wc& completion, std::string op, uint64_t size_bytes,
                       uint64_t number) {
  return ExplainOf({.stage = stage_, .plan = plan_, .remote = remote_, .qp = qp_.get()}, completion,
                   std::move(op), size_bytes, number);
}

Status FreshQp::Close() {
  Status first;
  const auto note = [&first](Status status) {
    if (!status && first) first = std::move(status);
  };
  note(qp_.Close());
  note(srq_.Close());
  note(receive_cq_.Close());
  note(send_cq_.Close());
  note(channel_.Close());
  note(foreign_mr_.Close());
  note(foreign_pd_.Close());
  note(mr_.Close());
  buffer_.reset();
  note(pd_.Close());
  return first;
}

}  // namespace verbscope
