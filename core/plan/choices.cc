// The small choices of a plan that are written as words.
#include <fmt/core.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "core/plan/input_text.h"
#include "core/plan/plan.h"

namespace verbscope {
namespace {

template <class T>
using Words = std::array<std::pair<T, std::string_view>, 2>;

constexpr Words<AtomicOp> kAtomicOps = {
    {{AtomicOp::kFetchAdd, "fetch-add"}, {AtomicOp::kCompareSwap, "compare-swap"}}};
constexpr Words<Arrival> kArrivals = {{{Arrival::kFixed, "fixed"}, {Arrival::kPoisson, "poisson"}}};

template <class T>
std::string WordOf(const Words<T>& words, T choice) {
  return std::string((choice == words[0].first ? words[0] : words[1]).second);
}

template <class T>
Expected<T> ChoiceOf(const Words<T>& words, std::string_view text) {
  for (const auto& [choice, word] : words) {
    if (word == text) return choice;
  }
  return Fail(UsageError(
      fmt::format("{} is neither {} nor {}", Quoted(text), words[0].second, words[1].second), {},
      "give one of them, or leave it out"));
}

}  // namespace

std::string ToText(AtomicOp op) { return WordOf(kAtomicOps, op); }
Expected<AtomicOp> ParseAtomicOp(std::string_view text) { return ChoiceOf(kAtomicOps, text); }
std::string ToText(Arrival arrival) { return WordOf(kArrivals, arrival); }
Expected<Arrival> ParseArrival(std::string_view text) { return ChoiceOf(kArrivals, text); }

std::string ToText(Moderation moderation) {
  return fmt::format("{}:{}us", moderation.count, moderation.period_us);
}

Expected<Moderation> ParseModeration(std::string_view text) {
  std::string_view rest = text;
  uint64_t count = 0;
  if (TakeDigits(rest, count) && count >= 1 && count <= UINT16_MAX && rest.starts_with(':')) {
    const Expected<int64_t> period = ParseDuration(rest.substr(1));
    constexpr int64_t kUs = 1000;
    if (period && *period % kUs == 0 && *period >= kUs && *period <= UINT16_MAX * kUs) {
      return Moderation{.count = static_cast<uint16_t>(count),
                        .period_us = static_cast<uint16_t>(*period / kUs)};
    }
  }
  return Fail(
      UsageError(fmt::format("{} is not COUNT:PERIOD, a number of completions from 1 to 65535 "
                             "and a time from 1us to 65535us",
                             Quoted(text)),
                 {}, "write it as 16:8us"));
}

}  // namespace verbscope
