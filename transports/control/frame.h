// Frames of the control channel: the pure codec. No I/O, no clock.
//
// A frame is a 4-byte big-endian length (1 … 1 MiB) followed by that many bytes of UTF-8 JSON: one
// object with a string member "type". Text that describes itself, instead of structures as they
// lie in memory, is what lets two builds, versions or byte orders talk.
//
// FrameDecoder is fed whatever a socket delivers and never trusts it: a length is refused before
// anything is allocated for it, nesting is bounded before the parser runs, and the first bytes of
// a peer that speaks something else are recognised, so that the user reads "speaks HTTP" instead
// of "bad length". One decoder belongs to one stream and one thread.
#ifndef VERBSCOPE_TRANSPORTS_CONTROL_FRAME_H_
#define VERBSCOPE_TRANSPORTS_CONTROL_FRAME_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace verbscope {

inline constexpr size_t kFrameHeaderBytes = 4;
inline constexpr size_t kMaxFrameBytes = 1 << 20;  // of JSON, the length field not counted
inline constexpr int kMaxJsonDepth = 32;           // of objects and arrays within each other

// What a peer is whose first bytes cannot be a frame.
enum class ForeignPeer {
  kNone,      // so far every byte fits
  kHttp,      // request or response, also the HTTP/2 preface
  kTls,       // a TLS or SSL 3 handshake or alert record
  kSsh,       // an SSH banner
  kPerftest,  // the 16 bytes of version text ("6.29") that perftest programs open with
  kUnknown,
};

// "speaks HTTP", "is a perftest program (…)": what follows the peer's name in a sentence.
std::string_view Describe(ForeignPeer peer);

// The bytes of one frame. Invalid UTF-8 in strings is replaced (U+FFFD). Fails with kInternal,
// since the caller built it, when `frame` is no object with a string "type", is longer than
// kMaxFrameBytes or nested deeper than kMaxJsonDepth.
Expected<std::string> EncodeFrame(const nlohmann::json& frame);

class FrameDecoder {
 public:
  // Appends bytes of the stream. Call Next until it has no more before feeding again: then the
  // decoder never holds more than one frame and one feed.
  void Feed(std::string_view bytes);

  // The next complete frame, or nullopt when more bytes are needed. After the first error the
  // stream has lost its framing: every further call returns that error again. How the bytes were
  // cut into feeds makes no difference.
  //
  // Before the first good frame an error is of class kSetup and foreign() says who is there; after
  // it the class is kRun ("malformed frame"). An object with the same key twice is malformed: which
  // of the two counts is a question two implementations may answer differently.
  Expected<std::optional<nlohmann::json>> Next();

  ForeignPeer foreign() const { return foreign_; }
  // After an error: what is wrong with the bytes ("frame length 0", "invalid JSON").
  const std::string& detail() const { return detail_; }
  // Bytes of a frame not yet complete are waiting.
  bool mid_frame() const { return buffer_.size() > consumed_; }
  // Length of the JSON text of the frame that Next returned last.
  size_t last_frame_bytes() const { return last_frame_bytes_; }

 private:
  Expected<std::optional<nlohmann::json>> Refuse(ForeignPeer foreign, std::string detail);

  std::string buffer_;
  size_t consumed_ = 0;  // bytes of buffer_ that Next is done with
  size_t last_frame_bytes_ = 0;
  bool first_ = true;  // no good frame yet
  ForeignPeer foreign_ = ForeignPeer::kNone;
  std::string detail_;
  std::optional<Error> error_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_CONTROL_FRAME_H_
