#include "core/gates/judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/gates/bounds.h"
#include "core/gates/figures.h"
#include "core/record/outcome.h"
#include "core/record/point_text.h"
#include "core/statistics/rank_sum.h"

namespace verbscope {
namespace {

GateOutcome Failed(std::string why) { return {.status = "fail", .why = std::move(why)}; }

// What `baseline` stands for in a judgement of `result`; absent: the baselines have no such result.
std::optional<double> BaselineOf(const Gates& gates, const GateMetric& metric,
                                 const Result& result) {
  std::vector<double> figures;
  for (const Record& baseline : gates.baselines) {
    for (const Result& known : baseline.results) {
      if (Identity(known.point) != Identity(result.point) || known.side != result.side ||
          !known.complete)
        continue;
      const std::optional<double> figure = FigureOf(metric, known);
      if (figure) figures.push_back(*figure);
    }
  }
  if (figures.empty()) return std::nullopt;
  return MedianOf(std::move(figures));
}

GateOutcome JudgeResult(const Assertion& assertion, const Result& result, double limit) {
  const GateMetric& metric = assertion.metric;
  if (metric.is_latency() && result.metrics.latency->samples == 0) return Failed("no sample");
  if (metric.kind == MetricKind::kPercentile) {
    return JudgePercentile(*result.metrics.latency, *metric.percentile, assertion.op, limit);
  }
  if (metric.kind == MetricKind::kMean) {
    return JudgeMean(*result.metrics.latency, assertion.op, limit);
  }
  const std::optional<double> figure = FigureOf(metric, result);
  if (!figure) return Failed("the run could not tell it");
  if (metric.kind == MetricKind::kStdev && result.metrics.latency->samples < 2) {
    return {.status = "inconclusive",
            .observed = figure,
            .limit = limit,
            .samples = 1,
            .samples_needed = 2,
            .why = "a single sample does not deviate"};
  }
  GateOutcome outcome = JudgeExact(*figure, assertion.op, limit);
  outcome.samples = SamplesOf(metric, result);
  outcome.effective_samples = outcome.samples;
  return outcome;
}

GateOutcome JudgeOne(const Gates& gates, const Assertion& assertion, const Result& result) {
  double limit = assertion.limit;
  if (assertion.baseline_factor) {
    const std::optional<double> baseline = BaselineOf(gates, assertion.metric, result);
    if (!baseline) {
      GateOutcome outcome = Failed("the baseline has no result of the same point and side");
      outcome.observed = FigureOf(assertion.metric, result);
      return outcome;
    }
    limit = *baseline * *assertion.baseline_factor;
    if (!std::isfinite(limit)) return Failed("the baseline times the factor is no number");
  }
  GateOutcome outcome = JudgeResult(assertion, result, limit);
  if (!result.complete && outcome.status == "pass") {
    outcome.status = "inconclusive";
    outcome.why = "the run broke before this result was complete";
  }
  return outcome;
}

// Of two outcomes the one that an engineer must see.
int Severity(const GateOutcome& outcome) {
  return outcome.status == "fail" ? 2 : outcome.status == "pass" ? 0 : 1;
}

// How far beyond its limit, of outcomes of one assertion: the larger, the worse.
double Distance(const Assertion& assertion, const GateOutcome& outcome) {
  const std::optional<double>& value = outcome.bound ? outcome.bound : outcome.observed;
  if (!value || !outcome.limit) return 0;
  const double scale = std::max(std::abs(*outcome.limit), 1e-12);
  const double above = (*value - *outcome.limit) / scale;
  if (IsEquality(assertion.op)) return std::abs(above);
  return IsUpper(assertion.op) ? above : -above;
}

std::string WhyNothing(const Assertion& assertion, std::span<const Result> results) {
  if (assertion.metric.kind != MetricKind::kCounter) {
    return fmt::format("no result {}has {}", assertion.scope.empty() ? "" : "in the scope ",
                       ToText(assertion.metric));
  }
  std::string known;
  for (const Result& result : results) {
    if (!InScope(assertion.scope, result)) continue;
    for (const auto& [name, change] : result.metrics.counters) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
    }
    if (!known.empty()) break;
  }
  return known.empty()
             ? "the devices count nothing"
             : fmt::format("no device counts {}; known are {}", assertion.metric.counter, known);
}

GateRow JudgeAssertion(const Gates& gates, const Assertion& assertion,
                       std::span<const Result> results) {
  GateRow row{.expression = assertion.text, .unit = std::string(UnitOf(assertion.metric))};
  for (const Result& result : results) {
    if (!IsAbout(assertion.metric, result) || !InScope(assertion.scope, result)) continue;
    row.results.push_back({.point = result.point,
                           .side = result.side,
                           .run = result.run,
                           .outcome = JudgeOne(gates, assertion, result)});
  }
  if (row.results.empty()) {
    row.outcome = Failed(WhyNothing(assertion, results));
    if (!assertion.baseline_factor) row.outcome.limit = assertion.limit;
    return row;
  }
  const auto worst = std::ranges::max_element(row.results, [&](const auto& a, const auto& b) {
    const int first = Severity(a.outcome);
    const int second = Severity(b.outcome);
    if (first != second) return first < second;
    return Distance(assertion, a.outcome) < Distance(assertion, b.outcome);
  });
  row.outcome = worst->outcome;
  return row;
}

}  // namespace

Expected<OnInconclusive> ParseOnInconclusive(std::string_view text) {
  if (text == "report") return OnInconclusive::kReport;
  if (text == "fail") return OnInconclusive::kFail;
  if (text == "pass") return OnInconclusive::kPass;
  if (text == "extend") return OnInconclusive::kExtend;
  return Fail(UsageError("it is not report, fail, pass or extend"));
}

std::vector<GateRow> Judge(const Gates& gates, std::span<const Result> results) {
  std::vector<GateRow> rows;
  for (const Assertion& assertion : gates.assertions) {
    if (assertion.metric.is_of_run()) continue;
    GateRow row = JudgeAssertion(gates, assertion, results);
    // What is about other results of the run says nothing about these.
    if (!row.results.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<GateRow> Judge(const Gates& gates, const Record& record) {
  std::vector<GateRow> rows;
  for (const Assertion& assertion : gates.assertions) {
    if (!assertion.metric.is_of_run()) {
      rows.push_back(JudgeAssertion(gates, assertion, record.results));
      continue;
    }
    GateRow row{.expression = assertion.text};
    double limit = assertion.limit;
    if (assertion.baseline_factor) {
      std::vector<double> errors;
      for (const Record& baseline : gates.baselines) errors.push_back(ErrorsOf(baseline));
      limit = errors.empty() ? 0 : MedianOf(std::move(errors)) * *assertion.baseline_factor;
    }
    row.outcome = JudgeExact(ErrorsOf(record), assertion.op, limit);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string_view VerdictOf(std::span<const GateRow> gates, OnInconclusive policy) {
  const auto any = [gates](std::string_view status) {
    return std::ranges::any_of(
        gates, [status](const GateRow& row) { return row.outcome.status == status; });
  };
  if (any("fail")) return "fail";
  if (!any("inconclusive") || policy == OnInconclusive::kPass) return "pass";
  return policy == OnInconclusive::kFail ? "fail" : "inconclusive";
}

void CountGates(OnInconclusive policy, Record& record) {
  if (record.error) return;
  const std::string_view gates = VerdictOf(record.gates, policy);
  const bool worse = gates == "fail" || (gates == "inconclusive" && record.verdict == "pass");
  if (worse) SetOutcome(gates, record);
}

int64_t MoreNs(std::span<const GateRow> gates, int64_t measured_ns, int64_t longest_ns) {
  // Nothing can be mended by more samples once an assertion has failed.
  if (VerdictOf(gates, OnInconclusive::kReport) != "inconclusive") return 0;
  const int64_t left_ns = longest_ns - measured_ns;
  constexpr int64_t kLeastNs = 50'000'000;
  if (left_ns < kLeastNs || measured_ns <= 0) return 0;
  // An estimate from few samples is rough: a little more than it asks for, so that one extension
  // mostly does.
  constexpr double kSlack = 1.15;
  double factor = 1;
  for (const GateRow& row : gates) {
    for (const GateResult& result : row.results) {
      const GateOutcome& outcome = result.outcome;
      if (outcome.status != "inconclusive") continue;
      if (!outcome.samples_needed || !outcome.samples || *outcome.samples == 0) return left_ns;
      factor = std::max(factor, kSlack * static_cast<double>(*outcome.samples_needed) /
                                    static_cast<double>(*outcome.samples));
    }
  }
  const double more_ns = static_cast<double>(measured_ns) * (factor - 1);
  if (more_ns >= static_cast<double>(left_ns)) return left_ns;
  return std::max(kLeastNs, static_cast<int64_t>(std::ceil(more_ns)));
}

Status CheckBaselines(const Gates& gates, std::string_view command) {
  const auto against = std::ranges::find_if(gates.assertions, [](const Assertion& assertion) {
    return assertion.baseline_factor.has_value();
  });
  if (against != gates.assertions.end() && gates.baselines.empty()) {
    return Fail(
        UsageError(fmt::format("assertion '{}' needs a baseline", against->text), {},
                   "give --baseline FILE, a document that this command wrote with --json-file"));
  }
  for (const Record& baseline : gates.baselines) {
    if (baseline.command != command) {
      return Fail(
          UsageError(fmt::format("the baseline is of {}, not of {}", baseline.command, command), {},
                     "give --baseline a document of the same command"));
    }
    if (baseline.error || baseline.results.empty()) {
      return Fail(UsageError("the baseline is of a run that broke, or has no result", {},
                             "make a new baseline from a run that passed"));
    }
  }
  return {};
}

}  // namespace verbscope
