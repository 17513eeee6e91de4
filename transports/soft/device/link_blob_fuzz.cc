// libFuzzer target of what a peer says of its links:
// bazel build --config=fuzz //transports/soft/device:link_blob_fuzz
//
// Properties: nothing reads out of bounds; what is understood lies within the input and comes back
// the same when it is encoded again; a memory or UDP part that its link takes is one it could have
// made.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "transports/soft/device/link_blob.h"
#include "transports/soft/link/rendezvous_messages.h"
#include "transports/soft/link/udp_blob.h"

namespace verbscope::soft {
namespace {

using View = std::span<const std::byte>;

void Require(bool condition) {
  if (!condition) std::abort();
}

bool Within(View part, View whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void CheckParts(const LinkBlob& blob, View input) {
  Require(Within(blob.memory, input) && Within(blob.udp, input));
  Require(std::ranges::equal(EncodeLinkBlob(blob), input));
  if (const Expected<UdpAddresses> addresses = ParseUdpBlob(blob.udp)) {
    Require(!addresses->empty() && addresses->size() <= kMaxUdpLocals);
    Require(std::ranges::equal(EncodeUdpBlob(*addresses), blob.udp));
  }
  if (const Expected<LinkAddress> peer = ParseBlob(blob.memory)) {
    Require(CheckHere(*peer, *peer).has_value());
  }
}

}  // namespace
}  // namespace verbscope::soft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace verbscope::soft;
  const View input = std::as_bytes(std::span(data, size));
  const std::optional<LinkBlob> blob = ParseLinkBlob(input);
  // Encoding has one form for a device with a single empty part, and another for none.
  if (blob && input.size() > 1) CheckParts(*blob, input);
  return 0;
}
