// Sizes, times, ways of waiting and inline limits as users write them. Everything here refuses what
// it does not know: a guess would measure something else than was asked for.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "core/plan/input_text.h"
#include "core/plan/plan.h"

namespace verbscope {
namespace {

struct TimeUnit {
  std::string_view name;
  int64_t ns;
};
// From large to small: DurationText prefers the first of equally short forms.
constexpr std::array<TimeUnit, 6> kTimeUnits = {{
    {"h", 3'600'000'000'000},
    {"m", 60'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
}};

// An hour is 2^13 * 3^2 * 5^11 ns, so a fraction of a unit that comes to whole ns has at most 13
// digits; and 13 digits times an hour stay far below 2^127.
constexpr size_t kMaxFractionDigits = 13;

// 2^10, 2^20 or 2^30 for K, M, G with or without i; nullopt for anything else.
std::optional<uint64_t> SizeFactor(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (suffix.size() > 2 || (suffix.size() == 2 && suffix[1] != 'i' && suffix[1] != 'I')) {
    return std::nullopt;
  }
  switch (suffix[0]) {
    case 'k':
    case 'K':
      return uint64_t{1} << 10;
    case 'm':
    case 'M':
      return uint64_t{1} << 20;
    case 'g':
    case 'G':
      return uint64_t{1} << 30;
    default:
      return std::nullopt;
  }
}

bool StartsWithDigit(std::string_view text) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9';
}

tl::unexpected<Error> BadSize(std::string_view text, std::string_view why) {
  return Fail(
      UsageError(fmt::format("size {} {}", Quoted(text), why), {},
                 "write a whole number of bytes, with K, M, G, Ki, Mi or Gi for powers of 1024"));
}

tl::unexpected<Error> BadDuration(std::string_view text, std::string_view why) {
  return Fail(
      UsageError(fmt::format("time {} {}", Quoted(text), why), {},
                 "write a number with ns, us, ms, s, m or h, such as 10s or 500ms; a bare number "
                 "is seconds"));
}

// `ns` in `unit` as an exact decimal of at least 1, or empty when that is not possible.
std::string InUnit(int64_t ns, const TimeUnit& unit) {
  if (ns < unit.ns) return "";
  std::string text = fmt::format("{}", ns / unit.ns);
  int64_t rest = ns % unit.ns;
  if (rest != 0) text += '.';
  for (size_t digits = 0; rest != 0; ++digits) {
    if (digits == kMaxFractionDigits) return "";  // thirds of an hour never end
    rest *= 10;
    text += static_cast<char>('0' + rest / unit.ns);
    rest %= unit.ns;
  }
  return text + std::string(unit.name);
}

// The digits after the point in ns, exactly; nullopt when they do not come to whole nanoseconds.
std::optional<int64_t> FractionNs(std::string_view digits, const TimeUnit& unit) {
  while (!digits.empty() && digits.back() == '0') digits.remove_suffix(1);
  if (digits.size() > kMaxFractionDigits) return std::nullopt;
  __int128 numerator = 0;
  __int128 denominator = 1;
  for (const char c : digits) {
    numerator = numerator * 10 + (c - '0');
    denominator *= 10;
  }
  numerator *= unit.ns;
  if (numerator % denominator != 0) return std::nullopt;
  return static_cast<int64_t>(numerator / denominator);
}

constexpr uint64_t kLargestOfAll = uint64_t{8} << 20;

}  // namespace

Expected<uint64_t> ParseSize(std::string_view text) {
  std::string_view rest = text;
  uint64_t number = 0;
  if (!StartsWithDigit(text)) return BadSize(text, "is not a number");
  if (!TakeDigits(rest, number)) return BadSize(text, "is too large");
  const std::optional<uint64_t> factor = SizeFactor(rest);
  if (!factor) return BadSize(text, fmt::format("has the unknown suffix {}", Quoted(rest)));
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(number, *factor, &bytes)) return BadSize(text, "is too large");
  return bytes;
}

Expected<int64_t> ParseDuration(std::string_view text) {
  std::string_view rest = text;
  if (!StartsWithDigit(text)) return BadDuration(text, "is not a number");
  uint64_t whole = 0;
  if (!TakeDigits(rest, whole)) return BadDuration(text, "is too long");
  std::string_view fraction;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits == 0) return BadDuration(text, "has no digit after the point");
    fraction = rest.substr(0, digits);
    rest.remove_prefix(digits);
  }
  if (rest.empty()) rest = "s";
  const auto unit = std::find_if(kTimeUnits.begin(), kTimeUnits.end(),
                                 [rest](const TimeUnit& row) { return row.name == rest; });
  if (unit == kTimeUnits.end()) {
    return BadDuration(text, fmt::format("has the unknown unit {}", Quoted(rest)));
  }
  int64_t ns = 0;
  if (whole > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
      __builtin_mul_overflow(static_cast<int64_t>(whole), unit->ns, &ns)) {
    return BadDuration(text, "is too long");
  }
  const std::optional<int64_t> fraction_ns = FractionNs(fraction, *unit);
  if (!fraction_ns) return BadDuration(text, "is finer than 1 ns");
  if (__builtin_add_overflow(ns, *fraction_ns, &ns)) return BadDuration(text, "is too long");
  return ns;
}

std::string DurationText(int64_t ns) {
  if (ns == 0) return "0s";
  if (ns < 0) return fmt::format("{}ns", ns);
  std::string shortest;
  for (const TimeUnit& unit : kTimeUnits) {
    const std::string text = InUnit(ns, unit);
    if (!text.empty() && (shortest.empty() || text.size() < shortest.size())) shortest = text;
  }
  return shortest;
}

Expected<std::vector<uint64_t>> ParseSizes(std::string_view text) {
  std::vector<uint64_t> sizes;
  if (text == "all" || text == "all+-1") {
    for (uint64_t size = 1; size <= kLargestOfAll; size *= 2) {
      sizes.push_back(size);
      if (text == "all") continue;
      if (size > 1) sizes.push_back(size - 1);
      // Above the largest lies the limit of many ports: one size must not refuse the whole sweep.
      if (size < kLargestOfAll) sizes.push_back(size + 1);
    }
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
  }
  const size_t colon = text.find(':');
  const auto first = ParseSize(text.substr(0, colon));
  if (!first) return Fail(first.error());
  const auto last = colon == text.npos ? first : ParseSize(text.substr(colon + 1));
  if (!last) return Fail(last.error());
  if (*first > *last) return BadSize(text, "runs downwards");
  if (*last > kMaxMessageBytes) return BadSize(text, "is above 2 GiB, the largest RC message");
  for (uint64_t size = *first; size < *last; size = size == 0 ? 1 : size * 2) {
    sizes.push_back(size);
  }
  sizes.push_back(*last);
  return sizes;
}

std::string ToText(WaitMode wait) {
  switch (wait.kind) {
    case WaitKind::kBusy:
      return "busy";
    case WaitKind::kBusyPause:
      return "busy:pause";
    case WaitKind::kEvent:
      return "event";
    case WaitKind::kSolicited:
      return "solicited";
    case WaitKind::kHybrid:
      return "hybrid:" + DurationText(wait.spin_ns);
  }
  return "busy";
}

Expected<WaitMode> ParseWaitMode(std::string_view text) {
  for (const WaitKind kind :
       {WaitKind::kBusy, WaitKind::kBusyPause, WaitKind::kEvent, WaitKind::kSolicited}) {
    if (text == ToText(WaitMode{kind, 0})) return WaitMode{kind, 0};
  }
  constexpr std::string_view kHybrid = "hybrid:";
  constexpr std::string_view kChoices =
      "choose busy, busy:pause, event, solicited or hybrid:TIME, such as hybrid:20us";
  if (text.substr(0, kHybrid.size()) != kHybrid) {
    return Fail(UsageError(fmt::format("way of waiting {} is not known", Quoted(text)), {},
                           std::string(kChoices)));
  }
  const auto spin_ns = ParseDuration(text.substr(kHybrid.size()));
  if (!spin_ns) return Fail(spin_ns.error());
  if (*spin_ns < 1 || *spin_ns > kMaxSpinNs) {
    return Fail(UsageError(
        fmt::format("way of waiting {}: the time to spin is outside 1ns to 1s", Quoted(text)), {},
        std::string(kChoices)));
  }
  return WaitMode{WaitKind::kHybrid, *spin_ns};
}

std::string ToText(InlineMode mode) {
  switch (mode.kind) {
    case InlineKind::kAuto:
      return "auto";
    case InlineKind::kOff:
      return "off";
    case InlineKind::kBytes:
      return fmt::format("{}", mode.bytes);
  }
  return "auto";
}

Expected<InlineMode> ParseInlineMode(std::string_view text) {
  if (text == "auto") return InlineMode{};
  if (text == "off" || text == "0") return InlineMode{InlineKind::kOff, 0};
  const auto bytes = ParseSize(text);
  if (!bytes || *bytes < 1 || *bytes > kMaxInlineBytes) {
    return Fail(UsageError(fmt::format("inline limit {} is not known", Quoted(text)), {},
                           fmt::format("choose auto, off or 1 to {} bytes", kMaxInlineBytes)));
  }
  return InlineMode{InlineKind::kBytes, static_cast<uint32_t>(*bytes)};
}

}  // namespace verbscope
