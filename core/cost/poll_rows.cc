// Polling: ibv_poll_cq and ibv_start_poll, of an empty CQ and of one with completions.
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "core/cost/verb_rows.h"

namespace verbscope {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kFirstSettle = std::chrono::microseconds(1);
constexpr nanoseconds kLongestSettle = std::chrono::milliseconds(4);

// Makes `count` completions ready without looking at the CQ, which would take them: it waits, and
// waits longer when a call has found too few.
class Completions {
 public:
  Completions(LoopbackPair& pair, uint32_t count) : pair_(pair), count_(count) {}

  Status Prepare() {
    ibv_send_wr* bad = nullptr;
    ibv_send_wr* const list = pair_.Writes(count_, kSweepBytes, 0, /*signal_all=*/true);
    Status status = pair_.Posted(ibv_post_send(pair_.qp(), list, &bad), "ibv_post_send");
    if (status) pair_.Settle(settle_);
    return status;
  }

  // Whether the call found all of them; takes what is left.
  Expected<bool> Finish(int found) {
    if (found < 0) return Fail(pair_.Posted(-found, "ibv_poll_cq").error());
    const auto got = static_cast<uint32_t>(found);
    if (got == count_) return true;
    settle_ = std::min(2 * settle_, kLongestSettle);
    if (Status status = pair_.Drain(count_ - got); !status) return Fail(std::move(status.error()));
    return false;
  }

 private:
  LoopbackPair& pair_;
  const uint32_t count_;
  nanoseconds settle_ = kFirstSettle;
};

CostRow RowFor(const char* op, uint32_t completions) {
  CostRow row{.point = CostPoint(op, completions > 0 ? kSweepBytes : 0)};
  if (completions == 0) {
    row.point.variant = "empty";
  } else {
    row.work = completions;
    row.point.variant =
        std::to_string(completions) + (completions == 1 ? " completion" : " completions");
  }
  return row;
}

Status MeasureFullPoll(CostMeter& meter, LoopbackPair& pair, uint32_t count) {
  Completions completions(pair, count);
  std::array<ibv_wc, kPollBatch> found = {};
  int got = 0;
  return meter.Measure(
      RowFor("poll_cq", count), [&] { return completions.Prepare(); },
      [&] { got = ibv_poll_cq(pair.send_cq(), static_cast<int>(count), found.data()); },
      [&]() -> Expected<bool> {
        for (int i = 0; i < got; ++i) {
          if (Status status = pair.Judge(found[static_cast<size_t>(i)]); !status) {
            return Fail(std::move(status.error()));
          }
        }
        return completions.Finish(got);
      });
}

Status MeasureEmptyPoll(CostMeter& meter, LoopbackPair& pair) {
  ibv_wc none = {};
  int got = 0;
  return meter.Measure(
      RowFor("poll_cq", 0), [] { return Status(); },
      [&] { got = ibv_poll_cq(pair.idle_cq(), 1, &none); },
      [&]() -> Expected<bool> { return got == 0; });
}

// What a program does with the extended interface: start, one step per completion, end. `got`: how
// many it has seen.
int TakeAll(ibv_cq_ex* cq, int wanted, ibv_wc_status& status) {
  ibv_poll_cq_attr attributes = {};
  if (ibv_start_poll(cq, &attributes) != 0) return 0;
  int got = 1;
  status = cq->status;
  while (got < wanted && ibv_next_poll(cq) == 0) {
    if (cq->status != IBV_WC_SUCCESS) status = cq->status;
    ++got;
  }
  ibv_end_poll(cq);
  return got;
}

Status MeasureFullStartPoll(CostMeter& meter, LoopbackPair& pair, ibv_cq_ex* cq, uint32_t count) {
  Completions completions(pair, count);
  ibv_wc_status status = IBV_WC_SUCCESS;
  int got = 0;
  return meter.Measure(
      RowFor("start_poll", count), [&] { return completions.Prepare(); },
      [&] { got = TakeAll(cq, static_cast<int>(count), status); },
      [&]() -> Expected<bool> {
        ibv_wc last = {};
        last.status = status;
        last.qp_num = pair.qp()->qp_num;
        if (Status judged = pair.Judge(last); !judged) return Fail(std::move(judged.error()));
        return completions.Finish(got);
      });
}

Status MeasureEmptyStartPoll(CostMeter& meter, ibv_cq_ex* cq) {
  ibv_poll_cq_attr attributes = {};
  int result = 0;
  return meter.Measure(
      RowFor("start_poll", 0), [] { return Status(); },
      [&] { result = ibv_start_poll(cq, &attributes); },
      [&]() -> Expected<bool> {
        if (result == 0) ibv_end_poll(cq);  // what it found was not to be there
        return result != 0;
      });
}

}  // namespace

Status MeasurePollCq(CostMeter& meter, const CostStage& stage) {
  Expected<std::unique_ptr<LoopbackPair>> pair = LoopbackPair::Create(stage, meter.limits(), {});
  if (!pair) return Fail(std::move(pair.error()));
  Status status = MeasureEmptyPoll(meter, **pair);
  if (status) status = MeasureFullPoll(meter, **pair, 1);
  if (status) status = MeasureFullPoll(meter, **pair, kPollBatch);
  return status;
}

Status MeasureStartPoll(CostMeter& meter, const CostStage& stage) {
  Expected<std::unique_ptr<LoopbackPair>> pair =
      LoopbackPair::Create(stage, meter.limits(), {.extended = true});
  if (!pair) return Fail(std::move(pair.error()));
  ibv_cq_ex* const cq = stage.device.Extended((*pair)->send_cq());
  ibv_cq_ex* const idle = stage.device.Extended((*pair)->idle_cq());
  if (cq == nullptr || idle == nullptr) {
    meter.Skip("start_poll", "this device makes no CQs with ibv_start_poll");
    return {};
  }
  Status status = MeasureEmptyStartPoll(meter, idle);
  if (status) status = MeasureFullStartPoll(meter, **pair, cq, 1);
  if (status) status = MeasureFullStartPoll(meter, **pair, cq, kPollBatch);
  return status;
}

}  // namespace verbscope
