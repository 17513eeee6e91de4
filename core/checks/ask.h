// What one side asks of the other's Agent, and its answers, as data and as JSON. What comes from
// the peer is checked for type and range here; a bad member is a kRun error that names it.
//
// Plain data and pure functions; any thread.
#ifndef VERBSCOPE_CORE_CHECKS_ASK_H_
#define VERBSCOPE_CORE_CHECKS_ASK_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/checks/end.h"
#include "core/scenario/fresh_qp.h"

namespace verbscope {

// Of an Agent's ends: what they may take of its host.
inline constexpr uint64_t kMaxEnds = 64;
inline constexpr uint64_t kMaxEndBytes = uint64_t{4} << 20;
inline constexpr uint32_t kMaxEndDepth = 4096;
inline constexpr size_t kMaxPieces = 32;
inline constexpr int64_t kMaxAskLimitNs = 15'000'000'000;  // below the time of a step

enum class Call : uint8_t {
  kMake,
  kConnect,
  kReset,
  kPostReceive,
  kPostSend,
  kAwaitSend,
  kAwaitReceive,
  kAwaitState,
  kToError,
  kFill,
  kFirstOther,
  kSetWord,
  kWord,
  kAwaitAsyncEvent,
  kLoseNext,
  kSetSrqLimit,
  kDone,
};

// One call, with those members that it needs.
struct Ask {
  Call call = Call::kDone;
  uint64_t end = 0;          // which of the Agent's, in the order of kMake
  FreshQpOptions make = {};  // kMake
  ReceiveSpec receive = {};
  SendSpec send = {};
  Piece piece = {};
  uint8_t seed = 0;
  uint64_t value = 0;  // a word, a count or a limit
  std::string prefix = {};
  ibv_qp_state state = IBV_QPS_RESET;
  LossyPacket packets = LossyPacket::kRequest;
  std::chrono::nanoseconds limit = {};
};
nlohmann::json ToJson(const Ask& ask);
Expected<Ask> AskFromJson(const nlohmann::json& json);

struct Answer {
  uint64_t value = 0;  // an errno, a state, a word, a place, the rkey of a foreign region
  std::optional<ibv_wc> completion = {};
  std::optional<std::string> text = {};
  bool found = false;  // whether `value` is one, for what may have none
};
nlohmann::json ToJson(const Answer& answer);
Expected<Answer> AnswerFromJson(const nlohmann::json& json);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CHECKS_ASK_H_
