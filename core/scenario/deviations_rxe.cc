// The kernel's software device (drivers/infiniband/sw/rxe, Linux 6.1), and the soft device that
// imitates it.
#include <array>

#include "core/scenario/deviations.h"
#include "core/scenario/expectations.h"

namespace verbscope {
namespace {

constexpr const char* kReceiveMemory =
    "rxe calls a receive's memory that it cannot write into a failed operation, whatever was wrong "
    "with it (drivers/infiniband/sw/rxe/rxe_resp.c)";

constexpr const char* kSendMemory =
    "rxe calls it a failed operation when it cannot read what is to be sent "
    "(drivers/infiniband/sw/rxe/rxe_req.c)";

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
    Deviation{.rule = "errors/receive-key",
              .observed = "requester REM_OP_ERR, responder LOC_QP_OP_ERR",
              .why = kReceiveMemory},
    Deviation{.rule = "pd/foreign-receive",
              .observed = "requester REM_OP_ERR, responder LOC_QP_OP_ERR",
              .why = kReceiveMemory},
    Deviation{.rule = "access/receive-into-read-only",
              .observed = "requester REM_OP_ERR, responder LOC_QP_OP_ERR",
              .why = kReceiveMemory},
    Deviation{.rule = "errors/local-key",
              .observed = "requester LOC_QP_OP_ERR, responder no completion",
              .why = kSendMemory},
    Deviation{.rule = "pd/foreign-lkey",
              .observed = "requester LOC_QP_OP_ERR, responder no completion",
              .why = kSendMemory},
    Deviation{.rule = "atomics/unaligned",
              .observed = "refused by the post, 40 is stored",
              .why = "rxe's library looks at the address of an Atomic when it is posted "
                     "(providers/rxe/rxe.c)"},
    Deviation{.rule = "async/access-error",
              .observed = "no event",
              .why = "rxe fails the queue pair of a peer's bad request without an event (Linux "
                     "6.1, drivers/infiniband/sw/rxe/rxe_resp.c)"},
};

}  // namespace

std::span<const Deviation> RxeDeviations() { return kDeviations; }

}  // namespace verbscope
