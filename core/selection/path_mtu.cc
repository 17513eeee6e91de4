#include "core/selection/path_mtu.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace verbscope {
namespace {

constexpr std::array<uint32_t, 5> kMtus = {256, 512, 1024, 2048, 4096};

bool IsMtu(uint32_t bytes) { return std::find(kMtus.begin(), kMtus.end(), bytes) != kMtus.end(); }

}  // namespace

Expected<uint32_t> ChoosePathMtu(uint32_t local_active, uint32_t remote_active, uint32_t asked) {
  Error error;
  error.error_class = ErrorClass::kSetup;
  const std::string ports = fmt::format("the local port has an active MTU of {}, the peer's of {}",
                                        local_active, remote_active);
  if (!IsMtu(local_active) || !IsMtu(remote_active)) {
    error.message =
        fmt::format("{} reports an active MTU that is none of 256, 512, 1024, 2048, 4096",
                    IsMtu(local_active) ? "the peer's port" : "the local port");
    error.cause = ports;
    error.next_step = "verbscope devices shows the MTU of each port";
    return Fail(std::move(error));
  }
  const uint32_t smaller = std::min(local_active, remote_active);
  if (asked == 0) return smaller;
  if (!IsMtu(asked)) {
    error.message = fmt::format("--mtu {} is none of 256, 512, 1024, 2048, 4096", asked);
    error.cause = ports;
    error.next_step = fmt::format("give --mtu {} or leave it out", smaller);
    return Fail(std::move(error));
  }
  if (asked > smaller) {
    error.message = fmt::format("--mtu {} is above the smaller active MTU {}", asked, smaller);
    error.cause = ports + "; the option may only lower it";
    error.next_step = fmt::format(
        "give --mtu {} or leave it out; on Ethernet a larger MTU of both netdevs raises it",
        smaller);
    return Fail(std::move(error));
  }
  return asked;
}

}  // namespace verbscope
