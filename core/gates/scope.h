// Which results an assertion is about: "{size=64,side=responder}". Every term must hold; without
// terms all results are meant.
//
// Plain data and pure functions, any thread.
#ifndef VERBSCOPE_CORE_GATES_SCOPE_H_
#define VERBSCOPE_CORE_GATES_SCOPE_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"
#include "core/record/record.h"

namespace verbscope {

struct ScopeTerm {
  std::string key;    // a member of Point by its short or its JSON name, "side", "run" or "set"
  std::string value;  // as ParseScope normalised it: "65536" for "64K"
  friend bool operator==(const ScopeTerm&, const ScopeTerm&) = default;
};
using Scope = std::vector<ScopeTerm>;

// The text between the braces. kUsage for a key that no result has, one given twice, or a value
// that it cannot have.
Expected<Scope> ParseScope(std::string_view text);

bool InScope(const Scope& scope, const Result& result);

// kUsage if the plan cannot have a result in the scope, as far as that is known before it runs.
Status CheckScope(const Scope& scope, const Plan& plan);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_GATES_SCOPE_H_
