#include "core/compare/point_key.h"

#include <fmt/core.h>

#include <string_view>

#include "core/record/point_members.h"
#include "core/record/point_text.h"

namespace verbscope {

std::vector<std::pair<std::string_view, std::string>> KeyMembers(const Point& point) {
  std::vector<std::pair<std::string_view, std::string>> members;
  for (const auto& [name, text] : PointMembers(Identity(point))) {
    // What is absent from a point is not done, but for "inline", which is absent where it is
    // neither.
    const bool done = name == "imm" || name == "bidirectional";
    std::string_view value = text ? std::string_view(*text) : std::string_view();
    if (done || name == "inline") {
      if (value == "true") value = "yes";
      if (value == "false") value = done ? "" : "no";
    }
    members.emplace_back(name, value);
  }
  return members;
}

std::string PointKey(const Point& point, const std::set<std::string>& ignored) {
  std::string key;
  for (const auto& [name, text] : KeyMembers(point)) {
    if (ignored.contains(std::string(name))) continue;
    // With its length in front no text can pass for two members.
    key += fmt::format("{}:{};", text.size(), text);
  }
  return key;
}

}  // namespace verbscope
