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
  uint64_t order = 0;    // of the message among all of the exchange, those of both ways together
  bool missing = false;  // something never came: what follows at the other side is an echo of it
  std::string expected = {};
  std::string observed = {};  // a sentence that names the message
  std::string why = {};
};

// "message 17: immediate is 0x…": of a completion or of memory. `label`: "message 17", "answer 3".
Finding Found(uint64_t order, const std::string& label, const Mismatch& mismatch);
// "message 17: no receive completion within 2s".
Finding Missing(uint64_t order, const std::string& label, std::string_view what, int64_t limit_ns);

// "message 17: status is LOC_LEN_ERR"; a flush is an echo of what failed elsewhere, as if missing.
Finding BadStatus(uint64_t order, const std::string& label, ibv_wc_status status);

// One direction of an exchange: what its messages are called, and how far on they are.
struct Route {
  Direction direction = Direction::kRequest;
  uint64_t before = 0;  // messages of both ways in front of the first of this one

  Finding Wrong(uint64_t number, const Mismatch& mismatch) const {
    return Found(before + number, Label(number), mismatch);
  }
  Finding Lost(uint64_t number, std::string_view what, int64_t limit_ns) const {
    return Missing(before + number, Label(number), what, limit_ns);
  }
  Finding Bad(uint64_t number, ibv_wc_status status) const {
    return BadStatus(before + number, Label(number), status);
  }
  std::string Label(uint64_t number) const;  // "message 17", "answer 3"
};

// Of one side's findings the one that explains the other: a mismatch before what is missing, then
// by order, then the first.
std::optional<Finding> Earlier(std::optional<Finding> first, std::optional<Finding> second);

nlohmann::json ToJson(const std::optional<Finding>& finding);
std::optional<Finding> FindingFromJson(const nlohmann::json& json);

// The earlier of both sides'; of equal ones the responder's, since messages reach that side first.
// Its text says who saw it.
std::optional<Finding> FirstOf(std::optional<Finding> requester, std::optional<Finding> responder);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_FINDING_H_
