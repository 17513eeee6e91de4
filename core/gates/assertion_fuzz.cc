// Fuzzes what users write into --assert and --asserts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/gates/assertion.h"
#include "core/gates/judge.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace verbscope;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Expected<std::vector<Assertion>> assertions = ParseAssertions(text);
  if (!assertions) {
    Require(!assertions.error().message.empty());
    return 0;
  }
  Require(assertions->size() <= kMaxAssertions + 1);
  Plan plan;
  for (const Assertion& assertion : *assertions) {
    // What was written can be read again and means the same.
    const Expected<Assertion> again = ParseAssertion(assertion.text);
    Require(again && again->metric == assertion.metric && again->scope == assertion.scope &&
            again->limit == assertion.limit && again->baseline_factor == assertion.baseline_factor);
    (void)CheckAssertion(assertion, plan.command, &plan);
  }
  // Without a single result nothing passes but what is of the run.
  Record record;
  for (const GateRow& row : Judge({.assertions = *assertions}, record)) {
    Require(row.outcome.status == "fail" || row.expression.starts_with("errors"));
  }
  return 0;
}
