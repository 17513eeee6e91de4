// The C++ half of the interoperation test with hdr-histogram-js (see run.sh).
//
//   hdr_vectors write   prints histograms of ours, one JSON object a line: name, encoded text, and
//                       what a reader must find in it
//   hdr_vectors read    decodes lines "NAME TEXT" from standard input and prints the same objects
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>

#include "core/histogram/hdr_codec.h"
#include "core/histogram/histogram.h"

namespace verbscope {
namespace {

// Ranks in 1/10,000 of the count; the vectors have counts divisible by that, so that every
// implementation means the same sample whatever it rounds.
constexpr std::array<uint64_t, 7> kPartsPer10000 = {100, 2500, 5000, 9000, 9900, 9990, 10'000};

void Print(const std::string& name, const Histogram& histogram, const std::string& text) {
  nlohmann::json percentiles = nlohmann::json::object();
  for (const uint64_t parts : kPartsPer10000) {
    // By bucket, not clamped to the exact maximum, which the format does not carry.
    const int64_t value = histogram.ValueAtRank(histogram.count() * parts / 10'000).lowest_ns;
    percentiles[fmt::format("{}", static_cast<double>(parts) / 100)] =
        Histogram::RangeOf(Histogram::IndexOf(value)).highest_ns;
  }
  nlohmann::json buckets = nlohmann::json::array();
  histogram.ForEachBucket([&](int64_t from, int64_t to, uint64_t count) {
    buckets.push_back({from, to, count});
  });
  const nlohmann::json line = {{"name", name},
                               {"text", text},
                               {"count", histogram.count()},
                               {"min_ns", Histogram::RangeOf(histogram.FirstIndex()).lowest_ns},
                               {"max_ns", Histogram::RangeOf(histogram.LastIndex()).highest_ns},
                               {"percentiles_ns", percentiles},
                               {"buckets", buckets}};
  std::cout << line.dump() << '\n';
}

void Write() {
  const auto print = [](const std::string& name, const Histogram& histogram) {
    Print(name, histogram, EncodeHdrV2(histogram));
  };
  print("empty", Histogram());

  Histogram same;
  for (int i = 0; i < 10'000; ++i) same.Record(1234);
  print("one value", same);

  Histogram steps;
  for (int64_t i = 0; i < 10'000; ++i) steps.Record((1 + i % 1000) * 1000);
  print("1 to 1000 us", steps);

  Histogram edges;
  for (int i = 0; i < 2500; ++i) {
    for (const int64_t ns : {int64_t{1}, int64_t{2047}, int64_t{2048}, Histogram::kHighestNs}) {
      edges.Record(ns);
    }
  }
  print("edges of the range", edges);

  std::mt19937_64 random(1);
  for (const double sigma : {0.05, 1.0, 4.0}) {
    std::lognormal_distribution<double> latency(std::log(2000), sigma);
    Histogram histogram;
    for (int i = 0; i < 1'000'000; ++i) {
      histogram.Record(static_cast<int64_t>(std::clamp(latency(random), 1.0, 1e11)));
    }
    print(fmt::format("log-normal sigma {}", sigma), histogram);
  }

  Histogram large;
  large.AddToBucket(Histogram::IndexOf(2000), 9'000'000'000'000);
  large.AddToBucket(Histogram::IndexOf(90'000'000), 1'000'000'000'000);
  print("ten million million samples", large);
}

// Exit code: 1 if a line does not decode.
int Read() {
  int result = 0;
  std::string line;
  while (std::getline(std::cin, line)) {
    const size_t space = line.rfind(' ');
    const std::string name = line.substr(0, space);
    const std::string text = space == std::string::npos ? "" : line.substr(space + 1);
    if (const Expected<Histogram> histogram = DecodeHdrV2(text)) {
      Print(name, *histogram, text);
    } else {
      std::cout << nlohmann::json({{"name", name}, {"error", histogram.error().ToText()}}).dump()
                << '\n';
      result = 1;
    }
  }
  return result;
}

}  // namespace
}  // namespace verbscope

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): out of memory only
  const std::string_view mode = argc == 2 ? argv[1] : "";
  if (mode == "write") {
    verbscope::Write();
    return 0;
  }
  if (mode == "read") return verbscope::Read();
  std::cerr << "usage: hdr_vectors write|read\n";
  return 1;
}
