// The rules of the diagnosis: each looks at the evidence for one cause. Private to core/causes.
#ifndef VERBSCOPE_CORE_CAUSES_RULES_H_
#define VERBSCOPE_CORE_CAUSES_RULES_H_

#include <optional>
#include <span>
#include <string_view>

#include "core/causes/diagnosis.h"

namespace verbscope {

enum class Confidence {
  kHint,     // may make matters worse
  kDecided,  // the facts of both sides single it out
};

struct CauseRule {
  std::string_view name;
  Confidence confidence = Confidence::kHint;
  std::optional<CauseRow> (*judge)(const Evidence& evidence) = nullptr;
};

// Of one confidence the more telling first.
std::span<const CauseRule> CauseRules();

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CAUSES_RULES_H_
