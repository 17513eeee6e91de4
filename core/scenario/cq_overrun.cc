// `cq-overrun`: a completion queue with less room than completions that nobody takes. What the
// device says of it, what is lost, how to come back, and the two ways in which it cannot happen.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/causes/completion_status.h"
#include "core/loops/wr_id.h"
#include "core/plan/cq_plan.h"
#include "core/record/record_json.h"
#include "core/scenario/lists.h"
#include "core/scenario/cq_overrun_steps.h"
#include "core/scenario/expectations.h"

namespace verbscope {
namespace {

constexpr const char* kOverrunSource =
    "IBTA vol. 1, 10.2.1, 11.6.3: a CQ that overruns is in error, an affiliated asynchronous event "
    "says so, and its queue pairs fail; ibv_get_async_event(3): IBV_EVENT_CQ_ERR";
constexpr const char* kRoomSource =
    "ibv_create_cq(3): room for cqe entries; so many completions outstanding cannot overrun it";
// Requests that get no answer, since the peer's queue pair failed, are given up soon.
constexpr uint32_t kRetryCount = 1;
constexpr uint32_t kWindow = 32;  // CQ entries of a connection that works again

template <class Run>
Scenario BothSides(std::string name, Run run) {
  return {.name = std::move(name), .requester = run, .responder = run};
}

// A queue pair whose queues hold more than its CQ.
QpSetOptions TooSmallCq(const Stage& stage) {
  return {.cqe = kOverrunCqe, .beyond_cqe = kOverrunExtra + 1, .size_bytes = stage.size_bytes()};
}

tl::unexpected<Error> PostFailed(const char* call, uint64_t number, int refused) {
  return Fail(CallError(ErrorClass::kRun, call, fmt::format("request {}", number), refused));
}

Status PostSends(QpSet& set, ibv_wr_opcode opcode, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if (const int refused = set.PostSend(0, opcode, MakeWrId(WrKind::kSend, 0, i)); refused != 0) {
      return PostFailed("ibv_post_send", i, refused);
    }
  }
  return {};
}

CheckRow OverrunRow(const Stage& stage, std::string_view device_kind, std::string_view rule,
                    const Overrun& overrun) {
  CheckRow row{.name = stage.name(), .source = kOverrunSource};
  row.expected = "CQ_ERR, the oldest completions delivered in order, the rest lost, QP in ERR";
  if (overrun.metrics.cq_usable) row.expected += ", the CQ is dead";
  row.observed = OverrunText(overrun);
  Judge(device_kind, rule, row);
  // Whatever a table says: what is lost without a word is never right.
  if (overrun.metrics.lost > 0 && overrun.metrics.event.empty()) row.status = "fail";
  row.observed += fmt::format("; {}", NumbersText(overrun.metrics));
  return row;
}

// The requester's own WRITEs complete into a CQ that nobody polls.
Status OverrunBySends(Stage& stage) {
  stage.ExpectCqEvents();
  Expected<QpSet*> set = stage.MakeQpSet(TooSmallCq(stage));
  if (!set) return Fail(std::move(set.error()));
  if (Status status = (*set)->Connect(); !status) return status;
  if (stage.requester()) {
    const uint64_t outstanding = uint64_t{(*set)->cqe()} + kOverrunExtra;
    if (Status status = PostSends(**set, IBV_WR_RDMA_WRITE, outstanding); !status) return status;
    Expected<Overrun> overrun = TakeOverrun(stage, **set, /*receives=*/false, outstanding);
    if (!overrun) return Fail(std::move(overrun.error()));
    stage.Check(OverrunRow(stage, stage.requester_kind(), kSendOverrun, *overrun));
    KeepOverrun(stage, "write", 1, "overrun by sends", std::move(overrun->metrics));
  }
  return stage.Meet("overrun");
}

// How the requester's sends ended whose receives overran the other side's CQ. Their own CQ has
// room: one that does not come at all was lost, and that is `wrong`.
struct SendsEnd {
  std::string text = {};
  bool wrong = false;
};

Expected<SendsEnd> ReapSends(Stage& stage, QpSet& set, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    Expected<std::optional<ibv_wc>> wc = stage.Await(set.cq(), stage.CompletionLimit());
    if (!wc) return Fail(std::move(wc.error()));
    if (!*wc) return SendsEnd{fmt::format("{} SUCCESS, then nothing", i), true};
    if ((*wc)->wr_id != MakeWrId(WrKind::kSend, 0, i)) {
      return SendsEnd{fmt::format("{} SUCCESS, then wr_id 0x{:016x}", i, (*wc)->wr_id), true};
    }
    if ((*wc)->status == IBV_WC_SUCCESS) continue;
    return SendsEnd{fmt::format("{} SUCCESS, then {}", i, NameOf((*wc)->status)), false};
  }
  return SendsEnd{fmt::format("{} SUCCESS", count), false};
}

SendsEnd SendsEndFromJson(const nlohmann::json& told) {
  const auto text = told.find("text");
  const auto wrong = told.find("wrong");
  if (text == told.end() || !text->is_string() || wrong == told.end() || !wrong->is_boolean()) {
    return {.text = "says nothing", .wrong = true};
  }
  return {.text = Printable(text->get_ref<const std::string&>(), 128), .wrong = wrong->get<bool>()};
}

// The responder's receives complete into a CQ that nobody polls; the requester's CQ is large
// enough.
Status SendToTooSmallCq(Stage& stage) {
  Expected<nlohmann::json> told = stage.Hear();
  if (!told) return Fail(std::move(told.error()));
  const auto count = static_cast<uint32_t>(
      std::min<uint64_t>(told->is_number_unsigned() ? told->get<uint64_t>() : 0, kMaxDepth));
  Expected<QpSet*> set = stage.MakeQpSet({.cqe = std::max(count, 1U),
                                          .send_depth = std::max(count, 1U),
                                          .size_bytes = stage.size_bytes(),
                                          .retry_count = kRetryCount});
  if (!set) return Fail(std::move(set.error()));
  if (Status status = (*set)->Connect(); !status) return status;
  if (Status status = PostSends(**set, IBV_WR_SEND, count); !status) return status;
  Expected<SendsEnd> ended = ReapSends(stage, **set, count);
  if (!ended) return Fail(std::move(ended.error()));
  if (Status status = stage.Tell({{"text", ended->text}, {"wrong", ended->wrong}}); !status) {
    return status;
  }
  return stage.Meet("overrun");
}

Status ReceiveIntoTooSmallCq(Stage& stage) {
  stage.ExpectCqEvents();
  Expected<QpSet*> set = stage.MakeQpSet(TooSmallCq(stage));
  if (!set) return Fail(std::move(set.error()));
  const uint64_t outstanding = uint64_t{(*set)->cqe()} + kOverrunExtra;
  for (uint64_t i = 0; i < outstanding; ++i) {
    const int refused = (*set)->PostReceive(0, MakeWrId(WrKind::kRecv, 0, i));
    if (refused != 0) return PostFailed("ibv_post_recv", i, refused);
  }
  if (Status status = stage.Tell(outstanding); !status) return status;
  if (Status status = (*set)->Connect(); !status) return status;
  Expected<nlohmann::json> ended = stage.Hear();
  if (!ended) return Fail(std::move(ended.error()));
  Expected<Overrun> overrun = TakeOverrun(stage, **set, /*receives=*/true, outstanding);
  if (!overrun) return Fail(std::move(overrun.error()));
  CheckRow row = OverrunRow(stage, stage.responder_kind(), kReceiveOverrun, *overrun);
  const SendsEnd sends = SendsEndFromJson(*ended);
  row.observed += "; requester " + sends.text;
  if (sends.wrong) row.status = "fail";
  stage.Check(std::move(row));
  KeepOverrun(stage, "send", 1, "overrun by receives", std::move(overrun->metrics));
  return stage.Meet("overrun");
}

void CheckPaused(Stage& stage, const Paused& paused, std::string expected, std::string observed,
                 std::string variant) {
  CheckRow row{.name = stage.name(),
               .status = paused.wrong.empty() ? "pass" : "fail",
               .expected = std::move(expected),
               .observed = paused.wrong.empty() ? std::move(observed) : paused.wrong,
               .source = kRoomSource};
  if (!paused.wrong.empty()) row.observed += "; " + NumbersText(paused.metrics);
  stage.Check(std::move(row));
  KeepOverrun(stage, "write", 1, std::move(variant), paused.metrics);
}

// A CQ that overran is of no more use, and a queue pair in error neither: both are destroyed and
// made again, on both sides, since a connection has two ends.
Status Recover(Stage& stage) {
  stage.ExpectCqEvents();
  Expected<QpSet*> broken = stage.MakeQpSet(TooSmallCq(stage));
  if (!broken) return Fail(std::move(broken.error()));
  if (Status status = (*broken)->Connect(); !status) return status;
  std::string before;
  if (stage.requester()) {
    const uint64_t outstanding = uint64_t{(*broken)->cqe()} + kOverrunExtra;
    if (Status status = PostSends(**broken, IBV_WR_RDMA_WRITE, outstanding); !status) {
      return status;
    }
    Expected<std::optional<std::string>> event = stage.AwaitCqEvent(kEventLimit);
    if (!event) return Fail(std::move(event.error()));
    before = event->has_value() ? "CQ_ERR" : "no event";
  }
  if (Status status = stage.Meet("overrun"); !status) return status;
  if (Status status = (*broken)->Close(); !status) return status;
  Expected<QpSet*> fresh =
      stage.MakeQpSet({.cqe = kWindow, .beyond_cqe = 1, .size_bytes = stage.size_bytes()});
  if (!fresh) return Fail(std::move(fresh.error()));
  if (Status status = (*fresh)->Connect(); !status) return status;
  if (stage.requester()) {
    stage.ExpectCqEvents();
    Expected<Paused> paused = WriteWithPauses(stage, **fresh, stage.iterations());
    if (!paused) return Fail(std::move(paused.error()));
    CheckPaused(stage, *paused, "after queue pair and CQ were destroyed and made again, traffic",
                fmt::format("{}, then queue pair and CQ destroyed and made again: {} of {} "
                            "messages completed",
                            before, paused->metrics.delivered, paused->metrics.outstanding),
                "made again");
  }
  return stage.Meet("recovered");
}

// As many messages as overrun the CQ, and more, from a sender that pauses while it is full.
Status Avoid(Stage& stage) {
  stage.ExpectCqEvents();
  Expected<QpSet*> set = stage.MakeQpSet(TooSmallCq(stage));
  if (!set) return Fail(std::move(set.error()));
  if (Status status = (*set)->Connect(); !status) return status;
  if (stage.requester()) {
    const uint64_t messages =
        std::max<uint64_t>(stage.iterations(), uint64_t{(*set)->cqe()} + kOverrunExtra);
    Expected<Paused> paused = WriteWithPauses(stage, **set, messages);
    if (!paused) return Fail(std::move(paused.error()));
    CheckPaused(
        stage, *paused, "nothing lost, no event",
        fmt::format("{} of {} messages completed through a CQ of {} entries; posting "
                    "paused {} times until a completion was taken",
                    paused->metrics.delivered, messages, paused->metrics.cqe, paused->pauses),
        "posts that pause");
  }
  return stage.Meet("avoided");
}

// What one queue pair may have outstanding of each kind so that all of them together fit.
uint64_t PartOf(uint64_t cqe) { return cqe / (uint64_t{kSizingQps} * 2); }

Status FillToTheBrim(QpSet& set, uint64_t part) {
  for (uint32_t qp = 0; qp < set.size(); ++qp) {
    for (uint64_t i = 0; i < part; ++i) {
      const int refused = set.PostSend(qp, IBV_WR_SEND, MakeWrId(WrKind::kSend, qp, i));
      if (refused != 0) return PostFailed("ibv_post_send", i, refused);
    }
  }
  return {};
}

// Takes what is due, in any order between the queues but in order within each.
Expected<std::string> TakeBrim(Stage& stage, QpSet& set, uint64_t part, OverrunMetrics& metrics) {
  std::vector<uint64_t> next(size_t{kSizingQps} * 2, 0);
  while (metrics.delivered < metrics.outstanding) {
    Expected<std::optional<ibv_wc>> wc = stage.Await(set.cq(), stage.CompletionLimit());
    if (!wc) return Fail(std::move(wc.error()));
    if (!*wc) return std::string("a completion did not come");
    const uint64_t wr_id = (*wc)->wr_id;
    const size_t qp = QpIndexOf(wr_id);
    const bool receive = KindOf(wr_id) == WrKind::kRecv;
    if ((*wc)->status == IBV_WC_RETRY_EXC_ERR && qp < set.size()) {
      return Fail(set.Explain(**wc, qp, "SEND", SequenceOf(wr_id) + 1));
    }
    if ((*wc)->status != IBV_WC_SUCCESS) {
      ++metrics.flushed;
      return "status is " + NameOf((*wc)->status);
    }
    ++metrics.delivered;
    const bool ours = qp < set.size() && (receive || KindOf(wr_id) == WrKind::kSend) &&
                      (*wc)->qp_num == set.qp(qp)->qp_num;
    if (!ours || SequenceOf(wr_id) != next[qp * 2 + (receive ? 1 : 0)]++ ||
        SequenceOf(wr_id) >= part) {
      return fmt::format("wr_id 0x{:016x} of qp_num 0x{:x} was not due", wr_id, (*wc)->qp_num);
    }
  }
  return std::string();
}

CheckRow SizingRow(const Stage& stage, const OverrunMetrics& metrics, std::string wrong) {
  if (wrong.empty() && !metrics.event.empty()) wrong = "event " + metrics.event;
  CheckRow row{
      .name = fmt::format("{}-{}", stage.name(), stage.requester() ? "requester" : "responder"),
      .status = wrong.empty() ? "pass" : "fail",
      .expected =
          "a CQ with an entry for every signalled send and every receive of its "
          "queue pairs is filled and does not overrun",
      .source = kRoomSource};
  row.observed =
      wrong.empty()
          ? fmt::format(
                "{} completions of {} queue pairs left in a CQ of {} entries: no event, all "
                "delivered",
                metrics.delivered, kSizingQps, metrics.cqe)
          : fmt::format("{}; {}", wrong, NumbersText(metrics));
  return row;
}

// Both sides send and receive on every queue pair, and nobody polls until all is done.
Status Size(Stage& stage) {
  stage.ExpectCqEvents();
  Expected<QpSet*> made = stage.MakeQpSet(
      {.qps = kSizingQps, .cqe = kSizingCqe, .beyond_cqe = 1, .size_bytes = stage.size_bytes()});
  if (!made) return Fail(std::move(made.error()));
  QpSet& set = **made;
  Expected<nlohmann::json> told = stage.Swap(PartOf(set.cqe()));
  if (!told) return Fail(std::move(told.error()));
  const uint64_t theirs = told->is_number_unsigned() ? told->get<uint64_t>() : 0;
  const uint64_t part = std::min(PartOf(set.cqe()), theirs);
  for (uint32_t qp = 0; qp < kSizingQps; ++qp) {
    for (uint64_t i = 0; i < part; ++i) {
      const int refused = set.PostReceive(qp, MakeWrId(WrKind::kRecv, qp, i));
      if (refused != 0) return PostFailed("ibv_post_recv", i, refused);
    }
  }
  if (Status status = set.Connect(); !status) return status;
  if (Status status = FillToTheBrim(set, part); !status) return status;
  if (Status status = stage.Meet("posted"); !status) return status;
  OverrunMetrics metrics{.cqe = set.cqe()};
  metrics.outstanding = metrics.most_unpolled = part * kSizingQps * 2;
  Expected<std::optional<std::string>> event = stage.AwaitCqEvent(kSettle * 4);
  if (!event) return Fail(std::move(event.error()));
  metrics.event = event->value_or("");
  Expected<std::string> wrong = TakeBrim(stage, set, part, metrics);
  if (!wrong) return Fail(std::move(wrong.error()));
  if (Status status = TakeRest(stage, set, metrics); !status) return status;
  metrics.lost = metrics.outstanding - metrics.delivered - metrics.flushed;
  Expected<ibv_qp_state> state = stage.device().QueryQpState(set.qp());
  if (!state) return Fail(std::move(state.error()));
  metrics.qp_state = QpStateName(*state);
  stage.Check(SizingRow(stage, metrics, std::move(*wrong)));
  KeepOverrun(stage, "send", kSizingQps, "filled to the brim", std::move(metrics));
  return {};
}

}  // namespace

std::vector<Scenario> CqOverrunScenarios(const Plan& /*plan*/) {
  return {BothSides("overrun-by-sends", OverrunBySends),
          {.name = "overrun-by-receives",
           .requester = SendToTooSmallCq,
           .responder = ReceiveIntoTooSmallCq},
          BothSides("recovery", Recover),
          BothSides("avoidance", Avoid),
          BothSides("sizing", Size)};
}

}  // namespace verbscope
