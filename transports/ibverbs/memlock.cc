#include "transports/ibverbs/memlock.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <charconv>
#include <string>
#include <system_error>

#include "transports/common/byte_text.h"

namespace verbscope {
namespace {

constexpr int kCapIpcLock = 14;  // linux/capability.h

std::optional<uint64_t> ParseNumber(std::string_view text, int base) {
  uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

// The first user namespace maps all 2^32 - 1 ids onto themselves; every other one is narrower.
bool IsFirstUserNamespace(std::string_view uid_map) {
  std::string numbers;
  for (const char c : uid_map) {
    if (c >= '0' && c <= '9') {
      numbers += c;
    } else if (!numbers.empty() && numbers.back() != ' ') {
      numbers += ' ';
    }
  }
  return numbers.starts_with("0 0 4294967295");
}

}  // namespace

MemlockState ParseMemlockState(std::string_view status_text, std::string_view uid_map_text,
                               uint64_t limit) {
  MemlockState state;
  if (limit != RLIM_INFINITY) state.limit_bytes = limit;
  if (const auto capabilities = ValueOfKey(status_text, "CapEff", ':')) {
    const uint64_t mask = ParseNumber(*capabilities, 16).value_or(0);
    state.ipc_lock = ((mask >> kCapIpcLock) & 1) != 0 && IsFirstUserNamespace(uid_map_text);
  }
  if (const auto pinned = ValueOfKey(status_text, "VmPin", ':')) {
    if (const auto kib = ParseNumber(*pinned, 10)) state.pinned_bytes = *kib * 1024;
  }
  return state;
}

MemlockState ReadMemlockState(const SystemPaths& paths) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) limit.rlim_cur = RLIM_INFINITY;
  return ParseMemlockState(ReadText(paths.proc + "/self/status").value_or(""),
                           ReadText(paths.proc + "/self/uid_map").value_or(""), limit.rlim_cur);
}

void ExplainEnomem(const MemlockState& state, uint64_t need_bytes, std::string_view what,
                   Error& error) {
  if (state.ipc_lock || !state.limit_bytes) {
    error.cause +=
        fmt::format("{}the limit of locked memory is not it ({})", error.cause.empty() ? "" : "; ",
                    state.ipc_lock ? "the process has CAP_IPC_LOCK" : "unlimited");
    return;
  }
  const uint64_t limit = *state.limit_bytes;
  const uint64_t pinned = state.pinned_bytes.value_or(0);
  const std::string numbers = fmt::format(
      "limit {}, pinned so far {}, {} needs {}", FormatBytes(limit),
      state.pinned_bytes ? FormatBytes(pinned) : "not known", what, FormatBytes(need_bytes));
  // The need of a queue is an estimate, so "below the limit" is worded as doubt, not as proof.
  if (pinned + need_bytes > limit) {
    error.cause = fmt::format("the limit of locked memory is too low ({})", numbers);
  } else {
    error.cause += fmt::format("{}the limit of locked memory may be it ({})",
                               error.cause.empty() ? "" : "; ", numbers);
  }
  error.next_step =
      "raise the limit where this process starts: `ulimit -l unlimited` in the shell (the hard "
      "limit is in /etc/security/limits.conf); LimitMEMLOCK=infinity in the service or job "
      "launcher; --ulimit memlock=-1 or --cap-add IPC_LOCK for the container";
}

}  // namespace verbscope
