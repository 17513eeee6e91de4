#include "transports/soft/options/value_text.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>
#include <system_error>
#include <utility>

namespace verbscope::soft {
namespace {

constexpr size_t kMaxPathBytes = 4095;  // PATH_MAX without the final zero
constexpr int kLastErrno = 133;         // EHWPOISON, the last that Linux has a name for
constexpr uint64_t kMaxDelayNs = 60'000'000'000;

struct TimeUnit {
  std::string_view name;
  uint64_t ns;
};
constexpr std::array<TimeUnit, 4> kTimeUnits = {
    {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view TakeDigits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  const auto length = static_cast<size_t>(end - text.begin());
  const std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  return digits;
}

// `digits` behind the point of a number of `unit_ns`, in ns; nullopt when finer than 1 ns.
std::optional<uint64_t> FractionNs(std::string_view digits, uint64_t unit_ns) {
  uint64_t ns = 0;
  for (const char digit : digits) {
    if (unit_ns % 10 != 0 && digit != '0') return std::nullopt;
    unit_ns /= 10;
    ns += static_cast<uint64_t>(digit - '0') * unit_ns;
  }
  return ns;
}

// Edits that turn `a` into `b`: insertions, deletions, replacements.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace

const std::array<std::string_view, 24> kCompletionStatuses = {
    "SUCCESS",
    "LOC_LEN_ERR",
    "LOC_QP_OP_ERR",
    "LOC_EEC_OP_ERR",
    "LOC_PROT_ERR",
    "WR_FLUSH_ERR",
    "MW_BIND_ERR",
    "BAD_RESP_ERR",
    "LOC_ACCESS_ERR",
    "REM_INV_REQ_ERR",
    "REM_ACCESS_ERR",
    "REM_OP_ERR",
    "RETRY_EXC_ERR",
    "RNR_RETRY_EXC_ERR",
    "LOC_RDD_VIOL_ERR",
    "REM_INV_RD_REQ_ERR",
    "REM_ABORT_ERR",
    "INV_EECN_ERR",
    "INV_EEC_STATE_ERR",
    "FATAL_ERR",
    "RESP_TIMEOUT_ERR",
    "GENERAL_ERR",
    "TM_ERR",
    "TM_RNDV_INCOMPLETE",
};
static_assert(IBV_WC_RETRY_EXC_ERR == 12 && IBV_WC_TM_RNDV_INCOMPLETE == 23);

std::optional<uint64_t> CountFromText(std::string_view text, uint64_t min, uint64_t max) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [next, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || next != end || value < min || value > max) return std::nullopt;
  return value;
}

bool IsMtu(uint64_t bytes) {
  return bytes == 256 || bytes == 512 || bytes == 1024 || bytes == 2048 || bytes == 4096;
}

std::optional<double> ChanceFromText(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  // The first character keeps signs, "inf" and "nan" out.
  if (text.empty() || !(IsDigit(text[0]) || text[0] == '.')) return std::nullopt;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [next, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || next != end || value > (percent ? 100 : 1)) return std::nullopt;
  return percent ? value / 100 : value;
}

std::optional<std::chrono::nanoseconds> DelayFromText(std::string_view text) {
  if (text == "0") return std::chrono::nanoseconds(0);
  const auto whole = CountFromText(TakeDigits(text), 0, kMaxDelayNs);
  if (!whole) return std::nullopt;
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = TakeDigits(text);
    if (fraction.empty()) return std::nullopt;
  }
  for (const TimeUnit& unit : kTimeUnits) {
    if (unit.name != text) continue;
    const std::optional<uint64_t> fraction_ns = FractionNs(fraction, unit.ns);
    if (!fraction_ns || *whole > kMaxDelayNs / unit.ns) return std::nullopt;
    const uint64_t ns = *whole * unit.ns + *fraction_ns;
    if (ns > kMaxDelayNs) return std::nullopt;
    return std::chrono::nanoseconds(ns);
  }
  return std::nullopt;
}

std::optional<ibv_gid> GidFromText(std::string_view text) {
  if (text.find('\0') != text.npos) return std::nullopt;
  const std::string terminated(text);
  ibv_gid gid = {};
  if (inet_pton(AF_INET6, terminated.c_str(), gid.raw) == 1) return gid;
  gid = {};
  gid.raw[10] = gid.raw[11] = 0xff;
  if (inet_pton(AF_INET, terminated.c_str(), gid.raw + 12) == 1) return gid;
  return std::nullopt;
}

std::optional<ibv_gid> AddressFromText(std::string_view text) {
  const std::optional<ibv_gid> gid = GidFromText(text);
  if (!gid) return std::nullopt;
  constexpr ibv_gid kZero = {};
  constexpr ibv_gid kIpv4 = {.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}};
  const bool ipv4 = std::memcmp(gid->raw, kIpv4.raw, 12) == 0;
  const uint8_t first = gid->raw[ipv4 ? 12 : 0];
  const bool multicast = ipv4 ? first >= 224 : first == 0xff;  // of IPv4 also the reserved ones
  if (multicast || (ipv4 && first == 0)) return std::nullopt;
  if (std::memcmp(gid->raw, kZero.raw, sizeof(kZero.raw)) == 0) return std::nullopt;
  return gid;
}

std::optional<int> ErrnoFromText(std::string_view name) {
  for (int code = 1; code <= kLastErrno; ++code) {
    const char* known = strerrorname_np(code);
    if (known != nullptr && name == known) return code;
  }
  return std::nullopt;
}

std::optional<ibv_wc_status> CompletionStatusFromText(std::string_view name) {
  const auto found = std::find(kCompletionStatuses.begin(), kCompletionStatuses.end(), name);
  if (found == kCompletionStatuses.end()) return std::nullopt;
  return static_cast<ibv_wc_status>(found - kCompletionStatuses.begin());
}

bool IsPath(std::string_view text) {
  return !text.empty() && text.size() <= kMaxPathBytes &&
         std::none_of(text.begin(), text.end(),
                      [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; });
}

std::string Quoted(std::string_view text) {
  constexpr size_t kMaxBytes = 64;
  std::string quoted = "'";
  for (const char c : text.substr(0, kMaxBytes)) quoted += (c >= ' ' && c <= '~') ? c : '?';
  quoted += text.size() > kMaxBytes ? "...'" : "'";
  return quoted;
}

std::string Listed(std::span<const std::string_view> names) {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += i + 1 == names.size() ? " or " : ", ";
    list += names[i];
  }
  return list;
}

std::string_view Nearest(std::string_view text, std::span<const std::string_view> names) {
  constexpr size_t kMaxBytes = 32;
  constexpr size_t kFar = 3;  // this many edits make another word
  if (text.size() < 2 || text.size() > kMaxBytes) return {};
  const std::string asked = Lower(text);
  std::string_view nearest;
  size_t best = kFar;
  for (const std::string_view name : names) {
    const std::string known = Lower(name);
    const size_t edits = known.starts_with(asked) ? 1 : EditDistance(asked, known);
    if (edits < best && edits < known.size() / 2 + 1) {
      best = edits;
      nearest = name;
    }
  }
  return nearest;
}

std::string Suggestion(std::string_view text, std::span<const std::string_view> names) {
  const std::string_view nearest = Nearest(text, names);
  return nearest.empty() ? "" : fmt::format("write '{}'", nearest);
}

}  // namespace verbscope::soft
