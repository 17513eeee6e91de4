#include "core/record/point_members.h"

#include <fmt/core.h>

namespace verbscope {
namespace {

template <class T>
std::optional<std::string> Text(const std::optional<T>& value) {
  return value ? std::optional(fmt::format("{}", *value)) : std::nullopt;
}

}  // namespace

std::vector<PointMember> PointMembers(const Point& point) {
  return {
      {"op", point.op},
      {"size_bytes", fmt::format("{}", point.size_bytes)},
      {"qps", fmt::format("{}", point.qps)},
      {"cqs", Text(point.cqs)},
      {"threads", Text(point.threads)},
      {"cq_depth", Text(point.cq_depth)},
      {"wait", point.wait},
      {"spin_ns", Text(point.spin_ns)},
      {"rate_per_s", Text(point.rate_per_s)},
      {"busy_share_percent", Text(point.busy_share_percent)},
      {"moderation", point.moderation},
      {"tx_depth", Text(point.tx_depth)},
      {"timer_code", Text(point.timer_code)},
      {"imm", Text(point.imm)},
      {"atomic_op", point.atomic_op},
      {"bidirectional", Text(point.bidirectional)},
      {"post_list", Text(point.post_list)},
      {"inline", Text(point.inline_data)},
      {"signal_every", Text(point.signal_every)},
      {"variant", point.variant},
  };
}

}  // namespace verbscope
