// libFuzzer target of the frame codec: bazel build --config=fuzz //transports/control:frame_fuzz
//
// Properties: no input crashes the decoder; how a stream is cut makes no difference; a decoded
// frame encodes again and decodes to the same JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "transports/control/frame.h"

namespace verbscope {
namespace {

struct Outcome {
  std::vector<nlohmann::json> frames;
  std::string error;  // empty: more bytes wanted
  ForeignPeer foreign = ForeignPeer::kNone;

  bool operator==(const Outcome&) const = default;
};

Outcome Decode(std::string_view stream, size_t step) {
  FrameDecoder decoder;
  Outcome outcome;
  for (size_t at = 0; at < stream.size() && outcome.error.empty(); at += step) {
    decoder.Feed(stream.substr(at, step));
    while (true) {
      auto next = decoder.Next();
      if (!next) outcome.error = next.error().message;
      if (!next || !*next) break;
      outcome.frames.push_back(std::move(**next));
    }
  }
  outcome.foreign = decoder.foreign();
  return outcome;
}

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace
}  // namespace verbscope

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using verbscope::Decode;
  using verbscope::Require;
  const std::string_view stream(reinterpret_cast<const char*>(data), size);
  const verbscope::Outcome whole = Decode(stream, size == 0 ? 1 : size);
  Require(whole == Decode(stream, 1));
  for (const nlohmann::json& frame : whole.frames) {
    const auto bytes = verbscope::EncodeFrame(frame);
    if (!bytes) {
      // "1e9" becomes "1000000000.0": a frame near the limit may not fit again.
      Require(frame.dump().size() > verbscope::kMaxFrameBytes);
      continue;
    }
    const verbscope::Outcome again = Decode(*bytes, bytes->size());
    Require(again.error.empty() && again.frames.size() == 1 && again.frames[0] == frame);
  }
  return 0;
}
