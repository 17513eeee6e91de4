#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/checks/catalog.h"
#include "core/record/count_text.h"

namespace verbscope {
namespace {

// The worst first.
constexpr std::array<std::string_view, 4> kStatuses = {"fail", "deviation", "pass", "skip"};

// The row of a check from its parts.
void Conclude(CheckRow& check) {
  const CheckDefinition* definition = FindCheck(check.name);
  if (definition != nullptr) {
    check.expected = definition->expect;
    check.source = definition->source;
  }
  const auto of = [&check](std::string_view status) {
    return std::ranges::find(check.parts, status, &CheckPart::status);
  };
  const auto* const status = std::ranges::find_if(
      kStatuses, [&](std::string_view one) { return of(one) != check.parts.end(); });
  if (status == kStatuses.end()) return;
  check.status = *status;
  const CheckPart& decides = *of(*status);
  check.why = decides.why;
  if (*status == "pass" || *status == "skip") {
    const auto passed = std::ranges::count(check.parts, "pass", &CheckPart::status);
    if (passed > 0) {
      check.observed =
          fmt::format("as expected in {}", Plural(static_cast<uint64_t>(passed), "part"));
    }
    return;
  }
  check.expected = fmt::format("{}: {}", decides.name, decides.expected);
  check.observed = fmt::format("{}: {}", decides.name, decides.observed);
}

}  // namespace

std::vector<CheckRow> FoldChecks(std::vector<CheckRow> rows) {
  std::vector<CheckRow> checks;
  for (CheckRow& row : rows) {
    const size_t slash = row.name.find('/');
    const std::string name = row.name.substr(0, slash);
    if (slash == std::string::npos && FindCheck(name) == nullptr) {
      checks.push_back(std::move(row));
      continue;
    }
    auto check = std::ranges::find(checks, name, &CheckRow::name);
    if (check == checks.end()) {
      checks.push_back({.name = name});
      check = checks.end() - 1;
    }
    check->parts.push_back({.name = slash == std::string::npos ? "all" : row.name.substr(slash + 1),
                            .status = std::move(row.status),
                            .expected = std::move(row.expected),
                            .observed = std::move(row.observed),
                            .why = std::move(row.why)});
  }
  for (CheckRow& check : checks) {
    if (!check.parts.empty()) Conclude(check);
  }
  return checks;
}

}  // namespace verbscope
