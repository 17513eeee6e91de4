#include "transports/ibverbs/inline_probe.h"

#include <algorithm>
#include <cerrno>

namespace verbscope {
namespace {

constexpr uint32_t kFirstUpper = 1024;    // above the limit of most devices
constexpr uint32_t kLargestAsked = 8192;  // no known device takes more

// A device that is gone fails every attempt; anything else right after a success is a refusal of
// the one value that changed.
bool DeviceIsGone(const Error& error) {
  return error.errno_value == EIO || error.errno_value == ENODEV || error.errno_value == ENXIO;
}

}  // namespace

Expected<uint32_t> FindMaxInline(const InlineAttempt& attempt) {
  const Expected<uint32_t> without = attempt(0);
  if (!without) return without;
  uint32_t accepted = std::min(*without, kLargestAsked);  // known to work
  uint32_t asked = std::max(kFirstUpper, accepted + 1);
  uint32_t refused = 0;  // smallest size known not to work; 0: none yet

  while (refused == 0 || accepted + 1 < refused) {
    const Expected<uint32_t> given = attempt(asked);
    if (!given) {
      if (DeviceIsGone(given.error())) return given;
      refused = asked;
    } else if (*given < asked) {
      return std::max(accepted, *given);
    } else {
      accepted = std::min(*given, kLargestAsked);
    }
    if (refused != 0) {
      // A device may round a request up beyond one that it refused; stop there.
      if (accepted + 1 >= refused) break;
      asked = accepted + (refused - accepted) / 2;
    } else {
      if (accepted >= kLargestAsked) break;
      asked = std::min(accepted * 2, kLargestAsked);
    }
  }
  return accepted;
}

}  // namespace verbscope
