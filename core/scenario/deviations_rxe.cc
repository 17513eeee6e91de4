// The kernel's software device (drivers/infiniband/sw/rxe, Linux 6.1), and the soft device that
// imitates it.
#include <array>

#include "core/scenario/deviations.h"
#include "core/scenario/expectations.h"

namespace verbscope {
namespace {

constexpr std::array kDeviations = {
    Deviation{.rule = kTooLong,
              .observed = "requester REM_OP_ERR, responder LOC_QP_OP_ERR",
              .why = "rxe finds the length only while it copies, and calls every failure of that a "
                     "failed operation (drivers/infiniband/sw/rxe/rxe_resp.c)"},
    Deviation{.rule = kLateReceive,
              .observed = "no completion",
              .why =
                  "a receive is posted to rxe without a call into the kernel, where nobody looks "
                  "at the queue of a queue pair in error again (providers/rxe/rxe.c); it rescues "
                  "nothing, and a reset drops it"},
    Deviation{.rule = kSendOverrun,
              .observed = "CQ_ERR, the oldest completions delivered in order, the rest lost, QP in "
                          "RTS, the CQ goes on",
              .why = "rxe raises CQ_ERR for every completion that finds its CQ full and forgets "
                     "it; only a receive's loss fails the queue pair, a send's is ignored "
                     "(drivers/infiniband/sw/rxe/rxe_cq.c, rxe_comp.c)"},
};

}  // namespace

std::span<const Deviation> RxeDeviations() { return kDeviations; }

}  // namespace verbscope
