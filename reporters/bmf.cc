#include "reporters/bmf.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/record/record_json.h"
#include "reporters/result_name.h"

namespace verbscope {
namespace {

using Json = nlohmann::ordered_json;

enum class Better { kSmaller, kBigger };

// One figure that a history may follow.
struct Figure {
  std::string measure;  // "latency-p99-ns"
  std::string title;    // "p99"
  std::string unit;
  Better better = Better::kSmaller;
  double value = 0;
  std::optional<double> low = {};
  std::optional<double> high = {};
  std::string extra = {};
};

struct Benchmark {
  std::string name;
  std::vector<Figure> figures;
};

void AddLatency(const LatencyMetrics& latency, std::vector<Figure>& figures) {
  const std::string samples =
      fmt::format("{} samples, {}", latency.samples, Printable(latency.definition));
  for (const PercentileRow& row : latency.percentiles) {
    if (!row.value_ns) continue;
    const std::string percent = Printable(row.percent);
    Figure figure{.measure = fmt::format("latency-p{}-ns", percent),
                  .title = "p" + percent,
                  .unit = "ns",
                  .value = static_cast<double>(*row.value_ns),
                  .extra = samples};
    if (row.interval) {
      figure.low = static_cast<double>(row.interval->low_ns);
      figure.high = static_cast<double>(row.interval->high_ns);
    }
    if (row.effective_samples) {
      figure.extra += fmt::format(", {} effective", *row.effective_samples);
    }
    figures.push_back(std::move(figure));
  }
  if (latency.mean_ns) {
    figures.push_back({.measure = "latency-mean-ns",
                       .title = "mean",
                       .unit = "ns",
                       .value = *latency.mean_ns,
                       .extra = samples});
  }
}

std::vector<Figure> FiguresOf(const Metrics& metrics) {
  std::vector<Figure> figures;
  if (metrics.latency && metrics.latency->samples > 0) AddLatency(*metrics.latency, figures);
  if (metrics.bandwidth) {
    const std::string extra = fmt::format("{} messages", metrics.bandwidth->messages);
    if (metrics.bandwidth->gbit_per_s) {
      figures.push_back({.measure = "bandwidth-gbit-per-s",
                         .title = "bandwidth",
                         .unit = "Gb/s",
                         .better = Better::kBigger,
                         .value = *metrics.bandwidth->gbit_per_s,
                         .extra = extra});
    }
    if (metrics.bandwidth->msg_per_s) {
      figures.push_back({.measure = "rate-msg-per-s",
                         .title = "message rate",
                         .unit = "messages/s",
                         .better = Better::kBigger,
                         .value = *metrics.bandwidth->msg_per_s,
                         .extra = extra});
    }
  }
  if (metrics.cpu && metrics.cpu->us_per_message) {
    figures.push_back({.measure = "cpu-us-per-message",
                       .title = "CPU per message",
                       .unit = "us",
                       .value = *metrics.cpu->us_per_message});
  }
  std::erase_if(figures, [](const Figure& figure) { return !std::isfinite(figure.value); });
  return figures;
}

std::vector<Benchmark> BenchmarksOf(std::span<const Record> records) {
  std::vector<Benchmark> benchmarks;
  UniqueNames names;
  for (const Record& record : records) {
    if (record.error || record.verdict == "error") continue;
    for (const Result& result : record.results) {
      if (!result.complete) continue;
      std::vector<Figure> figures = FiguresOf(result.metrics);
      if (figures.empty()) continue;
      benchmarks.push_back({names.Take(ResultName(record, result)), std::move(figures)});
    }
  }
  return benchmarks;
}

std::string Dump(const Json& value) {
  return value.dump(/*indent=*/2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) +
         "\n";
}

std::string RenderGha(std::span<const Record> records, Better better) {
  Json list = Json::array();
  for (const Benchmark& benchmark : BenchmarksOf(records)) {
    for (const Figure& figure : benchmark.figures) {
      if (figure.better != better) continue;
      Json entry = {{"name", benchmark.name + ": " + figure.title},
                    {"unit", figure.unit},
                    {"value", figure.value}};
      if (figure.low && figure.high) {
        entry["range"] = fmt::format("{} to {}", *figure.low, *figure.high);
      }
      if (!figure.extra.empty()) entry["extra"] = figure.extra;
      list.push_back(std::move(entry));
    }
  }
  return Dump(list);
}

}  // namespace

std::string RenderBmf(std::span<const Record> records) {
  Json document = Json::object();
  for (const Benchmark& benchmark : BenchmarksOf(records)) {
    Json& measures = document[benchmark.name] = Json::object();
    for (const Figure& figure : benchmark.figures) {
      Json& metric = measures[figure.measure] = {{"value", figure.value}};
      if (figure.low) metric["lower_value"] = *figure.low;
      if (figure.high) metric["upper_value"] = *figure.high;
    }
  }
  return Dump(document);
}

std::string RenderGhaSmaller(std::span<const Record> records) {
  return RenderGha(records, Better::kSmaller);
}

std::string RenderGhaBigger(std::span<const Record> records) {
  return RenderGha(records, Better::kBigger);
}

}  // namespace verbscope
