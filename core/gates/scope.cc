#include "core/gates/scope.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "core/plan/operation.h"

namespace verbscope {
namespace {

enum class Kind { kText, kSize, kNumber, kReal, kFlag, kWait, kSide };

// One thing by which results differ: its names, what values it has, and the value of a result;
// nothing where the result does not have it.
struct Member {
  std::string_view name;
  std::string_view json_name;  // empty: the same
  Kind kind;
  std::optional<std::string> (*of)(const Result& result);
};

template <class T>
std::optional<std::string> Text(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  if constexpr (std::is_same_v<T, bool>) {
    return *value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return *value;
  } else {
    return fmt::format("{}", *value);
  }
}

std::string WaitText(const Point& point) {
  return point.spin_ns ? fmt::format("{}:{}", point.wait, DurationText(*point.spin_ns))
                       : point.wait;
}

constexpr Member kMembers[] = {
    {"op", "", Kind::kText, [](const Result& r) { return std::optional(r.point.op); }},
    {"size", "size_bytes", Kind::kSize,
     [](const Result& r) { return Text(std::optional(r.point.size_bytes)); }},
    {"qps", "", Kind::kNumber, [](const Result& r) { return Text(std::optional(r.point.qps)); }},
    {"cqs", "", Kind::kNumber, [](const Result& r) { return Text(r.point.cqs); }},
    {"threads", "", Kind::kNumber, [](const Result& r) { return Text(r.point.threads); }},
    {"cq_depth", "", Kind::kNumber, [](const Result& r) { return Text(r.point.cq_depth); }},
    {"wait", "", Kind::kWait, [](const Result& r) { return std::optional(WaitText(r.point)); }},
    {"rate", "rate_per_s", Kind::kReal, [](const Result& r) { return Text(r.point.rate_per_s); }},
    {"share", "busy_share_percent", Kind::kReal,
     [](const Result& r) { return Text(r.point.busy_share_percent); }},
    {"moderation", "", Kind::kText, [](const Result& r) { return Text(r.point.moderation); }},
    {"tx_depth", "", Kind::kNumber, [](const Result& r) { return Text(r.point.tx_depth); }},
    {"timer_code", "", Kind::kNumber, [](const Result& r) { return Text(r.point.timer_code); }},
    {"imm", "", Kind::kFlag,
     [](const Result& r) { return Text(std::optional(r.point.imm.value_or(false))); }},
    {"atomic_op", "", Kind::kText, [](const Result& r) { return Text(r.point.atomic_op); }},
    {"bidirectional", "", Kind::kFlag,
     [](const Result& r) { return Text(std::optional(r.point.bidirectional.value_or(false))); }},
    {"post_list", "", Kind::kNumber,
     [](const Result& r) { return Text(std::optional(r.point.post_list.value_or(1))); }},
    {"inline", "", Kind::kFlag, [](const Result& r) { return Text(r.point.inline_data); }},
    {"signal_every", "", Kind::kNumber,
     [](const Result& r) { return Text(std::optional(r.point.signal_every.value_or(1))); }},
    {"variant", "", Kind::kText, [](const Result& r) { return Text(r.point.variant); }},
    {"side", "", Kind::kSide, [](const Result& r) { return std::optional(r.side); }},
    {"run", "", Kind::kNumber, [](const Result& r) { return Text(std::optional(r.run)); }},
    {"set", "", Kind::kText, [](const Result& r) { return Text(r.set); }},
};

const Member* FindMember(std::string_view key) {
  const auto* found = std::ranges::find_if(kMembers, [key](const Member& member) {
    return member.name == key || (!member.json_name.empty() && member.json_name == key);
  });
  return found == std::ranges::end(kMembers) ? nullptr : found;
}

tl::unexpected<Error> Usage(std::string message, std::string next_step) {
  Error error;
  error.error_class = ErrorClass::kUsage;
  error.message = std::move(message);
  error.next_step = std::move(next_step);
  return Fail(std::move(error));
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

template <class T>
std::optional<T> NumberOf(std::string_view text) {
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The value as a result's own would be written; nullopt: the member has no such value.
std::optional<std::string> Normalised(Kind kind, std::string_view value) {
  switch (kind) {
    case Kind::kText:
      if (value.empty()) return std::nullopt;
      return std::string(value);
    case Kind::kSize: {
      const Expected<uint64_t> size = ParseSize(value);
      if (!size) return std::nullopt;
      return fmt::format("{}", *size);
    }
    case Kind::kNumber:
      return Text(NumberOf<uint32_t>(value));
    case Kind::kReal:
      return Text(NumberOf<double>(value));
    case Kind::kFlag:
      if (value != "true" && value != "false") return std::nullopt;
      return std::string(value);
    case Kind::kWait: {
      if (value == "hybrid") return "hybrid";  // whatever its time
      const Expected<WaitMode> wait = ParseWaitMode(value);
      if (!wait) return std::nullopt;
      return ToText(*wait);
    }
    case Kind::kSide:
      if (value != "requester" && value != "responder" && value != "local") return std::nullopt;
      return std::string(value);
  }
  return std::nullopt;
}

Expected<ScopeTerm> ParseTerm(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == text.npos) {
    return Usage(fmt::format("\"{}\" in the scope is not key=value", text),
                 "write a scope as {size=64,side=requester}");
  }
  const std::string_view key = Trimmed(text.substr(0, equals));
  const std::string_view value = Trimmed(text.substr(equals + 1));
  const Member* member = FindMember(key);
  if (member == nullptr) {
    std::string known;
    for (const Member& each : kMembers) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
    }
    return Usage(fmt::format("\"{}\" is nothing that results differ by", key),
                 "known are " + known);
  }
  std::optional<std::string> normalised = Normalised(member->kind, value);
  if (!normalised) {
    return Usage(fmt::format("\"{}\" is no value of {}", value, key),
                 member->kind == Kind::kSide ? "sides are requester, responder and local"
                                             : "write it as the report does");
  }
  return ScopeTerm{std::string(member->name), std::move(*normalised)};
}

}  // namespace

Expected<Scope> ParseScope(std::string_view text) {
  Scope scope;
  while (true) {
    const size_t comma = text.find(',');
    Expected<ScopeTerm> term = ParseTerm(Trimmed(text.substr(0, comma)));
    if (!term) return Fail(std::move(term.error()));
    if (std::ranges::find(scope, term->key, &ScopeTerm::key) != scope.end()) {
      return Usage(fmt::format("{} stands twice in the scope", term->key),
                   "give an assertion for each value");
    }
    scope.push_back(std::move(*term));
    if (comma == text.npos) return scope;
    text.remove_prefix(comma + 1);
  }
}

bool InScope(const Scope& scope, const Result& result) {
  return std::ranges::all_of(scope, [&result](const ScopeTerm& term) {
    const Member* member = FindMember(term.key);
    if (member == nullptr) return false;
    const std::optional<std::string> value = member->of(result);
    if (!value) return false;
    if (member->kind == Kind::kReal) {
      return NumberOf<double>(term.value) == NumberOf<double>(*value);
    }
    if (member->kind == Kind::kWait && term.value == "hybrid") return result.point.wait == "hybrid";
    return *value == term.value;
  });
}

Status CheckScope(const Scope& scope, const Plan& plan) {
  const Operation* operation = FindOperation(plan.command);
  if (operation == nullptr) return {};
  for (const ScopeTerm& term : scope) {
    if (term.key == "size") {
      const std::optional<uint64_t> size = NumberOf<uint64_t>(term.value);
      if (size && std::ranges::find(plan.sizes_bytes, *size) != plan.sizes_bytes.end()) continue;
      return Usage(fmt::format("no result of this run has {} bytes", term.value),
                   fmt::format("add the size to -s, or leave {{size={}}} out", term.value));
    }
    if (term.key == "op" && term.value != operation->op) {
      return Usage(fmt::format("{} has no results of op {}", plan.command, term.value),
                   fmt::format("its results are of op {}", operation->op));
    }
    if (term.key == "side" && term.value == "local") {
      return Usage(fmt::format("{} has no results of side local", plan.command),
                   "its sides are requester and responder");
    }
    const bool run = term.key == "run";
    if (run && NumberOf<uint32_t>(term.value).value_or(0) >= plan.repeat) {
      return Usage(fmt::format("this command makes {} {}, counted from 0", plan.repeat,
                               plan.repeat == 1 ? "run" : "runs"),
                   "raise --repeat, or name another run");
    }
  }
  return {};
}

}  // namespace verbscope
