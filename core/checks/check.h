// What a check is: data that says what it asks and where the rule is written, and the function that
// asks. catalog.h has all of them.
//
// Constant data; any thread.
#ifndef VERBSCOPE_CORE_CHECKS_CHECK_H_
#define VERBSCOPE_CORE_CHECKS_CHECK_H_

#include <string_view>
#include <vector>

#include "core/checks/trial.h"
#include "core/scenario/scenario.h"

namespace verbscope {

struct CheckDefinition {
  std::string_view name;    // on the command line, in lower case with hyphens
  std::string_view does;    // what it does, one sentence without its full stop
  std::string_view expect;  // what the interface promises, likewise
  std::string_view source;  // clauses, manual pages
  // One of them: a function of a Trial, or scenarios made for other commands, whose names begin
  // with "NAME/".
  void (*run)(Trial&) = nullptr;
  std::vector<Scenario> (*scenarios)(const Plan&) = nullptr;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CHECKS_CHECK_H_
