#include "core/compare/differences.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "core/compare/environment.h"
#include "core/compare/point_key.h"
#include "core/plan/plan_json.h"
#include "core/record/point_text.h"

namespace verbscope {
namespace {

// They decide how long, how often or in what detail is looked, and change no figure of a run.
constexpr std::array<std::string_view, 7> kWithoutInfluence = {
    "changes", "command", "deadline_ns", "extend_to_ns", "interval_ns", "p99_limit_ns", "repeat"};

std::string JsonText(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  // A text in a list may be of any bytes.
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

FieldTexts ParametersOf(const Record& record) {
  FieldTexts fields;
  if (record.plan) {
    const nlohmann::json plan = ToJson(*record.plan);
    for (const auto& [name, value] : plan.items()) {
      if (std::ranges::find(kWithoutInfluence, name) != kWithoutInfluence.end()) continue;
      fields.emplace_back("plan." + name, JsonText(value));
    }
    if (!record.plan->modes.empty()) return fields;  // its ways of waiting are in the plan
  }
  for (const std::string side : {"requester", "responder"}) {
    std::vector<std::string> waits;
    for (const Result& result : record.results) {
      if (result.side != side || result.point.wait.empty()) continue;
      std::string wait = WaitText(result.point);
      if (std::ranges::find(waits, wait) == waits.end()) waits.push_back(std::move(wait));
      constexpr size_t kEnough = 16;
      if (waits.size() == kEnough) break;
    }
    if (!waits.empty())
      fields.emplace_back(side + ".wait", fmt::format("{}", fmt::join(waits, ",")));
  }
  return fields;
}

// The values of each field in the order in which they came, each once.
class ValuesByField {
 public:
  void Add(const FieldTexts& fields) {
    for (const auto& [field, text] : fields) {
      if (!values_.contains(field)) order_.push_back(field);
      std::vector<std::string>& values = values_[field];
      if (std::ranges::find(values, text) == values.end()) values.push_back(text);
    }
  }
  const std::vector<std::string>& order() const { return order_; }
  std::string Text(const std::string& field) const {
    const auto at = values_.find(field);
    if (at == values_.end()) return "not known";
    return fmt::format("{}", fmt::join(at->second, ","));
  }
  bool IsSingle(const std::string& field) const {
    const auto at = values_.find(field);
    return at == values_.end() || at->second.size() == 1;
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::vector<std::string>> values_;
};

template <class Fields>
std::vector<SetDifference> Differences(std::span<const Record> base, std::span<const Record> fresh,
                                       Fields fields_of) {
  ValuesByField of_base;
  ValuesByField of_fresh;
  ValuesByField of_all;
  for (const auto& [records, values] : {std::pair(base, &of_base), {fresh, &of_fresh}}) {
    for (const Record& record : records) {
      const FieldTexts fields = fields_of(record);
      values->Add(fields);
      of_all.Add(fields);
    }
  }
  std::vector<SetDifference> differences;
  for (const std::string& field : of_all.order()) {
    std::string from = of_base.Text(field);
    std::string to = of_fresh.Text(field);
    if (from == to && of_base.IsSingle(field)) continue;
    const auto known = [](std::string text) { return text.empty() ? "not known" : text; };
    differences.push_back({field, known(std::move(from)), known(std::move(to))});
  }
  return differences;
}

// "size" is what users write for what the document calls size_bytes.
std::string PointMemberOf(const std::string& name) { return name == "size" ? "size_bytes" : name; }

std::vector<std::string> KnownNames() {
  std::vector<std::string> names = {"all", "size"};
  for (const auto& [name, text] : KeyMembers(Point())) names.emplace_back(name);
  const nlohmann::json plan = ToJson(Plan());
  for (const auto& [name, value] : plan.items()) {
    if (std::ranges::find(kWithoutInfluence, name) != kWithoutInfluence.end()) continue;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace

Expected<AllowedDifferences> ParseAllowed(const std::vector<std::string>& names) {
  const std::vector<std::string> known = KnownNames();
  AllowedDifferences allowed;
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) == known.end()) {
      return Fail(UsageError(fmt::format("--allow-diff {}: there is no such parameter", name),
                             fmt::format("known are {}", fmt::join(known, ", "))));
    }
    if (name == "all") {
      allowed.all = true;
    } else {
      allowed.names.insert(name);
    }
  }
  return allowed;
}

std::vector<SetDifference> ParameterDifferences(std::span<const Record> base,
                                                std::span<const Record> fresh) {
  return Differences(base, fresh, ParametersOf);
}

std::vector<SetDifference> EnvironmentDifferences(std::span<const Record> base,
                                                  std::span<const Record> fresh) {
  std::vector<SetDifference> differences = Differences(base, fresh, EnvironmentOf);
  for (SetDifference& floor : JitterDifferences(base, fresh)) {
    differences.push_back(std::move(floor));
  }
  return differences;
}

bool IsAllowed(const AllowedDifferences& allowed, const SetDifference& parameter) {
  if (allowed.all) return true;
  // "plan.qps", "responder.wait": the part behind the point is what users write.
  const std::string name = parameter.field.substr(parameter.field.find('.') + 1);
  // The sizes of a sweep are many of the same; a plan has no other list under two names.
  if (name == "sizes_bytes" &&
      (allowed.names.contains("size") || allowed.names.contains("size_bytes"))) {
    return true;
  }
  return allowed.names.contains(name);
}

std::set<std::string> IgnoredMembers(const AllowedDifferences& allowed,
                                     std::span<const Record> base, std::span<const Record> fresh) {
  std::set<std::string> ignored;
  for (const std::string& name : allowed.names) ignored.insert(PointMemberOf(name));
  if (ignored.contains("wait")) ignored.insert("spin_ns");  // a part of how it waits
  if (!allowed.all) return ignored;
  const auto members_of = [](const Record& record) {
    FieldTexts fields;
    for (const Result& result : record.results) {
      for (auto& [name, text] : KeyMembers(result.point)) {
        fields.emplace_back(fmt::format("{}.{}", result.side, name), std::move(text));
      }
    }
    return fields;
  };
  ValuesByField of_base;
  ValuesByField of_fresh;
  for (const Record& record : base) of_base.Add(members_of(record));
  for (const Record& record : fresh) of_fresh.Add(members_of(record));
  for (const auto& [name, text] : KeyMembers(Point())) {
    bool single = true;
    bool differs = false;
    for (const char* side : {"requester", "responder"}) {
      const std::string field = fmt::format("{}.{}", side, name);
      single = single && of_base.IsSingle(field) && of_fresh.IsSingle(field);
      differs = differs || of_base.Text(field) != of_fresh.Text(field);
    }
    if (single && differs) ignored.emplace(name);
  }
  return ignored;
}

}  // namespace verbscope
