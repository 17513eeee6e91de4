#include "core/record/point_text.h"

#include <fmt/core.h>

#include "core/plan/plan.h"
#include "core/record/count_text.h"

namespace verbscope {
Point Identity(Point point) {
  if (point.busy_share_percent) point.rate_per_s.reset();
  return point;
}

std::string WaitText(const Point& point) {
  return point.spin_ns ? fmt::format("{}:{}", point.wait, DurationText(*point.spin_ns))
                       : point.wait;
}

std::string PointText(const Point& point, WithSize with_size) {
  std::string text = point.op;
  if (with_size == WithSize::kYes) text += " " + Plural(point.size_bytes, "byte");
  text += ", " + Plural(point.qps, "QP");
  if (point.cqs) text += ", " + Plural(*point.cqs, "CQ");
  if (point.cq_depth) text += fmt::format(" of {} entries", *point.cq_depth);
  if (point.threads) text += ", " + Plural(*point.threads, "thread");
  if (!point.wait.empty()) text += ", wait " + point.wait;
  if (point.spin_ns) text += ":" + DurationText(*point.spin_ns);
  if (point.rate_per_s) text += fmt::format(", {:g} messages/s offered", *point.rate_per_s);
  if (point.busy_share_percent) text += fmt::format(", {:g} % of busy", *point.busy_share_percent);
  if (point.moderation) text += fmt::format(", events held back {}", *point.moderation);
  if (point.tx_depth) text += fmt::format(", {} in flight", *point.tx_depth);
  if (point.timer_code) text += fmt::format(", timer code {}", *point.timer_code);
  if (point.post_list) text += fmt::format(", {} per post", *point.post_list);
  if (point.inline_data) text += *point.inline_data ? ", inline" : ", not inline";
  if (point.signal_every) text += fmt::format(", one in {} signalled", *point.signal_every);
  if (point.imm.value_or(false)) text += ", with immediate";
  if (point.atomic_op) text += ", " + *point.atomic_op;
  if (point.bidirectional.value_or(false)) text += ", both directions";
  if (point.variant) text += ", " + *point.variant;
  return text;
}

}  // namespace verbscope
