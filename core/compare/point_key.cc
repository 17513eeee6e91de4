#include "core/compare/point_key.h"

#include <fmt/core.h>

#include <optional>
#include <type_traits>

namespace verbscope {
namespace {

template <class T>
std::string TextOf(const std::optional<T>& member) {
  if (!member) return {};
  if constexpr (std::is_same_v<T, bool>) {
    return *member ? "yes" : "no";
  } else {
    return fmt::format("{}", *member);
  }
}

// What is absent from a point is not done.
std::string Done(const std::optional<bool>& member) { return member.value_or(false) ? "yes" : ""; }

}  // namespace

std::vector<std::pair<std::string_view, std::string>> PointMembers(const Point& point) {
  return {
      {"op", point.op},
      {"size_bytes", std::to_string(point.size_bytes)},
      {"qps", std::to_string(point.qps)},
      {"cqs", TextOf(point.cqs)},
      {"threads", TextOf(point.threads)},
      {"cq_depth", TextOf(point.cq_depth)},
      {"wait", point.wait},
      {"spin_ns", TextOf(point.spin_ns)},
      {"rate_per_s", point.busy_share_percent ? "" : TextOf(point.rate_per_s)},
      {"busy_share_percent", TextOf(point.busy_share_percent)},
      {"moderation", TextOf(point.moderation)},
      {"tx_depth", TextOf(point.tx_depth)},
      {"timer_code", TextOf(point.timer_code)},
      {"imm", Done(point.imm)},
      {"atomic_op", TextOf(point.atomic_op)},
      {"bidirectional", Done(point.bidirectional)},
      {"post_list", TextOf(point.post_list)},
      {"inline", TextOf(point.inline_data)},
      {"signal_every", TextOf(point.signal_every)},
      {"variant", TextOf(point.variant)},
  };
}

std::string PointKey(const Point& point, const std::set<std::string>& ignored) {
  std::string key;
  for (const auto& [name, text] : PointMembers(point)) {
    if (ignored.contains(std::string(name))) continue;
    // With its length in front no text can pass for two members.
    key += fmt::format("{}:{};", text.size(), text);
  }
  return key;
}

}  // namespace verbscope
