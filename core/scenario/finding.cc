#include "core/scenario/finding.h"

#include <fmt/core.h>

#include <tuple>
#include <utility>

#include "core/causes/completion_status.h"
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

Finding Found(uint64_t order, const std::string& label, const Mismatch& mismatch) {
  return {.order = order,
          .expected = fmt::format("{} {}", mismatch.what, mismatch.expected),
          .observed = fmt::format("{}: {} is {}", label, mismatch.what, mismatch.got),
          .why = mismatch.why};
}

Finding Missing(uint64_t order, const std::string& label, std::string_view what, int64_t limit_ns) {
  return {.order = order,
          .missing = true,
          .expected = fmt::format("{} for every message", what),
          .observed = fmt::format("{}: no {} within {}", label, what, DurationText(limit_ns)),
          .why = "lost below the verbs interface, or never sent"};
}

Finding BadStatus(uint64_t order, const std::string& label, ibv_wc_status status) {
  Finding finding = Found(
      order, label, {.what = "status", .expected = "SUCCESS", .got = NameOf(status), .why = ""});
  finding.missing = status == IBV_WC_WR_FLUSH_ERR;
  return finding;
}

nlohmann::json ToJson(const std::optional<Finding>& finding) {
  if (!finding) return nullptr;
  return {{"order", finding->order},
          {"missing", finding->missing},
          {"expected", finding->expected},
          {"observed", finding->observed},
          {"why", finding->why}};
}

std::optional<Finding> FindingFromJson(const nlohmann::json& json) {
  if (!json.is_object()) return std::nullopt;
  Finding finding;
  const auto order = json.find("order");
  if (order != json.end() && order->is_number_unsigned()) finding.order = *order;
  const auto missing = json.find("missing");
  finding.missing = missing != json.end() && missing->is_boolean() && missing->get<bool>();
  finding.expected = Text(json, "expected");
  finding.observed = Text(json, "observed");
  finding.why = Text(json, "why");
  return finding;
}

std::string Route::Label(uint64_t number) const {
  return fmt::format("{} {}", direction == Direction::kAnswer ? "answer" : "message", number);
}

std::optional<Finding> Earlier(std::optional<Finding> first, std::optional<Finding> second) {
  if (!first || !second) return first ? std::move(first) : std::move(second);
  const auto key = [](const Finding& finding) {
    return std::tuple(finding.missing, finding.order);
  };
  return key(*second) < key(*first) ? std::move(second) : std::move(first);
}

std::optional<Finding> FirstOf(std::optional<Finding> requester, std::optional<Finding> responder) {
  if (requester) requester->observed += ", seen by the requester";
  if (responder) responder->observed += ", seen by the responder";
  return Earlier(std::move(responder), std::move(requester));
}

}  // namespace verbscope
