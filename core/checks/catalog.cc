#include "core/checks/catalog.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "core/checks/agent.h"
#include "core/checks/behaviours.h"
#include "core/checks/bodies.h"
#include "core/plan/check_plan.h"
#include "core/scenario/attempt.h"
#include "core/scenario/cq_threads.h"
#include "core/scenario/expectations.h"
#include "core/scenario/lists.h"

namespace verbscope {
namespace {

// Messages, keys and receives of no length.
std::vector<Scenario> ZeroLength(const Plan& /*plan*/) {
  constexpr const char* kKeys = "IBTA vol. 1, C9-88: the R_Key of nothing is not validated";
  constexpr const char* kLength = "IBTA vol. 1, 9.9.3: local length error, invalid request";
  return {
      Attempt({.name = "zero-length/send",
               .opcode = IBV_WR_SEND,
               .receive_bytes = 0,
               .responder = IBV_WC_SUCCESS,
               .source = kLength}),
      Attempt({.name = "zero-length/write", .opcode = IBV_WR_RDMA_WRITE, .source = kKeys}),
      Attempt({.name = "zero-length/read", .opcode = IBV_WR_RDMA_READ, .source = kKeys}),
      Attempt({.name = "zero-length/write-wrong-rkey",
               .opcode = IBV_WR_RDMA_WRITE,
               .bad_rkey = true,
               .rule = kEmptyBadKey,
               .source = kKeys}),
      Attempt({.name = "zero-length/read-wrong-rkey",
               .opcode = IBV_WR_RDMA_READ,
               .bad_rkey = true,
               .rule = kEmptyBadKey,
               .source = kKeys}),
      Attempt({.name = "zero-length/no-room",
               .opcode = IBV_WR_SEND,
               .size_bytes = 1,
               .receive_bytes = 0,
               .requester = IBV_WC_REM_INV_REQ_ERR,
               .responder = IBV_WC_LOC_LEN_ERR,
               .rule = kTooLong,
               .source = kLength}),
  };
}

std::vector<Scenario> Threads(const Plan& /*plan*/) { return {CqThreads()}; }

std::vector<Scenario> Overrun(const Plan& plan) {
  std::vector<Scenario> scenarios = CqOverrunScenarios(plan);
  for (Scenario& scenario : scenarios) scenario.name = "overrun/" + scenario.name;
  return scenarios;
}

constexpr std::array kDefinitions = {
    CheckDefinition{
        .name = "qp-states",
        .does = "moves a QP along the transitions that are allowed and some that are not, leaves "
                "out required attributes, posts in INIT, breaks and reuses a QP",
        .expect = "allowed transitions with their attributes work, all others are refused and "
                  "change nothing; receives may be posted from INIT on, sends from RTS on",
        .source = "ibv_modify_qp(3); IBTA vol. 1, 10.3.1, C10-96",
        .run = QpStates},
    CheckDefinition{.name = "teardown",
                    .does = "destroys a PD, a CQ and a channel while something uses them, then all "
                            "objects in reverse order",
                    .expect = "EBUSY while in use, success in reverse order of creation",
                    .source = "ibv_dealloc_pd(3), ibv_destroy_cq(3), "
                              "ibv_destroy_comp_channel(3)",
                    .run = Teardown},
    CheckDefinition{.name = "limits",
                    .does = "makes CQs and QPs at the limits that the device states, and above",
                    .expect = "what the device states can be made, more is refused",
                    .source = "ibv_query_device(3), ibv_create_cq(3), ibv_create_qp(3)",
                    .run = Limits},
    CheckDefinition{.name = "post-vs-complete",
                    .does = "posts a request that must fail, and one whose receiver is not ready",
                    .expect = "a post that returns 0 says nothing of the outcome, which the "
                              "completion alone tells, and not before it is known",
                    .source = "ibv_post_send(3), ibv_poll_cq(3)",
                    .run = PostVsComplete},
    CheckDefinition{.name = "inline",
                    .does = "changes a buffer right after posting it inline while the receiver is "
                            "not ready, posts inline with a wrong lkey, and above the limit",
                    .expect = "the bytes at posting arrive, no lkey is looked at, above the limit "
                              "the post is refused",
                    .source = "ibv_post_send(3): IBV_SEND_INLINE",
                    .run = Inline},
    CheckDefinition{.name = "bad-wr",
                    .does = "posts lists with a request that must be refused, and a list longer "
                            "than its queue",
                    .expect = "an errno, bad_wr at the first request that was not posted, those "
                              "before it run",
                    .source = "ibv_post_send(3), ibv_post_recv(3)",
                    .run = BadWr},
    CheckDefinition{.name = "selective-signal",
                    .does = "sends 8 messages of which the last is signalled, then an unsignalled "
                            "request that fails, then on a QP that signals all",
                    .expect = "one completion that stands for all before it; what fails completes "
                              "always; sq_sig_all signals each",
                    .source = "ibv_create_qp(3): sq_sig_all; IBTA vol. 1, 10.7.3.1",
                    .run = SelectiveSignal},
    CheckDefinition{.name = "recv",
                    .does = "sends three messages of different length to four receives",
                    .expect = "each takes one receive in order, byte_len is its length",
                    .source = "ibv_post_recv(3), ibv_poll_cq(3)",
                    .run = Recv},
    CheckDefinition{.name = "data-placement",
                    .does = "moves data by WRITE, READ and SEND between guard bytes",
                    .expect = "every byte in its place, none beyond it, and only the SEND takes a "
                              "receive",
                    .source = "IBTA vol. 1, 9.4",
                    .run = DataPlacement},
    CheckDefinition{.name = "scatter-gather",
                    .does = "gathers a message from three SGEs and scatters it over three, one of "
                            "them empty",
                    .expect = "the bytes in the order of the lists",
                    .source = "ibv_post_send(3), ibv_post_recv(3)",
                    .run = ScatterGather},
    CheckDefinition{.name = "mtu",
                    .does = "moves messages of 1 byte and around one and three path MTUs by SEND, "
                            "WRITE and READ",
                    .expect = "every byte in its place, none beyond it",
                    .source = "IBTA vol. 1, 9.2: first, middle, last and only packets",
                    .run = MtuSizes},
    CheckDefinition{.name = "write-imm",
                    .does = "writes with and without immediate data",
                    .expect = "with: one receive taken, its buffer untouched, opcode "
                              "RECV_RDMA_WITH_IMM, the written length, data at the address; "
                              "without: none taken",
                    .source = "ibv_post_send(3), ibv_poll_cq(3)",
                    .run = WriteImm},
    CheckDefinition{.name = "imm",
                    .does = "sends immediate data of known bytes, and a message without any",
                    .expect = "the value in network order, and the flag only where there is one",
                    .source = "ibv_poll_cq(3): imm_data, IBV_WC_WITH_IMM",
                    .run = ImmOrder},
    CheckDefinition{.name = "zero-length",
                    .does = "sends, writes and reads nothing, also with a wrong rkey, and sends a "
                            "byte to a receive without room",
                    .expect = "nothing can be moved and its key is not looked at; a byte without "
                              "room is a length error",
                    .source = "ibv_post_recv(3); IBTA vol. 1, C9-88, 9.9.3",
                    .scenarios = ZeroLength},
    CheckDefinition{.name = "ordering",
                    .does = "mixes 32 requests of all kinds, reads behind a WRITE, and looks at "
                            "written data when the message behind it has come",
                    .expect = "completions in the order of posting on both sides; what is behind a "
                              "WRITE sees it",
                    .source = "IBTA vol. 1, 9.5, 10.8.3.3",
                    .run = Ordering},
    CheckDefinition{.name = "wc-fields",
                    .does = "compares the fields of completions, also of a failed one",
                    .expect = "opcode, byte_len, all 64 bits of wr_id, qp_num; of a failure "
                              "status, wr_id and qp_num",
                    .source = "ibv_poll_cq(3)",
                    .run = WcFields},
    CheckDefinition{.name = "access",
                    .does = "tries WRITE, READ and Atomic with and without the right in region and "
                            "QP, and local memory that must not be written",
                    .expect = "both must allow it; memory that is only sent needs no right",
                    .source = "ibv_reg_mr(3), ibv_modify_qp(3); IBTA vol. 1, 10.6.3",
                    .run = Access},
    CheckDefinition{.name = "bounds",
                    .does = "touches the last bytes of a region, one byte beyond and one before",
                    .expect = "inside works, everything else is an access or protection error",
                    .source = "IBTA vol. 1, 10.6.3.2, 9.7.5.2",
                    .run = Bounds},
    CheckDefinition{.name = "pd",
                    .does = "uses keys of a region that is in another protection domain",
                    .expect = "an lkey is a protection error, an rkey an access error",
                    .source = "IBTA vol. 1, 10.2.3, 10.6.3",
                    .run = ProtectionDomains},
    CheckDefinition{.name = "atomics",
                    .does = "adds and compares, with wrap-around, and at an odd address",
                    .expect = "the old value comes back, the right one is stored; unaligned is an "
                              "invalid request",
                    .source = "IBTA vol. 1, 9.4.5, C9-192",
                    .run = Atomics},
    CheckDefinition{.name = "shared-cq",
                    .does = "lets two QPs complete into one CQ in turn",
                    .expect = "each QP's completions in order, under its own qp_num",
                    .source = "ibv_create_qp(3), ibv_poll_cq(3)",
                    .run = SharedCq},
    CheckDefinition{.name = "cq-threads",
                    .does = "lets several threads poll and arm one CQ of many QPs",
                    .expect = "each completion is taken once",
                    .source = "ibv_poll_cq(3), ibv_req_notify_cq(3)",
                    .scenarios = Threads},
    CheckDefinition{.name = "srq",
                    .does = "receives from a shared queue, lets it fall below its limit, posts to "
                            "the QP's own queue",
                    .expect = "messages take its receives, one event when fewer than the limit are "
                              "left, the own queue is refused",
                    .source = "ibv_modify_srq(3), ibv_post_srq_recv(3)",
                    .run = SharedReceiveQueue},
    CheckDefinition{.name = "comp-channel",
                    .does = "looks at a channel that is empty, not armed, shared by two CQs, "
                            "copied by dup, and at one of another CQ; asks for one without a "
                            "descriptor left",
                    .expect = "EAGAIN when empty, no event unless armed, each event names its CQ "
                              "and comes to its channel only, EMFILE without descriptors",
                    .source = "ibv_create_comp_channel(3), ibv_get_cq_event(3)",
                    .run = CompletionChannel},
    CheckDefinition{.name = "event-race",
                    .does = "arms before, between and behind completions, and 100 rounds of arm, "
                            "wait, acknowledge, arm, drain",
                    .expect = "one event for one arm, none for what was polled before it, and no "
                              "completion is ever left lying",
                    .source = "ibv_get_cq_event(3), ibv_req_notify_cq(3)",
                    .run = EventRace},
    CheckDefinition{.name = "solicited",
                    .does = "arms for solicited completions and sends ordinary, solicited and "
                            "failing ones",
                    .expect = "solicited and failed completions wake, ordinary ones do not; an arm "
                              "for any is not narrowed",
                    .source = "ibv_req_notify_cq(3); IBTA vol. 1, 11.4.2.2",
                    .run = Solicited},
    CheckDefinition{.name = "errors",
                    .does = "uses wrong keys, a receive that is too short and a peer that does not "
                            "answer",
                    .expect = "the right pair of statuses on both sides",
                    .source = "IBTA vol. 1, 9.9.3, 11.6.2",
                    .run = Errors},
    CheckDefinition{.name = "flush",
                    .does = "breaks a QP with requests behind the failing one, posts to it, resets "
                            "and reuses it",
                    .expect = "WR_FLUSH_ERR for all that follow, in order, on both queues; a reset "
                              "makes it new",
                    .source = "IBTA vol. 1, 10.3.1; ibv_modify_qp(3)",
                    .run = FlushCheck},
    CheckDefinition{.name = "async",
                    .does = "writes with a wrong rkey, and listens at the responder",
                    .expect = "QP_ACCESS_ERR at the responder; no event without a fault",
                    .source = "ibv_get_async_event(3); IBTA vol. 1, 11.6.3",
                    .run = AsyncCheck},
    CheckDefinition{.name = "rnr",
                    .does = "sends to a receiver without receives: few retries, without end, and "
                            "one that gets ready",
                    .expect = "RNR_RETRY_EXC_ERR when retries are used up, 7 is without end, a "
                              "receive in time rescues the message",
                    .source = "ibv_modify_qp(3): min_rnr_timer, rnr_retry; IBTA vol. 1, 9.7.5.2.8",
                    .run = NotReady},
    CheckDefinition{.name = "ownership",
                    .does = "loses the first transmission and changes the buffer before the second",
                    .expect = "the buffer is the device's until the completion: the second "
                              "transmission carries the new bytes",
                    .source = "ibv_post_send(3): the buffer may be used again when the request is "
                              "completed",
                    .run = Ownership},
    CheckDefinition{.name = "fence",
                    .does = "sends memory that a READ in front of it, whose response is lost once, "
                            "is still to fill",
                    .expect = "without a fence the old bytes go, with one the new",
                    .source = "ibv_post_send(3): IBV_SEND_FENCE; IBTA vol. 1, 10.8.3.3",
                    .run = Fence},
    CheckDefinition{.name = "overrun",
                    .does = "fills CQs that are too small, by sends and by receives, recovers, and "
                            "avoids it",
                    .expect = "CQ_ERR, QPs in error, nothing that is delivered is wrong; a CQ "
                              "that has room loses nothing",
                    .source = "ibv_get_async_event(3); IBTA vol. 1, 11.6.3.1",
                    .scenarios = Overrun},
};

constexpr bool NamesAgree() {
  if (kDefinitions.size() != kCheckNames.size()) return false;
  for (size_t i = 0; i < kDefinitions.size(); ++i) {
    if (kDefinitions[i].name != kCheckNames[i]) return false;
  }
  return true;
}
static_assert(NamesAgree(), "core/plan/check_plan.h lists the names of all checks, in order");

}  // namespace

std::span<const CheckDefinition> CheckDefinitions() { return kDefinitions; }

const CheckDefinition* FindCheck(std::string_view name) {
  const auto* const found = std::ranges::find(kDefinitions, name, &CheckDefinition::name);
  return found == kDefinitions.end() ? nullptr : found;
}

std::vector<CatalogRow> CheckCatalog() {
  std::vector<CatalogRow> rows;
  for (const CheckDefinition& check : kDefinitions) {
    rows.push_back({std::string(check.name), std::string(check.does), std::string(check.expect),
                    std::string(check.source)});
  }
  return rows;
}

std::vector<BehaviourRow> BehaviourRows() {
  std::vector<BehaviourRow> rows;
  for (const Behaviour& behaviour : Behaviours()) {
    BehaviourRow row{.id = std::string(behaviour.id), .behaviour = std::string(behaviour.text)};
    std::string_view rest = behaviour.shown_by;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(", "), rest.size());
      row.shown_by.emplace_back(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 2, rest.size()));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Scenario> CheckScenarios(const Plan& plan) {
  std::vector<Scenario> scenarios;
  for (const CheckDefinition& check : kDefinitions) {
    const bool asked =
        plan.checks.empty() || std::ranges::find(plan.checks, check.name) != plan.checks.end();
    if (!asked) continue;
    if (check.scenarios != nullptr) {
      std::ranges::move(check.scenarios(plan), std::back_inserter(scenarios));
      continue;
    }
    scenarios.push_back({.name = std::string(check.name),
                         .requester =
                             [run = check.run](Stage& stage) {
                               Trial trial(stage);
                               run(trial);
                               return trial.Finish();
                             },
                         .responder = ServeCheck});
  }
  return scenarios;
}

}  // namespace verbscope
