// What rnr-test measured, as tables: waits by timer code, times until the error by rnr_retry, and
// what starvation costs.
#include <fmt/core.h>

#include <algorithm>

#include "core/record/percentile.h"
#include "reporters/text_parts.h"

namespace verbscope {
namespace {

constexpr size_t kCodeColumns = 11;
constexpr size_t kTimeColumns = 13;

std::string Time(const std::optional<int64_t>& ns) {
  return PadLeft(TimeColumn(Real(ns)), kTimeColumns);
}

std::string Count(const std::optional<uint64_t>& count) {
  return count ? CountText(*count) : std::string("not counted");
}

void Titles(std::initializer_list<std::string_view> titles, size_t first, Canvas& canvas) {
  std::string line;
  for (const std::string_view title : titles) {
    line += PadLeft(title, line.empty() ? first : kTimeColumns);
  }
  canvas.Line(canvas.In(Ink::kDim, line));
}

std::optional<uint64_t> Naks(const RnrMetrics& rnr) {
  uint64_t sum = 0;
  for (const RnrAttempt& attempt : rnr.attempts) {
    if (!attempt.naks) return std::nullopt;
    sum += *attempt.naks;
  }
  return sum;
}

std::string Code(const Result& result) {
  const std::string code =
      result.point.timer_code ? std::to_string(*result.point.timer_code) : std::string("-");
  return PadLeft(code, kCodeColumns - 1) + (result.complete ? " " : "*");
}

void DrawWaits(const std::vector<const Result*>& rows, Canvas& canvas) {
  if (rows.empty()) return;
  canvas.Blank();
  canvas.Wrapped(0, "receiver not ready: one wait of the sender, by RNR timer code", Ink::kBold);
  canvas.Wrapped(2,
                 "nominal: the least after one RNR NAK; measured: the slope of the time until "
                 "RNR_RETRY_EXC_ERR over rnr_retry; NAKs: of all attempts");
  canvas.Blank();
  Titles({"timer code", "nominal", "measured", "ratio", "NAKs"}, kCodeColumns, canvas);
  for (const Result* row : rows) {
    const RnrMetrics& rnr = *row->metrics.rnr;
    canvas.Line(Code(*row) + Time(rnr.nominal_ns) + Time(rnr.measured_ns) +
                PadLeft(rnr.ratio ? fmt::format("{:.3f}", *rnr.ratio) : "-", kTimeColumns) +
                PadLeft(Count(Naks(rnr)), kTimeColumns));
  }
}

void DrawAttempts(const Result& result, Canvas& canvas) {
  const RnrMetrics& rnr = *result.metrics.rnr;
  canvas.Blank();
  canvas.Wrapped(0,
                 fmt::format("time until RNR_RETRY_EXC_ERR, {} in flight, timer code {}, {}",
                             result.point.tx_depth.value_or(1), result.point.timer_code.value_or(0),
                             TimeText(static_cast<double>(rnr.nominal_ns))),
                 Ink::kBold);
  canvas.Wrapped(2, "predicted: rnr_retry waits, the least; tries: RNR NAKs received");
  canvas.Blank();
  Titles({"rnr_retry", "predicted", "measured", "tries"}, kCodeColumns, canvas);
  for (const RnrAttempt& attempt : rnr.attempts) {
    canvas.Line(PadLeft(std::to_string(attempt.rnr_retry), kCodeColumns - 1) + " " +
                Time(attempt.predicted_ns) + Time(attempt.time_to_error_ns) +
                PadLeft(Count(attempt.naks), kTimeColumns));
  }
}

void DrawStarved(const std::vector<const Result*>& rows, Canvas& canvas) {
  if (rows.empty()) return;
  const Point& point = rows.front()->point;
  canvas.Blank();
  canvas.Wrapped(0,
                 fmt::format("starved: {} in flight, {}, rnr_retry 7", point.tx_depth.value_or(1),
                             canvas.Safe(point.variant.value_or("fewer receives"))),
                 Ink::kBold);
  canvas.Wrapped(2, DefinitionText(*rows.front()->metrics.latency, canvas.Safe(point.op)));
  canvas.Blank();
  Titles({"timer code", "nominal", "p50", "max", "messages/s"}, kCodeColumns, canvas);
  for (const Result* row : rows) {
    const Metrics& metrics = row->metrics;
    const std::optional<double> rate =
        metrics.bandwidth ? metrics.bandwidth->msg_per_s : std::nullopt;
    canvas.Line(Code(*row) + Time(metrics.rnr->nominal_ns) +
                Time(AtPercent(*metrics.latency, "50")) + Time(metrics.latency->max_ns) +
                PadLeft(rate ? fmt::format("{:.1f}", *rate) : "-", kTimeColumns));
  }
}

}  // namespace

void DrawRnr(const std::vector<Result>& results, Canvas& canvas) {
  std::vector<const Result*> waits;
  std::vector<const Result*> starved;
  std::vector<const Result*> exhausted;
  for (const Result& result : results) {
    if (!result.metrics.rnr) continue;
    const bool alone = result.point.tx_depth.value_or(1) == 1;
    (result.metrics.latency ? starved : alone ? waits : exhausted).push_back(&result);
  }
  DrawWaits(waits, canvas);
  for (const Result* result : exhausted) DrawAttempts(*result, canvas);
  DrawStarved(starved, canvas);
}

}  // namespace verbscope
