// Histograms as text that HdrHistogram tools read: the V2 compressed encoding, in base64.
//
//   base64( 0x1c849314, length, zlib( 0x1c849313, payload length, normalizing index offset = 0,
//           significant digits = 3, lowest = 1, highest = 10^11, ratio = 1.0, counters ) )
//
// All integers are big endian; 0x…14 and 0x…13 are the cookies 0x1c849304 and 0x1c849303 with 0x10,
// "counters of variable length". Counters are ZigZag LEB128-64b9B: seven bits a byte, lowest first,
// the ninth byte whole; a negative number is a run of that many empty counters. They end with the
// highest non-empty one.
//
// The format carries counters only. A decoded histogram knows min, max, mean and stdev to one
// bucket, and neither overflow() nor negative(); reports keep the exact ones beside the text.
//
// Decoding takes bytes from anywhere: it reads within bounds, allocates a bounded amount whatever
// the text claims, and answers with an Error of class kUsage. Pure functions, any thread.
#ifndef VERBSCOPE_CORE_HISTOGRAM_HDR_CODEC_H_
#define VERBSCOPE_CORE_HISTOGRAM_HDR_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/histogram/histogram.h"

namespace verbscope {

inline constexpr size_t kHdrHeaderBytes = 40;  // inner header
inline constexpr size_t kHdrCounterBytes = 9;  // longest counter
// No valid content is larger: the bound against texts that inflate without end.
inline constexpr size_t kHdrMaxBytes = kHdrHeaderBytes + Histogram::kCounters * kHdrCounterBytes;
// Longest text that is looked at. zlib adds 5 bytes per 16 KiB at worst, base64 a third.
inline constexpr size_t kHdrMaxText = 2 * kHdrMaxBytes;
// More samples are refused: HdrHistogram in JavaScript counts in doubles, and the sums stay exact.
inline constexpr uint64_t kHdrMaxCount = uint64_t{1} << 53;

std::string EncodeHdrV2(const Histogram& histogram);

// Accepts any histogram with three significant digits, lowest value 1 and a range of at most 137 s,
// the counters of which therefore are ours: what EncodeHdrV2, HdrHistogram in Java and C, and
// hdr-histogram-js write.
Expected<Histogram> DecodeHdrV2(std::string_view text);

// The content before compression and base64, for tests, which cannot reach deep through zlib.
std::vector<uint8_t> EncodeHdrV2Content(const Histogram& histogram);
Expected<Histogram> DecodeHdrV2Content(std::span<const uint8_t> content);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_HISTOGRAM_HDR_CODEC_H_
