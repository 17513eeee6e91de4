// Posting: ibv_post_send by size, inline, list and signal period; ibv_wr_*; ibv_post_recv.
#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/cost/verb_rows.h"
#include "core/endpoint/connect.h"
#include "core/plan/plan.h"

namespace verbscope {
namespace {

constexpr uint32_t kLargestPayload = LoopbackPair::kBufferBytes / 2;

// A list of `count` WRITEs, the last one signalled; the queue is empty again before the next call.
Status MeasureList(CostMeter& meter, LoopbackPair& pair, uint32_t bytes, uint32_t count,
                   bool inline_data) {
  CostRow row{.point = CostPoint("post_send", bytes), .work = count};
  row.point.inline_data = inline_data;
  if (count > 1) row.point.post_list = count;
  ibv_send_wr* const list =
      pair.Writes(count, bytes, inline_data ? unsigned{IBV_SEND_INLINE} : 0U, /*signal_all=*/false);
  ibv_send_wr* bad = nullptr;
  int result = 0;
  return meter.Measure(
      row, [] { return Status(); }, [&] { result = ibv_post_send(pair.qp(), list, &bad); },
      [&]() -> Expected<bool> {
        Status status = pair.Posted(result, "ibv_post_send");
        if (status) status = pair.Drain(1);
        if (!status) return Fail(std::move(status.error()));
        return true;
      });
}

// Single WRITEs, one in `period` signalled; the queue is emptied at each of those.
Status MeasurePeriod(CostMeter& meter, LoopbackPair& pair, uint32_t period) {
  CostRow row{.point = CostPoint("post_send", kSweepBytes)};
  row.point.inline_data = false;
  row.point.signal_every = period;
  ibv_send_wr signalled = *pair.Writes(1, kSweepBytes, 0, /*signal_all=*/false);
  ibv_send_wr silent = signalled;
  silent.send_flags = 0;
  ibv_send_wr* next = nullptr;
  ibv_send_wr* bad = nullptr;
  uint32_t posted = 0;
  int result = 0;
  return meter.Measure(
      row,
      [&] {
        next = ++posted == period ? &signalled : &silent;
        return Status();
      },
      [&] { result = ibv_post_send(pair.qp(), next, &bad); },
      [&]() -> Expected<bool> {
        Status status = pair.Posted(result, "ibv_post_send");
        if (status && posted == period) {
          posted = 0;
          status = pair.Drain(1);
        }
        if (!status) return Fail(std::move(status.error()));
        return true;
      });
}

// The same list through ibv_wr_start … ibv_wr_complete: all of it is one call.
// One batch of `count` requests by ibv_wr_*; the errno of its end.
template <class SetData>
int PostBatch(ibv_qp_ex& qp, const LoopbackPair& pair, uint32_t count, SetData set_data) {
  ibv_wr_start(&qp);
  for (uint32_t i = 0; i < count; ++i) {
    qp.wr_id = i;
    qp.wr_flags = i + 1 == count ? unsigned{IBV_SEND_SIGNALED} : 0U;
    ibv_wr_rdma_write(&qp, pair.rkey(), pair.remote_address());
    set_data();
  }
  return ibv_wr_complete(&qp);
}

int PostInline(ibv_qp_ex& qp, const LoopbackPair& pair) {
  return PostBatch(qp, pair, 1, [&] {
    ibv_wr_set_inline_data(&qp, reinterpret_cast<void*>(pair.local_address()), kSweepBytes);
  });
}

Status MeasureBatch(CostMeter& meter, LoopbackPair& pair, ibv_qp_ex& qp, uint32_t count,
                    bool inline_data) {
  CostRow row{.point = CostPoint("ibv_wr", kSweepBytes), .work = count};
  row.point.inline_data = inline_data;
  if (count > 1) row.point.post_list = count;
  int result = 0;
  const auto finish = [&]() -> Expected<bool> {
    Status status = pair.Posted(result, "ibv_wr_complete");
    if (status) status = pair.Drain(1);
    if (!status) return Fail(std::move(status.error()));
    return true;
  };
  const auto ready = [] { return Status(); };
  if (inline_data) {
    return meter.Measure(
        row, ready, [&] { result = PostInline(qp, pair); }, finish);
  }
  const uint64_t from = pair.local_address();
  const uint32_t lkey = pair.lkey();
  const auto refer = [&] { ibv_wr_set_sge(&qp, lkey, from, kSweepBytes); };
  return meter.Measure(
      row, ready, [&] { result = PostBatch(qp, pair, count, refer); }, finish);
}

// Not every driver that offers ibv_wr_* sends inline data with it: rxe of rdma-core 44 does not
// mark the request as inline, and the device looks for data that is not there. That is a row less
// and no reason to lose the others.
Status MeasureInlineBatch(CostMeter& meter, LoopbackPair& pair, ibv_qp_ex& qp) {
  Status status = pair.Posted(PostInline(qp, pair), "ibv_wr_complete");
  if (status) status = pair.Drain(1);
  if (status) return MeasureBatch(meter, pair, qp, 1, /*inline_data=*/true);
  if (status.error().status.empty()) return status;
  meter.Skip("ibv_wr inline", fmt::format("a WRITE with ibv_wr_set_inline_data ended with {}: this "
                                          "driver's interface does not send inline data",
                                          status.error().status));
  return {};
}

// Sizes that are swept without inline, or with it: on both sides of the limit.
std::vector<uint32_t> SizesOf(uint32_t limit, bool inline_data) {
  std::vector<uint32_t> sizes(kSendSizes.begin(), kSendSizes.end());
  if (limit > 0) sizes.insert(sizes.end(), {limit, limit + 1});
  std::erase_if(sizes, [&](uint32_t size) {
    return size > kLargestPayload || (inline_data && size > limit);
  });
  std::ranges::sort(sizes);
  const auto rest = std::ranges::unique(sizes);
  sizes.erase(rest.begin(), rest.end());
  return sizes;
}

// A QP in INIT takes receives, and nothing uses them up: when its queue is full it is emptied.
class ReceiveQueue {
 public:
  static constexpr uint32_t kDepth = 1024;

  static Expected<ReceiveQueue> Create(const CostStage& stage) {
    ReceiveQueue queue(stage);
    if (Status status = queue.CreateObjects(); !status) return Fail(std::move(status.error()));
    return queue;
  }

  ibv_qp* qp() const { return qp_.get(); }
  ibv_sge sge() const {
    return {.addr = reinterpret_cast<uintptr_t>(buffer_->bytes().data()),
            .length = kSweepBytes,
            .lkey = mr_->lkey};
  }

  // Room for `count` more.
  Status MakeRoom(uint32_t count) {
    if (posted_ + count > kDepth) {
      ibv_qp_attr attributes = {};
      attributes.qp_state = IBV_QPS_RESET;
      Status status = stage_->device.ModifyQp(qp_.get(), attributes, IBV_QP_STATE, "INIT to RESET");
      if (status) status = ToInit(stage_->device, qp_.get(), Plan{}, stage_->path, 0);
      if (!status) return status;
      posted_ = 0;
    }
    posted_ += count;
    return {};
  }

 private:
  explicit ReceiveQueue(const CostStage& stage) : stage_(&stage) {}

  Status CreateObjects() {
    Device& device = stage_->device;
    Expected<Pd> pd = device.AllocatePd();
    if (!pd) return Fail(std::move(pd.error()));
    pd_ = std::move(*pd);
    Expected<std::unique_ptr<Buffer>> buffer = device.AllocateBuffer({.bytes = 4096});
    if (!buffer) return Fail(std::move(buffer.error()));
    buffer_ = std::move(*buffer);
    Expected<Mr> mr = device.RegisterMemory(pd_.get(), buffer_->bytes(), IBV_ACCESS_LOCAL_WRITE);
    if (!mr) return Fail(std::move(mr.error()));
    mr_ = std::move(*mr);
    Expected<Cq> cq = device.CreateCq({.cqe = kDepth});
    if (!cq) return Fail(std::move(cq.error()));
    cq_ = std::move(*cq);
    Expected<CreatedQp> qp = device.CreateQp(
        {.pd = pd_.get(), .send_cq = cq_.get(), .recv_cq = cq_.get(), .max_recv_wr = kDepth});
    if (!qp) return Fail(std::move(qp.error()));
    qp_ = std::move(qp->qp);
    return ToInit(device, qp_.get(), Plan{}, stage_->path, 0);
  }

  const CostStage* stage_;
  Pd pd_;
  std::unique_ptr<Buffer> buffer_;
  Mr mr_;
  Cq cq_;
  Qp qp_;
  uint32_t posted_ = 0;
};

Status MeasureReceives(CostMeter& meter, ReceiveQueue& queue, uint32_t count) {
  CostRow row{.point = CostPoint("post_recv", kSweepBytes), .work = count};
  if (count > 1) row.point.post_list = count;
  ibv_sge sge = queue.sge();
  std::vector<ibv_recv_wr> list(count);
  for (uint32_t i = 0; i < count; ++i) {
    list[i] = {
        .wr_id = i, .next = i + 1 < count ? &list[i + 1] : nullptr, .sg_list = &sge, .num_sge = 1};
  }
  ibv_recv_wr* bad = nullptr;
  int result = 0;
  return meter.Measure(
      row, [&] { return queue.MakeRoom(count); },
      [&] { result = ibv_post_recv(queue.qp(), list.data(), &bad); },
      [&]() -> Expected<bool> {
        if (result == 0) return true;
        return Fail(CallError(ErrorClass::kRun, "ibv_post_recv",
                              fmt::format("QP {:#x}", queue.qp()->qp_num), result));
      });
}

}  // namespace

Status MeasurePostSend(CostMeter& meter, const CostStage& stage) {
  Expected<std::unique_ptr<LoopbackPair>> pair =
      LoopbackPair::Create(stage, meter.limits(), {.inline_bytes = stage.inline_bytes});
  if (!pair) return Fail(std::move(pair.error()));
  if (stage.inline_bytes == 0) meter.Skip("post_send inline", "the device takes no inline data");
  for (const bool inline_data : {false, true}) {
    for (const uint32_t bytes : SizesOf(stage.inline_bytes, inline_data)) {
      if (Status status = MeasureList(meter, **pair, bytes, 1, inline_data); !status) return status;
    }
  }
  for (const uint32_t count : kListLengths) {
    if (count == 1) continue;  // among the sizes
    if (Status status = MeasureList(meter, **pair, kSweepBytes, count, false); !status) {
      return status;
    }
  }
  for (const uint32_t period : kSignalPeriods) {
    if (Status status = MeasurePeriod(meter, **pair, period); !status) return status;
  }
  return {};
}

Status MeasureExtendedPost(CostMeter& meter, const CostStage& stage) {
  Expected<std::unique_ptr<LoopbackPair>> pair = LoopbackPair::Create(
      stage, meter.limits(), {.inline_bytes = stage.inline_bytes, .extended = true});
  if (!pair) return Fail(std::move(pair.error()));
  ibv_qp_ex* const qp = stage.device.Extended((*pair)->qp());
  if (qp == nullptr) {
    meter.Skip("ibv_wr", "this device makes no QPs with ibv_wr_*");
    return {};
  }
  for (const uint32_t count : {1U, kPollBatch}) {
    if (Status status = MeasureBatch(meter, **pair, *qp, count, /*inline_data=*/false); !status) {
      return status;
    }
  }
  // Last: where it fails the queue pair is of no more use.
  return stage.inline_bytes < kSweepBytes ? Status() : MeasureInlineBatch(meter, **pair, *qp);
}

Status MeasurePostReceive(CostMeter& meter, const CostStage& stage) {
  Expected<ReceiveQueue> queue = ReceiveQueue::Create(stage);
  if (!queue) return Fail(std::move(queue.error()));
  for (const uint32_t count : kReceiveLists) {
    if (Status status = MeasureReceives(meter, *queue, count); !status) return status;
  }
  return {};
}

}  // namespace verbscope
