#include "core/scenario/finding.h"

#include <fmt/core.h>

#include <tuple>
#include <utility>

#include "core/plan/plan.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

std::string Text(const nlohmann::json& json, const char* member) {
  const auto found = json.find(member);
  if (found == json.end() || !found->is_string()) return {};
  return Printable(found->get_ref<const std::string&>(), 1024);
}

}  // namespace

Finding Found(uint64_t message, const Mismatch& mismatch) {
  return {.message = message,
          .expected = fmt::format("{} {}", mismatch.what, mismatch.expected),
          .observed = fmt::format("message {}: {} is {}", message, mismatch.what, mismatch.got),
          .why = mismatch.why};
}

Finding Missing(uint64_t message, std::string_view what, int64_t limit_ns) {
  return {
      .message = message,
      .missing = true,
      .expected = fmt::format("{} for every message", what),
      .observed = fmt::format("message {}: no {} within {}", message, what, DurationText(limit_ns)),
      .why = "lost below the verbs interface, or never sent"};
}

nlohmann::json ToJson(const std::optional<Finding>& finding) {
  if (!finding) return nullptr;
  return {{"message", finding->message},
          {"missing", finding->missing},
          {"expected", finding->expected},
          {"observed", finding->observed},
          {"why", finding->why}};
}

std::optional<Finding> FindingFromJson(const nlohmann::json& json) {
  if (!json.is_object()) return std::nullopt;
  Finding finding;
  const auto message = json.find("message");
  if (message != json.end() && message->is_number_unsigned()) finding.message = *message;
  const auto missing = json.find("missing");
  finding.missing = missing != json.end() && missing->is_boolean() && missing->get<bool>();
  finding.expected = Text(json, "expected");
  finding.observed = Text(json, "observed");
  finding.why = Text(json, "why");
  return finding;
}

std::optional<Finding> FirstOf(std::optional<Finding> requester, std::optional<Finding> responder) {
  const auto key = [](const Finding& finding) {
    return std::tuple(finding.missing, finding.message);
  };
  const bool requesters = requester && (!responder || key(*requester) < key(*responder));
  std::optional<Finding> first = requesters ? std::move(requester) : std::move(responder);
  if (first) first->observed += requesters ? ", seen by the requester" : ", seen by the responder";
  return first;
}

}  // namespace verbscope
