// Result as JSON: its identity, metrics and time series.
#include "core/record/json_parts.h"

namespace verbscope {

// Members that do not apply are absent, not null: an identity has no unknown parts.
OrderedJson PointJson(const Point& point) {
  OrderedJson object = {
      {"op", Name(point.op)}, {"size_bytes", point.size_bytes}, {"qps", point.qps}};
  if (point.cqs) object["cqs"] = *point.cqs;
  if (point.threads) object["threads"] = *point.threads;
  if (point.cq_depth) object["cq_depth"] = *point.cq_depth;
  object["wait"] = Name(point.wait);
  if (point.spin_ns) object["spin_ns"] = *point.spin_ns;
  if (point.rate_per_s) object["rate_per_s"] = Number(*point.rate_per_s);
  if (point.busy_share_percent) {
    object["busy_share_percent"] = Number(*point.busy_share_percent);
  }
  if (point.moderation) object["moderation"] = Name(*point.moderation);
  if (point.tx_depth) object["tx_depth"] = *point.tx_depth;
  if (point.timer_code) object["timer_code"] = *point.timer_code;
  if (point.imm) object["imm"] = *point.imm;
  if (point.atomic_op) object["atomic_op"] = *point.atomic_op;
  if (point.bidirectional) object["bidirectional"] = *point.bidirectional;
  if (point.post_list) object["post_list"] = *point.post_list;
  if (point.inline_data) object["inline"] = *point.inline_data;
  if (point.signal_every) object["signal_every"] = *point.signal_every;
  if (point.variant) object["variant"] = Name(*point.variant);
  return object;
}

Expected<Point> PointFromJson(const nlohmann::json& object) {
  Point point;
  JsonFields fields(object, "point", ErrorClass::kRun);
  GetName(fields, "op", point.op);
  fields.Get("size_bytes", point.size_bytes);
  fields.Get("qps", point.qps);
  fields.Get("cqs", point.cqs);
  fields.Get("threads", point.threads);
  fields.Get("cq_depth", point.cq_depth);
  GetName(fields, "wait", point.wait);
  fields.Get("spin_ns", point.spin_ns);
  fields.Get("rate_per_s", point.rate_per_s);
  fields.Get("busy_share_percent", point.busy_share_percent);
  fields.Get("moderation", point.moderation);
  if (point.moderation) point.moderation = Printable(*point.moderation, kMaxTextBytes);
  fields.Get("tx_depth", point.tx_depth);
  fields.Get("timer_code", point.timer_code);
  fields.Get("imm", point.imm);
  fields.Get("atomic_op", point.atomic_op);
  if (point.atomic_op) point.atomic_op = Printable(*point.atomic_op, kMaxTextBytes);
  fields.Get("bidirectional", point.bidirectional);
  fields.Get("post_list", point.post_list);
  fields.Get("inline", point.inline_data);
  fields.Get("signal_every", point.signal_every);
  fields.Get("variant", point.variant);
  if (point.variant) point.variant = Printable(*point.variant, kMaxTextBytes);
  return Finish(fields, std::move(point));
}

namespace {

using nlohmann::json;

OrderedJson IntervalJson(const IntervalRow& row) {
  return {
      {"from_s", Number(row.from_s)},
      {"to_s", Number(row.to_s)},
      {"messages", row.messages},
      {"p50_ns", OrNull(row.p50_ns)},
      {"p99_ns", OrNull(row.p99_ns)},
      {"max_ns", OrNull(row.max_ns)},
      {"gbit_per_s", OrNull(row.gbit_per_s)},
  };
}

Expected<IntervalRow> IntervalFromJson(const json& object) {
  IntervalRow row;
  JsonFields fields(object, "intervals[]", ErrorClass::kRun);
  GetNumber(fields, "from_s", row.from_s);
  GetNumber(fields, "to_s", row.to_s);
  fields.Get("messages", row.messages);
  fields.Get("p50_ns", row.p50_ns);
  fields.Get("p99_ns", row.p99_ns);
  fields.Get("max_ns", row.max_ns);
  fields.Get("gbit_per_s", row.gbit_per_s);
  return Finish(fields, row);
}

}  // namespace

OrderedJson ToJson(const Result& result, ResultForm form) {
  OrderedJson intervals = OrderedJson::array();
  for (const IntervalRow& row : result.intervals) intervals.push_back(IntervalJson(row));
  OrderedJson object = {
      {"point", PointJson(result.point)},
      {"side", Name(result.side)},
      {"run", result.run},
      {"complete", result.complete},
      {"metrics", MetricsJson(result.metrics, form)},
      {"intervals", std::move(intervals)},
  };
  if (result.set) object["set"] = Name(*result.set);
  return object;
}

Expected<Result> ResultFromJson(const json& object) {
  Result result;
  JsonFields fields(object, "result", ErrorClass::kRun);
  GetName(fields, "side", result.side);
  fields.Get("run", result.run);
  fields.Get("set", result.set);
  if (result.set) result.set = Printable(*result.set, kMaxTextBytes);
  fields.GetOr("complete", result.complete);
  std::optional<Metrics> metrics;
  GetObject(fields, "metrics", MetricsFromJson, metrics);
  GetRows(fields, "intervals", IntervalFromJson, result.intervals);
  GetPoint(fields, result.point);
  if (fields.ok() && !metrics) fields.Complain("metrics", "is missing");
  if (!fields.ok()) return Fail(fields.TakeError());
  result.metrics = std::move(*metrics);
  return result;
}

}  // namespace verbscope
