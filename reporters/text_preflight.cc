// The preflight of `doctor`: a line per property, grouped by what it is about; what is wrong comes
// with its symptom and the fix.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "reporters/text_parts.h"

namespace verbscope {
namespace {

constexpr size_t kValueColumn = 32;
constexpr size_t kDetailColumn = 10;

std::string_view PreflightMark(const std::string& status) {
  return status == "ok" ? "ok" : status == "warn" ? "WARN" : Mark(status);
}

Ink PreflightInk(const std::string& status) {
  return status == "ok" ? Ink::kGreen : status == "warn" ? Ink::kYellow : MarkInk(status);
}

bool IsWrong(const PreflightRow& row) { return row.status == "fail" || row.status == "warn"; }

void DrawRow(const PreflightRow& row, Canvas& canvas) {
  const std::string head =
      "  " + canvas.In(PreflightInk(row.status), PadRight(PreflightMark(row.status), 6)) + "  " +
      PadRight(canvas.Safe(row.name), kValueColumn - kDetailColumn);
  canvas.Hanging(head, kValueColumn, canvas.Safe(row.value),
                 row.status == "skip" ? Ink::kDim : Ink::kPlain);
  const auto detail = [&canvas](std::string_view label, const std::string& text) {
    if (text.empty()) return;
    canvas.Hanging(std::string(kDetailColumn, ' ') + canvas.In(Ink::kDim, PadRight(label, 9)),
                   kDetailColumn + 9, canvas.Safe(text));
  };
  const bool verbose = canvas.options().verbose;
  if (IsWrong(row) || verbose) detail("good", row.good);
  if (verbose) detail("file", row.file);
  detail("symptom", row.symptom);
  detail("fix", row.fix);
}

std::string CountsText(const std::vector<PreflightRow>& rows) {
  std::vector<std::string> parts;
  for (const char* status : {"fail", "warn", "ok", "skip"}) {
    const auto count = std::ranges::count(rows, status, &PreflightRow::status);
    if (count > 0) parts.push_back(fmt::format("{} {}", count, PreflightMark(status)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void DrawSummary(const std::vector<PreflightRow>& rows, Canvas& canvas) {
  canvas.Blank();
  const PreflightRow* first = FirstToFix(rows);
  if (first == nullptr) return canvas.Labelled("summary", CountsText(rows) + "; nothing to fix");
  canvas.Labelled("summary", CountsText(rows));
  canvas.Labelled("first",
                  fmt::format("fix {} of {}: {}", canvas.Safe(first->name),
                              canvas.Safe(first->about), canvas.Safe(first->fix)),
                  PreflightInk(first->status));
}

}  // namespace

void DrawPreflight(const std::vector<PreflightRow>& rows, Canvas& canvas) {
  if (rows.empty()) return;
  const bool verbose = canvas.options().verbose;
  std::vector<std::string> groups;
  for (const PreflightRow& row : rows) {
    if (std::ranges::count(groups, row.about) == 0) groups.push_back(row.about);
  }
  // "mlx5_0" before "mlx5_0 port 1", and the host before all.
  std::ranges::stable_sort(
      groups, {}, [](const std::string& about) { return about == "host" ? std::string() : about; });
  std::vector<std::string> skipped;
  for (const std::string& group : groups) {
    canvas.Blank();
    canvas.Wrapped(0, canvas.Safe(group), Ink::kBold);
    for (const PreflightRow& row : rows) {
      if (row.about != group) continue;
      if (row.status != "skip" || verbose) {
        DrawRow(row, canvas);
      } else if (const std::string name = canvas.Safe(row.name);
                 std::ranges::count(skipped, name) == 0) {
        skipped.push_back(name);
      }
    }
  }
  if (!skipped.empty()) {
    canvas.Blank();
    canvas.Labelled("skipped", fmt::format("{} (why: --verbose)", fmt::join(skipped, ", ")),
                    Ink::kDim);
  }
  DrawSummary(rows, canvas);
}

}  // namespace verbscope
