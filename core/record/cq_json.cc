// The numbers of cq-scale and cq-overrun as JSON.
#include "core/record/json_parts.h"

namespace verbscope {

using nlohmann::json;

OrderedJson ScaleJson(const ScaleMetrics& scale) {
  return {
      {"threads", scale.threads},
      {"cqe", scale.cqe},
      {"cores", scale.cores},
      {"speedup", OrNull(scale.speedup)},
      {"cpu_us_per_message", OrNull(scale.cpu_us_per_message)},
      {"completions_per_poll", OrNull(scale.completions_per_poll)},
  };
}

Expected<ScaleMetrics> ScaleFromJson(const json& object) {
  ScaleMetrics scale;
  JsonFields fields(object, "scale", ErrorClass::kRun);
  fields.Get("threads", scale.threads);
  fields.Get("cqe", scale.cqe);
  fields.Get("cores", scale.cores);
  fields.Get("speedup", scale.speedup);
  fields.Get("cpu_us_per_message", scale.cpu_us_per_message);
  fields.Get("completions_per_poll", scale.completions_per_poll);
  return Finish(fields, scale);
}

OrderedJson OverrunJson(const OverrunMetrics& overrun) {
  return {
      {"cqe", overrun.cqe},
      {"outstanding", overrun.outstanding},
      {"most_unpolled", overrun.most_unpolled},
      {"delivered", overrun.delivered},
      {"flushed", overrun.flushed},
      {"lost", overrun.lost},
      {"event", TextOrNull(overrun.event)},
      {"qp_state", TextOrNull(overrun.qp_state)},
      {"cq_usable", OrNull(overrun.cq_usable)},
  };
}

Expected<OverrunMetrics> OverrunFromJson(const json& object) {
  OverrunMetrics overrun;
  JsonFields fields(object, "overrun", ErrorClass::kRun);
  fields.Get("cqe", overrun.cqe);
  fields.Get("outstanding", overrun.outstanding);
  fields.Get("most_unpolled", overrun.most_unpolled);
  fields.Get("delivered", overrun.delivered);
  fields.Get("flushed", overrun.flushed);
  fields.Get("lost", overrun.lost);
  GetText(fields, "event", overrun.event);
  GetText(fields, "qp_state", overrun.qp_state);
  fields.Get("cq_usable", overrun.cq_usable);
  return Finish(fields, std::move(overrun));
}

}  // namespace verbscope
