#include "core/gates/scope.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "core/gates/trimmed.h"
#include "core/plan/operation.h"
#include "core/record/point_members.h"
#include "core/record/point_text.h"

namespace verbscope {
namespace {

enum class Kind { kText, kSize, kNumber, kReal, kFlag, kWait, kSide };

// One thing by which results differ: its names, and what values it has.
struct Member {
  std::string_view name;
  std::string_view json_name;  // of a point, or "side", "run", "set"
  Kind kind;
  std::string_view absent = {};  // what a point without it means; empty: it is in no such scope
};

constexpr Member kMembers[] = {
    {"op", "op", Kind::kText},
    {"size", "size_bytes", Kind::kSize},
    {"qps", "qps", Kind::kNumber},
    {"cqs", "cqs", Kind::kNumber},
    {"threads", "threads", Kind::kNumber},
    {"cq_depth", "cq_depth", Kind::kNumber},
    {"wait", "wait", Kind::kWait},
    {"rate", "rate_per_s", Kind::kReal},
    {"share", "busy_share_percent", Kind::kReal},
    {"moderation", "moderation", Kind::kText},
    {"tx_depth", "tx_depth", Kind::kNumber},
    {"timer_code", "timer_code", Kind::kNumber},
    {"imm", "imm", Kind::kFlag, "false"},
    {"atomic_op", "atomic_op", Kind::kText},
    {"bidirectional", "bidirectional", Kind::kFlag, "false"},
    {"post_list", "post_list", Kind::kNumber, "1"},
    {"inline", "inline", Kind::kFlag},
    {"signal_every", "signal_every", Kind::kNumber, "1"},
    {"variant", "variant", Kind::kText},
    {"side", "side", Kind::kSide},
    {"run", "run", Kind::kNumber},
    {"set", "set", Kind::kText},
};

// The value of a result; nothing where the result does not have it.
std::optional<std::string> ValueOf(const Member& member, const Result& result) {
  if (member.name == "side") return result.side;
  if (member.name == "run") return fmt::format("{}", result.run);
  if (member.name == "set") return result.set;
  if (member.kind == Kind::kWait) return WaitText(result.point);
  for (PointMember& known : PointMembers(result.point)) {
    if (known.name != member.json_name) continue;
    if (known.text || member.absent.empty()) return std::move(known.text);
    return std::string(member.absent);
  }
  return std::nullopt;
}

const Member* FindMember(std::string_view key) {
  const auto* found = std::ranges::find_if(kMembers, [key](const Member& member) {
    return member.name == key || member.json_name == key;
  });
  return found == std::ranges::end(kMembers) ? nullptr : found;
}

template <class T>
std::optional<T> NumberOf(std::string_view text) {
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
std::optional<std::string> NumberText(const std::optional<T>& number) {
  return number ? std::optional(fmt::format("{}", *number)) : std::nullopt;
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
      return NumberText(NumberOf<uint32_t>(value));
    case Kind::kReal:
      return NumberText(NumberOf<double>(value));
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
    return Fail(UsageError(fmt::format("\"{}\" in the scope is not key=value", text), {},
                           "write a scope as {size=64,side=requester}"));
  }
  const std::string_view key = Trimmed(text.substr(0, equals));
  const std::string_view value = Trimmed(text.substr(equals + 1));
  const Member* member = FindMember(key);
  if (member == nullptr) {
    std::string known;
    for (const Member& each : kMembers) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
    }
    return Fail(UsageError(fmt::format("\"{}\" is nothing that results differ by", key), {},
                           "known are " + known));
  }
  std::optional<std::string> normalised = Normalised(member->kind, value);
  if (!normalised) {
    return Fail(UsageError(fmt::format("\"{}\" is no value of {}", value, key), {},
                           member->kind == Kind::kSide ? "sides are requester, responder and local"
                                                       : "write it as the report does"));
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
      return Fail(UsageError(fmt::format("{} stands twice in the scope", term->key), {},
                             "give an assertion for each value"));
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
    const std::optional<std::string> value = ValueOf(*member, result);
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
      return Fail(
          UsageError(fmt::format("no result of this run has {} bytes", term.value), {},
                     fmt::format("add the size to -s, or leave {{size={}}} out", term.value)));
    }
    if (term.key == "op" && term.value != operation->op) {
      return Fail(UsageError(fmt::format("{} has no results of op {}", plan.command, term.value),
                             {}, fmt::format("its results are of op {}", operation->op)));
    }
    if (term.key == "side" && term.value == "local") {
      return Fail(UsageError(fmt::format("{} has no results of side local", plan.command), {},
                             "its sides are requester and responder"));
    }
    const bool run = term.key == "run";
    if (run && NumberOf<uint32_t>(term.value).value_or(0) >= plan.repeat) {
      return Fail(UsageError(fmt::format("this command makes {} {}, counted from 0", plan.repeat,
                                         plan.repeat == 1 ? "run" : "runs"),
                             {}, "raise --repeat, or name another run"));
    }
  }
  return {};
}

}  // namespace verbscope
