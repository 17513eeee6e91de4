#include "core/checks/remote_end.h"

#include <utility>

namespace verbscope {
namespace {

Expected<Answer> Heard(Stage& stage) {
  Expected<nlohmann::json> heard = stage.Hear();
  if (!heard) return Fail(std::move(heard.error()));
  return AnswerFromJson(*heard);
}

}  // namespace

Expected<Answer> RemoteEnd::Make(Stage& stage, const FreshQpOptions& options) {
  const Ask ask = {.call = Call::kMake, .make = options};
  if (Status status = stage.Tell(ToJson(ask)); !status) return Fail(std::move(status.error()));
  return Heard(stage);
}

Answer RemoteEnd::Question(Ask ask) {
  if (!latch_.ok()) return {};
  ask.end = index_;
  latch_.Keep(stage_.Tell(ToJson(ask)));
  return latch_.ok() ? latch_.Take(Heard(stage_)) : Answer{};
}

void RemoteEnd::BeginConnect() {
  if (latch_.ok()) latch_.Keep(stage_.Tell(ToJson(Ask{.call = Call::kConnect, .end = index_})));
}

void RemoteEnd::BeginReset() {
  if (latch_.ok()) latch_.Keep(stage_.Tell(ToJson(Ask{.call = Call::kReset, .end = index_})));
}

void RemoteEnd::Answered() {
  if (latch_.ok()) (void)latch_.Take(Heard(stage_));
}

int RemoteEnd::PostReceive(const ReceiveSpec& spec) {
  return static_cast<int>(Question({.call = Call::kPostReceive, .receive = spec}).value);
}

int RemoteEnd::PostSend(const SendSpec& spec) {
  return static_cast<int>(Question({.call = Call::kPostSend, .send = spec}).value);
}

std::optional<ibv_wc> RemoteEnd::AwaitSend(std::chrono::nanoseconds limit) {
  return Question({.call = Call::kAwaitSend, .limit = limit}).completion;
}

std::optional<ibv_wc> RemoteEnd::AwaitReceive(std::chrono::nanoseconds limit) {
  return Question({.call = Call::kAwaitReceive, .limit = limit}).completion;
}

ibv_qp_state RemoteEnd::AwaitState(ibv_qp_state wanted, std::chrono::nanoseconds limit) {
  return static_cast<ibv_qp_state>(
      Question({.call = Call::kAwaitState, .state = wanted, .limit = limit}).value);
}

void RemoteEnd::ToError() { (void)Question({.call = Call::kToError}); }

void RemoteEnd::Fill(Piece piece, uint8_t seed) {
  (void)Question({.call = Call::kFill, .piece = piece, .seed = seed});
}

std::optional<uint64_t> RemoteEnd::FirstOther(Piece piece, uint8_t seed) {
  const Answer answer = Question({.call = Call::kFirstOther, .piece = piece, .seed = seed});
  return answer.found ? std::optional(answer.value) : std::nullopt;
}

void RemoteEnd::SetWord(uint64_t offset, uint64_t value) {
  (void)Question({.call = Call::kSetWord, .piece = {.offset = offset}, .value = value});
}

uint64_t RemoteEnd::Word(uint64_t offset) {
  return Question({.call = Call::kWord, .piece = {.offset = offset}}).value;
}

std::optional<std::string> RemoteEnd::AwaitAsyncEvent(const std::string& prefix,
                                                      std::chrono::nanoseconds limit) {
  return Question({.call = Call::kAwaitAsyncEvent, .prefix = prefix, .limit = limit}).text;
}

bool RemoteEnd::LoseNext(LossyPacket kind, uint32_t count) {
  return Question({.call = Call::kLoseNext, .value = count, .packets = kind}).found;
}

int RemoteEnd::SetSrqLimit(uint32_t limit) {
  return static_cast<int>(Question({.call = Call::kSetSrqLimit, .value = limit}).value);
}

}  // namespace verbscope
