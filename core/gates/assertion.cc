#include "core/gates/assertion.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "core/gates/trimmed.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

constexpr std::pair<std::string_view, GateOp> kOps[] = {
    {"<=", GateOp::kLessEqual}, {">=", GateOp::kGreaterEqual}, {"==", GateOp::kEqual},
    {"!=", GateOp::kNotEqual},  {"<", GateOp::kLess},          {">", GateOp::kGreater}};

constexpr char kForm[] =
    "write METRIC[{key=value,…}] OP VALUE, such as 'p99<5us' or 'bw{size=64K}>=90Gb/s'";

// "baseline", "baseline*1.05"; nullopt: something else.
Expected<std::optional<double>> ParseBaseline(std::string_view text) {
  constexpr std::string_view kWord = "baseline";
  if (!text.starts_with(kWord)) return std::optional<double>();
  std::string_view rest = Trimmed(text.substr(kWord.size()));
  if (rest.empty()) return std::optional<double>(1.0);
  if (!rest.starts_with('*')) {
    return Fail(UsageError(fmt::format("\"{}\" is no value", text), {}, kForm));
  }
  rest = Trimmed(rest.substr(1));
  double factor = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), factor);
  if (problem != std::errc() || end != rest.data() + rest.size() || !std::isfinite(factor) ||
      factor <= 0) {
    return Fail(UsageError(fmt::format("\"{}\" is no factor above 0", rest), {},
                           "write baseline*1.05 for 5 % more than the baseline"));
  }
  return std::optional<double>(factor);
}

Status ParseValue(std::string_view text, Assertion& assertion) {
  if (text.empty()) return Fail(UsageError("the value is missing", {}, kForm));
  Expected<std::optional<double>> factor = ParseBaseline(text);
  if (!factor) return Fail(std::move(factor.error()));
  assertion.baseline_factor = *factor;
  if (*factor) return {};
  Expected<double> limit = ParseGateValue(assertion.metric, text);
  if (!limit) return Fail(std::move(limit.error()));
  assertion.limit = *limit;
  return {};
}

Status ParseInto(std::string_view text, Assertion& assertion) {
  const size_t scope_begin = text.find('{');
  const size_t first_op = text.find_first_of("<>=!");
  size_t after_metric = first_op;
  if (scope_begin != text.npos && scope_begin < first_op) {
    const size_t scope_end = text.find('}', scope_begin);
    if (scope_end == text.npos) return Fail(UsageError("the scope has no closing }", {}, kForm));
    Expected<Scope> scope = ParseScope(text.substr(scope_begin + 1, scope_end - scope_begin - 1));
    if (!scope) return Fail(std::move(scope.error()));
    assertion.scope = std::move(*scope);
    after_metric = scope_end + 1;
  }
  if (first_op == text.npos) return Fail(UsageError("there is no comparison", {}, kForm));
  Expected<GateMetric> metric =
      ParseGateMetric(Trimmed(text.substr(0, std::min(scope_begin, first_op))));
  if (!metric) return Fail(std::move(metric.error()));
  assertion.metric = std::move(*metric);
  const std::string_view rest = Trimmed(text.substr(after_metric));
  for (const auto& [word, op] : kOps) {
    if (!rest.starts_with(word)) continue;
    assertion.op = op;
    if (IsEquality(op) && !assertion.metric.is_count()) {
      return Fail(UsageError(fmt::format("{} is never exactly a value", ToText(assertion.metric)),
                             {}, "compare it with <, <=, > or >="));
    }
    return ParseValue(Trimmed(rest.substr(word.size())), assertion);
  }
  return Fail(UsageError("there is no comparison behind the metric", {}, kForm));
}

}  // namespace

bool Holds(GateOp op, double value, double limit) {
  switch (op) {
    case GateOp::kLess:
      return value < limit;
    case GateOp::kLessEqual:
      return value <= limit;
    case GateOp::kGreater:
      return value > limit;
    case GateOp::kGreaterEqual:
      return value >= limit;
    case GateOp::kEqual:
      return value == limit;
    case GateOp::kNotEqual:
      return value != limit;
  }
  return false;
}

Expected<Assertion> ParseAssertion(std::string_view text) {
  text = Trimmed(text);
  Assertion assertion;
  assertion.text = Printable(text, kMaxAssertionBytes);
  Status status;
  if (text.empty()) {
    status = Fail(UsageError("the assertion is empty", {}, kForm));
  } else if (text.size() > kMaxAssertionBytes || assertion.text != text) {
    status = Fail(
        UsageError(text.size() > kMaxAssertionBytes
                       ? fmt::format("it is longer than {} bytes", kMaxAssertionBytes)
                       : std::string("it holds bytes that are no plain text, such as a line end"),
                   {}, kForm));
  } else {
    status = ParseInto(text, assertion);
  }
  if (status) return assertion;
  status.error().message =
      fmt::format("assertion '{}': {}", Printable(text, 100), status.error().message);
  return Fail(std::move(status.error()));
}

Expected<std::vector<Assertion>> ParseAssertions(std::string_view text) {
  std::vector<Assertion> assertions;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // as some editors begin a file
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    Expected<Assertion> assertion = ParseAssertion(line);
    if (!assertion) {
      Error& error = assertion.error();
      error.message = fmt::format("line {}: {}", number, error.message);
      return Fail(std::move(error));
    }
    assertions.push_back(std::move(*assertion));
    if (assertions.size() > kMaxAssertions) break;  // the caller counts them all together
  }
  return assertions;
}

Status CheckAssertion(const Assertion& assertion, std::string_view command, const Plan* plan) {
  Status status;
  if (!CanYield(command, assertion.metric)) {
    status =
        Fail(UsageError(fmt::format("{} does not measure {}", command, ToText(assertion.metric)),
                        {}, "assert what the command's report shows"));
  } else if (assertion.metric.is_of_run() && !assertion.scope.empty()) {
    status = Fail(UsageError(fmt::format("{} is of the whole run", ToText(assertion.metric)), {},
                             "leave the scope out"));
  } else if (plan != nullptr) {
    status = CheckScope(assertion.scope, *plan);
  }
  if (status) return {};
  status.error().message =
      fmt::format("assertion '{}': {}", assertion.text, status.error().message);
  return status;
}

}  // namespace verbscope
