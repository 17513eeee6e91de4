#include "core/checks/agent.h"

#include <fmt/core.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/checks/ask.h"
#include "core/checks/latch.h"
#include "core/checks/local_end.h"

namespace verbscope {
namespace {

Error NoSuchEnd(uint64_t index) {
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message =
      fmt::format("the peer asks for queue pair {} of a check, which is not there", index);
  error.cause = "two versions that do not understand each other";
  error.next_step = "run the same verbscope version on both hosts";
  return error;
}

class Agent {
 public:
  explicit Agent(Stage& stage) : stage_(stage), events_(stage) {}

  Status Serve() {
    for (;;) {
      Expected<nlohmann::json> heard = stage_.Hear();
      if (!heard) return Fail(std::move(heard.error()));
      Expected<Ask> ask = AskFromJson(*heard);
      if (!ask) return Fail(std::move(ask.error()));
      if (ask->call == Call::kDone) return {};
      Expected<Answer> answer = Act(*ask);
      if (!answer) return Fail(std::move(answer.error()));
      if (Status status = stage_.Tell(ToJson(*answer)); !status) return status;
    }
  }

 private:
  Expected<Answer> Act(const Ask& ask) {
    if (ask.call == Call::kMake) return Make(ask.make);
    if (ask.end >= ends_.size()) return Fail(NoSuchEnd(ask.end));
    LocalEnd& end = *ends_[ask.end];
    Answer answer;
    if (ask.call == Call::kConnect) {
      latch_.Keep(end.fresh().Connect());
    } else if (ask.call == Call::kReset) {
      latch_.Keep(end.fresh().Reset());
    } else {
      answer = Do(ask, end);
    }
    if (Status status = latch_.TakeStatus(); !status) return Fail(std::move(status.error()));
    return answer;
  }

  Expected<Answer> Make(const FreshQpOptions& options) {
    if (ends_.size() >= kMaxEnds) return Fail(NoSuchEnd(ends_.size()));
    Expected<FreshQp*> qp = stage_.MakeQp(options);
    // What a device cannot make is the check's to judge.
    if (!qp && qp.error().error_class == ErrorClass::kSetup) {
      return Answer{.text = qp.error().message};
    }
    if (!qp) return Fail(std::move(qp.error()));
    ends_.push_back(std::make_unique<LocalEnd>(stage_, latch_, events_, **qp, /*foreign_rkey=*/0));
    ibv_mr* const foreign = (*qp)->foreign_region();
    return Answer{.value = foreign != nullptr ? foreign->rkey : 0};
  }

  // A failure is in the latch.
  Answer Do(const Ask& ask, LocalEnd& end);

  Stage& stage_;
  Latch latch_;
  AsyncEvents events_;
  std::vector<std::unique_ptr<LocalEnd>> ends_;
};

Answer Found(std::optional<uint64_t> value) {
  return {.value = value.value_or(0), .found = value.has_value()};
}

Answer Agent::Do(const Ask& ask, LocalEnd& end) {
  switch (ask.call) {
    case Call::kPostReceive:
      return {.value = static_cast<uint64_t>(end.PostReceive(ask.receive))};
    case Call::kPostSend:
      return {.value = static_cast<uint64_t>(end.PostSend(ask.send))};
    case Call::kAwaitSend:
      return {.completion = end.AwaitSend(ask.limit)};
    case Call::kAwaitReceive:
      return {.completion = end.AwaitReceive(ask.limit)};
    case Call::kAwaitState:
      return {.value = static_cast<uint64_t>(end.AwaitState(ask.state, ask.limit))};
    case Call::kToError:
      end.ToError();
      break;
    case Call::kFill:
      end.Fill(ask.piece, ask.seed);
      break;
    case Call::kFirstOther:
      return Found(end.FirstOther(ask.piece, ask.seed));
    case Call::kSetWord:
      end.SetWord(ask.piece.offset, ask.value);
      break;
    case Call::kWord:
      return {.value = end.Word(ask.piece.offset)};
    case Call::kAwaitAsyncEvent:
      return {.text = end.AwaitAsyncEvent(ask.prefix, ask.limit)};
    case Call::kLoseNext:
      return {.found = end.LoseNext(ask.packets, static_cast<uint32_t>(ask.value))};
    case Call::kSetSrqLimit:
      return {.value = static_cast<uint64_t>(end.SetSrqLimit(static_cast<uint32_t>(ask.value)))};
    case Call::kMake:
    case Call::kConnect:
    case Call::kReset:
    case Call::kDone:
      break;
  }
  return {};
}

}  // namespace

Status ServeCheck(Stage& stage) { return Agent(stage).Serve(); }

}  // namespace verbscope
