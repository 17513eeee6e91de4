#include "core/histogram/hdr_codec.h"

#include <fmt/format.h>
#include <zlib.h>

#include <bit>
#include <limits>
#include <optional>
#include <utility>

#include "core/histogram/base64.h"

namespace verbscope {
namespace {

constexpr uint32_t kCookie = 0x1c849303;            // V2
constexpr uint32_t kCompressedCookie = 0x1c849304;  // V2, zlib
constexpr uint32_t kVariableLength = 0x10;
constexpr uint32_t kWordSizeMask = 0xf0;  // bits of a cookie that state the counters' length
constexpr size_t kOuterHeaderBytes = 8;

tl::unexpected<Error> Malformed(const std::string& what) {
  Error error;
  error.error_class = ErrorClass::kUsage;
  error.message = "DecodeHdrV2 failed: " + what;
  error.cause = "the text is damaged, cut short, or not an HdrHistogram of this layout";
  error.next_step = "use the histogram as verbscope wrote it (key hdr_v2)";
  return Fail(std::move(error));
}

template <class T>
void Put(std::vector<uint8_t>& out, T value) {
  for (size_t i = sizeof(T); i-- > 0;) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

// `at` + sizeof(T) must lie within `in`.
template <class T>
T Get(std::span<const uint8_t> in, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value << 8 | in[at + i]);
  return value;
}

void PutZigZag(std::vector<uint8_t>& out, int64_t value) {
  uint64_t rest = static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
  for (size_t i = 1; i < kHdrCounterBytes && rest >= 0x80; ++i) {
    out.push_back(static_cast<uint8_t>(rest | 0x80));
    rest >>= 7;
  }
  out.push_back(static_cast<uint8_t>(rest));
}

// Takes one number off the front of `in`; nullopt if it is cut short.
std::optional<int64_t> TakeZigZag(std::span<const uint8_t>& in) {
  uint64_t value = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool last = i + 1 == kHdrCounterBytes;
    value |= static_cast<uint64_t>(last ? in[i] : in[i] & 0x7f) << (7 * i);
    if (last || (in[i] & 0x80) == 0) {
      in = in.subspan(i + 1);
      return static_cast<int64_t>(value >> 1 ^ (0 - (value & 1)));
    }
  }
  return std::nullopt;
}

// Checks the inner header up to the counters; says what is wrong, empty when nothing is.
std::string HeaderProblem(std::span<const uint8_t> content) {
  if (content.size() < kHdrHeaderBytes) return fmt::format("content of {} bytes", content.size());
  const auto cookie = Get<uint32_t>(content, 0);
  const auto length = Get<uint32_t>(content, 4);
  const auto offset = Get<uint32_t>(content, 8);
  const auto digits = Get<uint32_t>(content, 12);
  const auto lowest = Get<uint64_t>(content, 16);
  const auto highest = Get<uint64_t>(content, 24);
  const auto ratio = Get<uint64_t>(content, 32);
  if ((cookie & ~kWordSizeMask) != kCookie) return fmt::format("cookie={:#x}", cookie);
  if (length != content.size() - kHdrHeaderBytes) {
    return fmt::format("payload length={} of {} bytes", length, content.size() - kHdrHeaderBytes);
  }
  if (digits != Histogram::kSignificantDigits) return fmt::format("significant digits={}", digits);
  if (lowest != Histogram::kLowestNs) return fmt::format("lowest value={}", lowest);
  if (highest < 2 || highest > static_cast<uint64_t>(Histogram::kRangeNs)) {
    return fmt::format("highest value={}", highest);
  }
  // hdr-histogram-js writes offset 1 and the integer 1 as ratio, and ignores both when reading: its
  // counters are not shifted. As a double that ratio is 5e-324, which nobody else can mean.
  const bool plain = offset == 0 && ratio == std::bit_cast<uint64_t>(1.0);
  const bool from_js = offset == 1 && ratio == 1;
  if (!plain && !from_js) {
    return fmt::format("normalizing index offset={} with ratio={}", offset,
                       std::bit_cast<double>(ratio));
  }
  return {};
}

Expected<std::vector<uint8_t>> Inflate(std::span<const uint8_t> compressed) {
  // One byte more than the limit tells "just fits" from "more than can be valid".
  std::vector<uint8_t> content(kHdrMaxBytes + 1);
  uLongf size = content.size();
  uLong used = compressed.size();
  const int result = uncompress2(content.data(), &size, compressed.data(), &used);
  if (result == Z_BUF_ERROR && size == content.size()) {
    return Malformed(fmt::format("content inflates to more than {} bytes", kHdrMaxBytes));
  }
  if (result != Z_OK) return Malformed(fmt::format("zlib uncompress2 answered {}", result));
  if (used != compressed.size()) return Malformed("bytes follow the compressed content");
  content.resize(size);
  return content;
}

}  // namespace

std::vector<uint8_t> EncodeHdrV2Content(const Histogram& histogram) {
  std::vector<uint8_t> content;
  Put(content, kCookie | kVariableLength);
  Put(content, uint32_t{0});  // payload length, below
  Put(content, uint32_t{0});  // normalizing index offset
  Put(content, uint32_t{Histogram::kSignificantDigits});
  Put(content, uint64_t{Histogram::kLowestNs});
  Put(content, uint64_t{Histogram::kHighestNs});
  Put(content, std::bit_cast<uint64_t>(1.0));
  const size_t end = histogram.count() == 0 ? 0 : histogram.LastIndex() + 1;
  for (size_t i = 0; i < end;) {
    size_t next = i;
    while (next < end && histogram.counter(next) == 0) ++next;
    if (const size_t zeros = next - i; zeros > 0) {
      PutZigZag(content, zeros == 1 ? 0 : -static_cast<int64_t>(zeros));
    }
    if (next < end) PutZigZag(content, static_cast<int64_t>(histogram.counter(next++)));
    i = next;
  }
  const size_t length = content.size() - kHdrHeaderBytes;
  for (size_t i = 0; i < 4; ++i) content[4 + i] = static_cast<uint8_t>(length >> (24 - 8 * i));
  return content;
}

Expected<Histogram> DecodeHdrV2Content(std::span<const uint8_t> content) {
  if (const std::string problem = HeaderProblem(content); !problem.empty()) {
    return Malformed(problem);
  }
  Histogram histogram;
  std::span<const uint8_t> rest = content.subspan(kHdrHeaderBytes);
  size_t index = 0;
  while (!rest.empty()) {
    const std::optional<int64_t> number = TakeZigZag(rest);
    if (!number) return Malformed(fmt::format("counter {} is cut short", index));
    // A run of empty counters. INT64_MIN has no negation, so compare before negating.
    if (*number < 0) {
      if (*number < -static_cast<int64_t>(Histogram::kCounters - index)) {
        return Malformed(fmt::format("empty counters beyond {}", Histogram::kCounters));
      }
      index += static_cast<size_t>(-*number);
      continue;
    }
    if (index == Histogram::kCounters) {
      return Malformed(fmt::format("more than {} counters", Histogram::kCounters));
    }
    const auto count = static_cast<uint64_t>(*number);
    if (count > kHdrMaxCount - histogram.count()) {
      return Malformed(fmt::format("more than 2^53 samples at counter {}", index));
    }
    histogram.AddToBucket(index++, count);
  }
  return histogram;
}

std::string EncodeHdrV2(const Histogram& histogram) {
  const std::vector<uint8_t> content = EncodeHdrV2Content(histogram);
  uLongf size = compressBound(content.size());
  std::vector<uint8_t> bytes(kOuterHeaderBytes + size);
  // Cannot fail but for memory: the output has compressBound.
  compress2(bytes.data() + kOuterHeaderBytes, &size, content.data(), content.size(),
            Z_DEFAULT_COMPRESSION);
  std::vector<uint8_t> header;
  Put(header, kCompressedCookie | kVariableLength);
  Put(header, static_cast<uint32_t>(size));
  std::copy(header.begin(), header.end(), bytes.begin());
  bytes.resize(kOuterHeaderBytes + size);
  return EncodeBase64(bytes);
}

Expected<Histogram> DecodeHdrV2(std::string_view text) {
  if (text.size() > kHdrMaxText) return Malformed(fmt::format("text of {} bytes", text.size()));
  const std::optional<std::vector<uint8_t>> bytes = DecodeBase64(text);
  if (!bytes) return Malformed("the text is not base64");
  if (bytes->size() < kOuterHeaderBytes) return Malformed(fmt::format("{} bytes", bytes->size()));
  const auto cookie = Get<uint32_t>(*bytes, 0);
  const auto length = Get<uint32_t>(*bytes, 4);
  if ((cookie & ~kWordSizeMask) != kCompressedCookie) {
    return Malformed(fmt::format("cookie={:#x}", cookie));
  }
  const auto compressed = std::span<const uint8_t>(*bytes).subspan(kOuterHeaderBytes);
  if (length != compressed.size()) {
    return Malformed(fmt::format("compressed length={} of {} bytes", length, compressed.size()));
  }
  return Inflate(compressed).and_then([](const std::vector<uint8_t>& content) {
    return DecodeHdrV2Content(content);
  });
}

}  // namespace verbscope
