#include "core/scenario/expectations.h"

#include <algorithm>
#include <array>

namespace verbscope {
namespace {

constexpr std::array kDeviations = {
    Deviation{.device_kind = "rxe",
              .rule = kTooLong,
              .observed = "requester REM_OP_ERR, responder LOC_QP_OP_ERR",
              .why = "rxe finds the length only while it copies, and calls every failure of that a "
                     "failed operation (drivers/infiniband/sw/rxe/rxe_resp.c)"},
    Deviation{.device_kind = "rxe",
              .rule = kLateReceive,
              .observed = "no completion",
              .why =
                  "a receive is posted to rxe without a call into the kernel, where nobody looks "
                  "at the queue of a queue pair in error again (providers/rxe/rxe.c); it rescues "
                  "nothing, and a reset drops it"},
    Deviation{.device_kind = "mlx4",
              .rule = kEmptyBadKey,
              .observed = "requester LOC_QP_OP_ERR, responder no completion",
              .why = "mlx4 refuses a READ of nothing (google/rdma-unit-test lists it)"},
};

}  // namespace

std::span<const Deviation> Deviations() { return kDeviations; }

void Judge(std::string_view device_kind, std::string_view rule, CheckRow& row) {
  row.status = row.observed == row.expected ? "pass" : "fail";
  if (row.status == "pass") return;
  const auto listed = std::ranges::find_if(kDeviations, [&](const Deviation& deviation) {
    return deviation.device_kind == device_kind && deviation.rule == rule &&
           deviation.observed == row.observed;
  });
  if (listed == kDeviations.end()) return;
  row.status = "deviation";
  row.why = listed->why;
}

}  // namespace verbscope
