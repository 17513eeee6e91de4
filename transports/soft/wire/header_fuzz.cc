// libFuzzer target of the packet parsers:
// bazel build --config=fuzz //transports/soft/wire:header_fuzz
//
// Properties: no input makes a parser read out of bounds; a header that decodes encodes to the same
// bytes, apart from the bits that annex A17 wants ignored; both forms of Decode agree; a frame that
// parses lies within its packet.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

#include "transports/soft/wire/frame.h"
#include "transports/soft/wire/header.h"
#include "transports/soft/wire/icrc.h"

namespace verbscope::soft {
namespace {

using View = std::span<const std::byte>;

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckHeader(View bytes) {
  Header header;
  View payload;
  if (Decode(bytes, header, payload) != DecodeResult::kOk) return;
  std::array<std::byte, kMaxHeaderBytes> again;
  const size_t head = Encode(header, again.data());
  Require(head + payload.size() + header.pad == bytes.size());
  Require(payload.data() == bytes.data() + head);
  for (size_t i = 0; i < head; ++i) {
    std::byte covered{0xff};
    if (i == 4) covered = std::byte{0};     // FECN, BECN, reserved
    if (i == 8) covered = std::byte{0x80};  // reserved beside AckReq
    Require((again[i] & covered) == (bytes[i] & covered));
  }
  Header split;
  View carried;
  Require(Decode(bytes.first(head), bytes.subspan(head), split, carried) == DecodeResult::kOk);
  std::array<std::byte, kMaxHeaderBytes> third;
  Require(Encode(split, third.data()) == head);
  for (size_t i = 0; i < head; ++i) Require(third[i] == again[i]);
  Require(carried.data() == payload.data() && carried.size() == payload.size());
}

void CheckFrame(View bytes) {
  const bool intact = VerifyIcrc(bytes);
  CheckIcrcWithoutId(bytes);
  const std::optional<Frame> frame = ParseFrame(bytes);
  if (!frame) return;
  const View transport = frame->transport;
  Require(transport.data() > bytes.data());
  Require(transport.data() + transport.size() <= bytes.data() + bytes.size());
  const IcrcCheck check = CheckTransport(frame->flow, transport);
  if (!intact || transport.data() + transport.size() != bytes.data() + bytes.size()) return;
  Require(check.proof != IcrcProof::kBad && check.id == frame->ipv4_id);
}

}  // namespace
}  // namespace verbscope::soft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  verbscope::soft::CheckHeader(bytes);
  verbscope::soft::CheckFrame(bytes);
  return 0;
}
