// libFuzzer target of what the kernel answers over RDMA netlink:
// bazel build --config=fuzz //transports/ibverbs:nldev_messages_fuzz
//
// Properties: nothing reads out of bounds; rows have a kind and texts without zero bytes; a
// datagram without a whole message is broken or empty.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "transports/ibverbs/nldev_messages.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace verbscope;
  const auto datagram = std::as_bytes(std::span(data, size));
  NldevAnswer devices;
  ParseNldevDevices(datagram, devices);
  for (const NldevDevice& device : devices.devices) {
    Require(!device.name.empty() && device.name.find('\0') == std::string::npos);
  }
  for (const NldevKind& kind : kNldevKinds) {
    NldevAnswer answer;
    ParseNldevResources(datagram, kind, size % 2 == 0, answer);
    Require(answer.rows.size() <= size / 4);
    Require(answer.errno_value >= 0 && (answer.errno_value == 0 || answer.done));
    for (const ResourceRow& row : answer.rows) {
      Require(row.kind == kind.name && row.name.find('\0') == std::string::npos);
    }
  }
  return 0;
}
