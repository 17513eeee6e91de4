#include "core/scenario/qp_set.h"


#include <algorithm>
#include <utility>

#include "core/scenario/channel.h"
#include "core/scenario/explain.h"
#include "core/scenario/scenario.h"

namespace verbscope {
namespace {

// A plan of many queue pairs and large messages is not to need memory for each: nobody looks at
// what arrives.
constexpr size_t kPlaces = 16;
static_assert(kPlaces <= kStepBufferMessages);
constexpr size_t kPlaceAlignment = 64;
constexpr size_t kLeastBytes = 4096;

size_t PlaceBytes(uint64_t size_bytes) {
  return (std::max<size_t>(size_bytes, 1) + kPlaceAlignment - 1) / kPlaceAlignment *
         kPlaceAlignment;
}

Plan WithOptions(Plan plan, const QpSetOptions& options) {
  plan.timeout_code = options.timeout_code.value_or(plan.timeout_code);
  plan.retry_count = options.retry_count.value_or(plan.retry_count);
  plan.rnr_retry = options.rnr_retry.value_or(plan.rnr_retry);
  return plan;
}

}  // namespace

QpSet::QpSet(Stage& stage, const QpSetOptions& options)
    : stage_(stage), options_(options), plan_(WithOptions(stage.plan(), options)) {}

Expected<std::unique_ptr<QpSet>> QpSet::Create(Stage& stage, const QpSetOptions& options) {
  std::unique_ptr<QpSet> set(new QpSet(stage, options));
  if (Status status = set->CreateObjects(); !status) return Fail(std::move(status.error()));
  if (Status status = set->CreateQps(); !status) return Fail(std::move(status.error()));
  return set;
}

Status QpSet::CreateObjects() {
  Device& device = stage_.device();
  Expected<Pd> pd = device.AllocatePd();
  if (!pd) return Fail(std::move(pd.error()));
  pd_ = std::move(*pd);
  const size_t places = std::min<size_t>(options_.qps, kPlaces);
  Expected<std::unique_ptr<Buffer>> buffer = device.AllocateBuffer(
      {.bytes = std::max(places * PlaceBytes(options_.size_bytes), kLeastBytes)});
  if (!buffer) return Fail(std::move(buffer.error()));
  buffer_ = std::move(*buffer);
  Expected<Mr> mr = device.RegisterMemory(pd_.get(), buffer_->bytes(),
                                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (!mr) return Fail(std::move(mr.error()));
  mr_ = std::move(*mr);
  if (options_.channel) {
    Expected<CompChannel> channel = MakeNonBlockingChannel(device);
    if (!channel) return Fail(std::move(channel.error()));
    channel_ = std::move(*channel);
  }
  for (uint32_t i = 0; i < options_.cqs; ++i) {
    Expected<Cq> cq = device.CreateCq({.cqe = options_.cqe, .channel = channel_.get()});
    if (!cq) return Fail(std::move(cq.error()));
    cqs_.push_back(std::move(*cq));
  }
  return {};
}

Status QpSet::CreateQps() {
  const uint32_t beyond = options_.beyond_cqe > 0 ? cqe() + options_.beyond_cqe : 0;
  for (uint32_t i = 0; i < options_.qps; ++i) {
    ibv_cq* const own_cq = cq(i % options_.cqs);
    Expected<CreatedQp> qp =
        stage_.device().CreateQp({.pd = pd_.get(),
                                  .send_cq = own_cq,
                                  .recv_cq = own_cq,
                                  .max_send_wr = std::max(options_.send_depth, beyond),
                                  .max_recv_wr = std::max(options_.receive_depth, beyond)});
    if (!qp) return Fail(std::move(qp.error()));
    qps_.push_back(std::move(qp->qp));
    psns_.push_back(RandomPsn());
    sges_.push_back({.addr = reinterpret_cast<uintptr_t>(buffer_->bytes().data()) + Offset(i),
                     .length = static_cast<uint32_t>(options_.size_bytes),
                     .lkey = mr_->lkey});
    if (Status status = ToInit(stage_.device(), qps_.back().get(), plan_, stage_.path(),
                               IBV_ACCESS_REMOTE_WRITE);
        !status) {
      return status;
    }
  }
  return {};
}

size_t QpSet::Offset(size_t index) const {
  return index % kPlaces * PlaceBytes(options_.size_bytes);
}

Status QpSet::Connect() {
  EndpointInfo own;
  for (size_t i = 0; i < qps_.size(); ++i) {
    own.qps.push_back(
        {.qpn = qp(i)->qp_num, .psn = psns_[i], .blob = stage_.device().PeerBlob(qp(i))});
  }
  own.lid = stage_.path().port.lid;
  own.gid = stage_.path().gid;
  own.mtu_bytes = stage_.path().path_mtu_bytes;
  own.rkey = mr_->rkey;
  own.address = reinterpret_cast<uintptr_t>(buffer_->bytes().data());
  own.buffer_bytes = buffer_->bytes().size();
  own.rd_atomic = ServedAtOnce(stage_.device(), plan_);
  Expected<EndpointInfo> remote = stage_.SwapEndpoints(own);
  if (!remote) return Fail(std::move(remote.error()));
  remote_ = std::move(*remote);
  for (size_t i = 0; i < qps_.size(); ++i) {
    if (Status status =
            ConnectQp(stage_.device(), qp(i), psns_[i], plan_, stage_.path(), remote_, i);
        !status) {
      return status;
    }
  }
  return stage_.Meet("connected");
}

uint32_t QpSet::cqe() const {
  int least = cqs_.front()->cqe;
  for (const Cq& each : cqs_) least = std::min(least, each->cqe);
  return static_cast<uint32_t>(std::max(least, 1));
}

ibv_send_wr QpSet::Request(size_t index, ibv_wr_opcode opcode) {
  ibv_send_wr request = {};
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  if (options_.size_bytes > 0) {
    request.sg_list = &sges_[index];
    request.num_sge = 1;
  }
  request.wr.rdma.remote_addr = remote_.address + Offset(index);
  request.wr.rdma.rkey = remote_.rkey;
  return request;
}

ibv_recv_wr QpSet::Receive(size_t index) {
  ibv_recv_wr request = {};
  if (options_.size_bytes > 0) {
    request.sg_list = &sges_[index];
    request.num_sge = 1;
  }
  return request;
}

int QpSet::PostSend(size_t index, ibv_wr_opcode opcode, uint64_t wr_id) {
  ibv_send_wr request = Request(index, opcode);
  request.wr_id = wr_id;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp(index), &request, &bad);
}

int QpSet::PostReceive(size_t index, uint64_t wr_id) {
  ibv_recv_wr request = Receive(index);
  request.wr_id = wr_id;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp(index), &request, &bad);
}

Error QpSet::Explain(const ibv_wc& completion, size_t index, std::string op,
                     uint64_t number) const {
  return ExplainOf(
      {.stage = stage_, .plan = plan_, .remote = remote_, .qp = qp(index), .index = index},
      completion, std::move(op), options_.size_bytes, number);
}

Status QpSet::Close() {
  Status first;
  const auto note = [&first](Status status) {
    if (!status && first) first = std::move(status);
  };
  for (Qp& each : qps_) note(each.Close());
  for (Cq& each : cqs_) note(each.Close());
  note(channel_.Close());
  note(mr_.Close());
  buffer_.reset();
  note(pd_.Close());
  return first;
}

}  // namespace verbscope
