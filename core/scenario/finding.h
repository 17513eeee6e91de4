// The first thing that one side of an exchange found wrong, as data: both sides tell theirs, and
// the one that explains the other becomes the check's text.
#ifndef VERBSCOPE_CORE_SCENARIO_FINDING_H_
#define VERBSCOPE_CORE_SCENARIO_FINDING_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/scenario/message_check.h"

namespace verbscope {

struct Finding {
  uint64_t message = 0;  // number from 0
  bool missing = false;  // something never came: what follows at the other side is an echo of it
  std::string expected = {};
  std::string observed = {};  // a sentence that names the message
  std::string why = {};
};

// "message 17: immediate is 0x…": of a completion or of memory.
Finding Found(uint64_t message, const Mismatch& mismatch);
// "message 17: no receive completion within 2 s".
Finding Missing(uint64_t message, std::string_view what, int64_t limit_ns);

nlohmann::json ToJson(const std::optional<Finding>& finding);
std::optional<Finding> FindingFromJson(const nlohmann::json& json);

// Whichever comes first: a mismatch before what is missing, then by message, then the responder's,
// since messages reach that side first. Text says who saw it.
std::optional<Finding> FirstOf(std::optional<Finding> requester, std::optional<Finding> responder);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_FINDING_H_
