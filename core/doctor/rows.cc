#include "core/doctor/rows.h"

namespace verbscope {
namespace {

std::string WithSubject(std::string_view fix, const std::string& subject) {
  constexpr std::string_view kPlaceholder = "NAME";
  std::string text(fix);
  if (subject.empty()) return text;
  for (size_t at = 0; (at = text.find(kPlaceholder, at)) != text.npos; at += subject.size()) {
    text.replace(at, kPlaceholder.size(), subject);
  }
  return text;
}

}  // namespace

void PreflightRows::Add(const RowText& text, std::string_view status, const Place& place,
                        std::string value) {
  PreflightRow& row = rows_.emplace_back();
  row.name = text.name;
  row.status = status;
  row.about = place.about;
  row.value = std::move(value);
  row.file = place.file;
  row.good = text.good;
  if (status != "warn" && status != "fail") return;
  row.symptom = text.symptom;
  row.fix = WithSubject(text.fix, place.subject);
}

std::optional<std::string> TextOrSkip(const HostTree& tree, const RowText& text, const Place& place,
                                      PreflightRows& rows) {
  std::optional<std::string> value = tree.Text(place.file);
  if (value && !value->empty()) return value;
  rows.Skip(text, place, tree.Why(place.file));
  return std::nullopt;
}

std::optional<int> NumberOrSkip(const HostTree& tree, const RowText& text, const Place& place,
                                PreflightRows& rows) {
  const std::optional<std::string> read = TextOrSkip(tree, text, place, rows);
  if (!read) return std::nullopt;
  const std::optional<int> value = tree.Number(place.file);
  if (!value) rows.Skip(text, place, "not a number: " + read->substr(0, 40));
  return value;
}

}  // namespace verbscope
