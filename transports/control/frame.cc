#include "transports/control/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "transports/control/sanitize.h"

namespace verbscope {
namespace {

using nlohmann::json;

uint8_t ByteAt(std::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

uint32_t Length(std::string_view header) {
  return uint32_t{ByteAt(header, 0)} << 24 | uint32_t{ByteAt(header, 1)} << 16 |
         uint32_t{ByteAt(header, 2)} << 8 | uint32_t{ByteAt(header, 3)};
}

// Depth of brackets outside strings. On text that is no JSON the number may mean nothing, but the
// parser stops at the first wrong byte, and up to there both read the same.
int Depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

bool HasType(const json& frame) {
  if (!frame.is_object()) return false;
  const auto it = frame.find("type");
  return it != frame.end() && it->is_string();
}

// Parses one frame's text; the error is the detail of a sentence.
tl::expected<json, std::string> Parse(std::string_view text) {
  if (Depth(text) > kMaxJsonDepth) {
    return tl::unexpected(fmt::format("JSON nested deeper than {}", kMaxJsonDepth));
  }
  std::vector<std::set<std::string>> keys;  // of the objects now open
  std::string twice;
  bool has_twice = false;
  const auto watch = [&](int /*depth*/, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second && !std::exchange(has_twice, true)) twice = key;
    }
    return true;
  };
  json frame = json::parse(text, watch, /*allow_exceptions=*/false);
  if (frame.is_discarded()) return tl::unexpected(std::string("invalid JSON"));
  if (has_twice) return tl::unexpected(fmt::format("key \"{}\" twice", Sanitize(twice, 64)));
  if (!HasType(frame)) return tl::unexpected(std::string("no object with a string \"type\""));
  return frame;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Decided on four bytes, so that it does not depend on how the stream was cut.
ForeignPeer Recognise(std::string_view first4) {
  constexpr std::array<std::string_view, 11> kHttpStarts = {
      "GET ", "POST", "HEAD", "PUT ", "DELE", "OPTI", "CONN", "TRAC", "PATC", "PRI ", "HTTP"};
  if (std::find(kHttpStarts.begin(), kHttpStarts.end(), first4) != kHttpStarts.end()) {
    return ForeignPeer::kHttp;
  }
  if (first4 == "SSH-") return ForeignPeer::kSsh;
  // Record type 22 (handshake) or 21 (alert), version 3.0 … 3.4: RFC 8446 section 5.1.
  if ((ByteAt(first4, 0) == 22 || ByteAt(first4, 0) == 21) && ByteAt(first4, 1) == 3 &&
      ByteAt(first4, 2) <= 4) {
    return ForeignPeer::kTls;
  }
  if (IsDigit(first4[0]) && first4[1] == '.' && IsDigit(first4[2]) &&
      (IsDigit(first4[3]) || first4[3] == '\0')) {
    return ForeignPeer::kPerftest;
  }
  return ForeignPeer::kUnknown;
}

Error OurBug(std::string message) {
  Error error;
  error.error_class = ErrorClass::kInternal;
  error.message = std::move(message);
  return error;
}

}  // namespace

std::string_view Describe(ForeignPeer peer) {
  switch (peer) {
    case ForeignPeer::kNone:
      return "speaks the verbscope control protocol";
    case ForeignPeer::kHttp:
      return "speaks HTTP";
    case ForeignPeer::kTls:
      return "speaks TLS";
    case ForeignPeer::kSsh:
      return "speaks SSH";
    case ForeignPeer::kPerftest:
      return "is a perftest program (ib_send_lat, ib_write_bw and the like)";
    case ForeignPeer::kUnknown:
      break;
  }
  return "sent bytes that are no verbscope frame";
}

Expected<std::string> EncodeFrame(const json& frame) {
  if (!HasType(frame)) return Fail(OurBug("a frame must be an object with a string \"type\""));
  const std::string body = frame.dump(-1, ' ', false, json::error_handler_t::replace);
  const std::string name = Sanitize(frame["type"].get_ref<const std::string&>(), 64);
  if (body.size() > kMaxFrameBytes) {
    return Fail(OurBug(fmt::format("frame \"{}\" has {} bytes, more than the limit of {}", name,
                                   body.size(), kMaxFrameBytes)));
  }
  if (Depth(body) > kMaxJsonDepth) {
    return Fail(OurBug(fmt::format("frame \"{}\" is nested deeper than {}", name, kMaxJsonDepth)));
  }
  std::string bytes;
  bytes.reserve(kFrameHeaderBytes + body.size());
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>((body.size() >> shift) & 0xff);
  }
  return bytes + body;
}

void FrameDecoder::Feed(std::string_view bytes) {
  if (error_) return;
  if (consumed_ > 0) buffer_.erase(0, std::exchange(consumed_, 0));
  buffer_ += bytes;
}

Expected<std::optional<json>> FrameDecoder::Next() {
  if (error_) return Fail(*error_);
  const std::string_view rest = std::string_view(buffer_).substr(consumed_);
  if (rest.size() < kFrameHeaderBytes) return std::nullopt;
  const std::string_view header = rest.substr(0, kFrameHeaderBytes);
  const size_t length = Length(header);
  if (length == 0 || length > kMaxFrameBytes) {
    return Refuse(Recognise(header), fmt::format("frame length {}", length));
  }
  // The encoder writes no white space. One byte of body is enough to tell most binary protocols
  // whose first four bytes happen to be a small number.
  if (rest.size() > kFrameHeaderBytes && rest[kFrameHeaderBytes] != '{') {
    return Refuse(ForeignPeer::kUnknown, fmt::format("a body that starts with byte 0x{:02x}",
                                                     ByteAt(rest, kFrameHeaderBytes)));
  }
  if (rest.size() < kFrameHeaderBytes + length) return std::nullopt;
  auto frame = Parse(rest.substr(kFrameHeaderBytes, length));
  if (!frame) return Refuse(ForeignPeer::kUnknown, frame.error());
  consumed_ += kFrameHeaderBytes + length;
  last_frame_bytes_ = length;
  first_ = false;
  return std::optional<json>(std::move(*frame));
}

Expected<std::optional<json>> FrameDecoder::Refuse(ForeignPeer foreign, std::string detail) {
  detail_ = std::move(detail);
  Error error;
  if (first_) {
    foreign_ = foreign;
    error.error_class = ErrorClass::kSetup;
    error.message = fmt::format("the peer {}", Describe(foreign));
    if (foreign == ForeignPeer::kUnknown) error.message += fmt::format(" ({})", detail_);
  } else {
    error.error_class = ErrorClass::kRun;
    error.message = fmt::format("the peer sent a malformed frame: {}", detail_);
  }
  error_ = error;
  buffer_.clear();
  buffer_.shrink_to_fit();
  consumed_ = 0;
  return Fail(std::move(error));
}

}  // namespace verbscope
