#include "core/checks/behaviours.h"

#include <array>

namespace verbscope {
namespace {

constexpr std::array kBehaviours = {
    // A: objects and connection.
    Behaviour{"A1", "a device is opened, PD, MR, channel, CQ and QP are made, a QP goes to INIT",
              "check qp-states, check limits"},
    Behaviour{"A2", "QPN, PSN, LID or GID and MTU are exchanged over TCP, then RTR and RTS",
              "send-lat, check qp-states"},
    Behaviour{"A3", "a CQ is armed and receives are posted before the peer may send",
              "send-lat, check comp-channel"},
    Behaviour{"A4", "a post that succeeds is not done: the completion tells the outcome",
              "check post-vs-complete"},
    Behaviour{"A5", "objects go in reverse order, and what is in use stays", "check teardown"},
    // B: sending.
    Behaviour{"B1", "SEND, WRITE, READ and Atomics put data where they should",
              "check data-placement, check scatter-gather, check mtu, check atomics, send-lat, "
              "write-lat, read-lat, atomic-lat, send-bw, write-bw, read-bw"},
    Behaviour{"B2", "inline data is copied at the post and needs no lkey",
              "check inline, verb-cost"},
    Behaviour{"B3", "of a list with a request that is refused those before it are posted",
              "check bad-wr, verb-cost"},
    Behaviour{"B4", "a signalled completion stands for the unsignalled before it",
              "check selective-signal, verb-cost"},
    Behaviour{"B5", "what a post costs", "verb-cost"},
    Behaviour{"B6", "a buffer is the device's until its completion", "check ownership"},
    Behaviour{"B7", "a fence waits for READs and Atomics; a solicited message wakes",
              "check fence, check solicited"},
    Behaviour{"B8", "requests of a QP complete in the order of posting", "check ordering"},
    Behaviour{"B9", "keys, rights, bounds and protection domains guard memory",
              "check access, check bounds, check pd"},
    // C: receiving.
    Behaviour{"C1", "a SEND takes one receive, in order, with its length", "check recv, send-lat"},
    Behaviour{"C2", "a WRITE with immediate takes one receive, other one-sided requests none",
              "check write-imm, imm"},
    Behaviour{"C3", "immediate data is in network order and valid with its flag only",
              "check imm, imm"},
    Behaviour{"C4", "a receive without capacity is valid", "check zero-length, zero-len-recv"},
    Behaviour{"C5", "a receive without capacity takes no data", "check zero-length, zero-len-recv"},
    Behaviour{"C6", "an empty receive queue is answered with RNR NAK, by timer and retries",
              "check rnr, rnr-test"},
    Behaviour{"C7", "of a list of receives those before a bad one are posted", "check bad-wr"},
    Behaviour{"C8", "a receive buffer is the device's until its completion", "check ownership"},
    Behaviour{"C9", "several QPs take their receives from one queue with a limit event",
              "check srq"},
    // D: completion queues.
    Behaviour{"D1", "fields of a completion are valid by status, opcode and flags",
              "check wc-fields"},
    Behaviour{"D2", "several QPs and several threads share a CQ and nothing is lost",
              "check shared-cq, check cq-threads, cq-scale"},
    Behaviour{"D3", "a CQ has a capacity, and overruns", "check overrun, cq-overrun, cq-scale"},
    Behaviour{"D4", "a CQ for each thread scales", "cq-scale"},
    Behaviour{"D5", "events can be held back by count and time", "event-vs-poll"},
    Behaviour{"D6", "who owns the CQs, QPs and MRs of a host", "devices"},
    // E: events.
    Behaviour{"E1", "a channel is a descriptor that carries the events of its CQs",
              "check comp-channel"},
    Behaviour{"E2", "arming is for one event; arm, wait, acknowledge, arm, drain loses nothing",
              "check event-race, event-vs-poll"},
    Behaviour{"E3", "a channel that does not block says EAGAIN", "check comp-channel"},
    Behaviour{"E4", "arming for solicited completions only", "check solicited, event-vs-poll"},
    Behaviour{"E5", "events cost latency and save CPU", "event-vs-poll"},
    Behaviour{"E6", "which verbs enter the kernel", "verb-cost"},
    Behaviour{"E7", "a channel goes after its CQs", "check teardown"},
    Behaviour{"E8", "a completion vector's interrupts have a core", "event-vs-poll"},
    // F: failures.
    Behaviour{"F1", "posting fails by return value, execution by status",
              "check bad-wr, check errors"},
    Behaviour{"F2", "each failure has its pair of statuses", "check errors"},
    Behaviour{"F3", "after a failure the rest is flushed in order, and a reset makes a QP new",
              "check flush"},
    Behaviour{"F4", "the first failure is told, not the flushes behind it", "send-lat"},
    Behaviour{"F5", "asynchronous events tell of QPs and CQs in error", "check async"},
};

}  // namespace

std::span<const Behaviour> Behaviours() { return kBehaviours; }

}  // namespace verbscope
