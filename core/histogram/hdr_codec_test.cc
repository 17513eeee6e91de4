#include "core/histogram/hdr_codec.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "core/histogram/base64.h"

namespace verbscope {
namespace {

using Bytes = std::vector<uint8_t>;

void PutBig(Bytes& out, size_t at, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i)
    out[at + i] = static_cast<uint8_t>(value >> (8 * (size - 1 - i)));
}

// A valid header followed by `counters`.
Bytes Content(const Bytes& counters) {
  Bytes content = EncodeHdrV2Content(Histogram());
  content.insert(content.end(), counters.begin(), counters.end());
  PutBig(content, 4, counters.size(), 4);
  return content;
}

// The outer text around `content`, whatever it is.
std::string Text(const Bytes& content) {
  uLongf size = compressBound(content.size());
  Bytes bytes(8 + size);
  compress(bytes.data() + 8, &size, content.data(), content.size());
  bytes.resize(8 + size);
  PutBig(bytes, 0, 0x1c849314, 4);
  PutBig(bytes, 4, size, 4);
  return EncodeBase64(bytes);
}

void ExpectSameCounters(const Histogram& a, const Histogram& b) {
  EXPECT_EQ(a.count(), b.count());
  for (size_t i = 0; i < Histogram::kCounters; ++i) ASSERT_EQ(a.counter(i), b.counter(i)) << i;
}

TEST(HdrCodec, HeaderHasTheFieldsOfTheFormat) {
  Histogram histogram;
  histogram.Record(3);
  const Bytes expected = {
      0x1c, 0x84, 0x93, 0x13,                       // cookie
      0,    0,    0,    2,                          // payload length
      0,    0,    0,    0,                          // normalizing index offset
      0,    0,    0,    3,                          // significant digits
      0,    0,    0,    0,    0,    0,    0,    1,  // lowest
      0,    0,    0,    0x17, 0x48, 0x76, 0xe8, 0,  // highest: 10^11
      0x3f, 0xf0, 0,    0,    0,    0,    0,    0,  // ratio: 1.0
      5,                                            // three empty counters: zigzag(-3)
      2,                                            // one sample: zigzag(1)
  };
  EXPECT_EQ(EncodeHdrV2Content(histogram), expected);
}

TEST(HdrCodec, TextStartsAsAllHdrHistogramsDo) {
  EXPECT_EQ(EncodeHdrV2(Histogram()).substr(0, 7), "HISTFAA");
}

TEST(HdrCodec, OneEmptyCounterIsAZeroAndMoreAreARun) {
  Histogram histogram;
  histogram.Record(1);
  histogram.Record(4);
  const Bytes content = EncodeHdrV2Content(histogram);
  EXPECT_EQ(Bytes(content.begin() + kHdrHeaderBytes, content.end()), (Bytes{0, 2, 3, 2}));
}

TEST(HdrCodec, RoundTripKeepsEveryCounter) {
  std::mt19937_64 random(1);
  for (const double sigma : {0.01, 0.5, 2.0, 6.0}) {
    std::lognormal_distribution<double> latency(std::log(2000), sigma);
    Histogram histogram;
    for (int i = 0; i < 20'000; ++i) {
      histogram.Record(static_cast<int64_t>(std::min(latency(random), 9e10)));
    }
    const Expected<Histogram> decoded = DecodeHdrV2(EncodeHdrV2(histogram));
    ASSERT_TRUE(decoded) << decoded.error().ToText();
    ExpectSameCounters(*decoded, histogram);
    EXPECT_EQ(decoded->ValueAtRank(1).lowest_ns,
              Histogram::RangeOf(histogram.FirstIndex()).lowest_ns);
    EXPECT_NEAR(decoded->mean(), histogram.mean(), histogram.mean() / 1000);
  }
}

TEST(HdrCodec, RoundTripKeepsTheEdges) {
  Histogram histogram;
  for (const int64_t ns : {int64_t{0}, int64_t{2047}, int64_t{2048}, Histogram::kHighestNs,
                           Histogram::kRangeNs, Histogram::kRangeNs + 1}) {
    histogram.Record(ns);
  }
  const Expected<Histogram> decoded = DecodeHdrV2(EncodeHdrV2(histogram));
  ASSERT_TRUE(decoded);
  ExpectSameCounters(*decoded, histogram);
}

TEST(HdrCodec, EmptyHistogramRoundTrips) {
  const Expected<Histogram> decoded = DecodeHdrV2(EncodeHdrV2(Histogram()));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->count(), 0u);
}

TEST(HdrCodec, CountersOfEveryLengthRoundTrip) {
  // 2^53 samples in all, in counters of one to eight bytes.
  Histogram histogram;
  for (size_t bit = 0; bit < 53; ++bit) histogram.AddToBucket(bit, uint64_t{1} << bit);
  histogram.AddToBucket(100, 1);
  ASSERT_EQ(histogram.count(), kHdrMaxCount);
  const Expected<Histogram> decoded = DecodeHdrV2(EncodeHdrV2(histogram));
  ASSERT_TRUE(decoded);
  ExpectSameCounters(*decoded, histogram);
}

TEST(HdrCodec, FullestHistogramStaysWithinTheBounds) {
  Histogram histogram;
  std::mt19937_64 random(3);
  for (size_t i = 0; i < Histogram::kCounters; ++i) {
    histogram.AddToBucket(i, 1 + random() % (kHdrMaxCount / Histogram::kCounters));
  }
  const std::string text = EncodeHdrV2(histogram);
  EXPECT_LE(text.size(), kHdrMaxText);
  const Expected<Histogram> decoded = DecodeHdrV2(text);
  ASSERT_TRUE(decoded);
  ExpectSameCounters(*decoded, histogram);
}

TEST(HdrCodec, AcceptsTheOffsetAndRatioOfHdrHistogramJs) {
  Bytes content = Content({5, 2});
  PutBig(content, 8, 1, 4);
  PutBig(content, 32, 1, 8);
  const Expected<Histogram> decoded = DecodeHdrV2(Text(content));
  ASSERT_TRUE(decoded) << decoded.error().ToText();
  EXPECT_EQ(decoded->counter(3), 1u);
}

TEST(HdrCodec, RefusesOtherHeaders) {
  struct Change {
    size_t at;
    size_t size;
    uint64_t value;
    const char* named;
  };
  for (const Change& change :
       {Change{0, 4, 0x1c849304, "cookie"}, Change{4, 4, 1, "payload length"},
        Change{4, 4, 0xffffffff, "payload length"}, Change{8, 4, 1, "normalizing index offset"},
        Change{12, 4, 2, "significant digits"}, Change{16, 8, 1000, "lowest"},
        Change{24, 8, 1, "highest"}, Change{24, 8, ~uint64_t{0}, "highest"},
        Change{24, 8, static_cast<uint64_t>(Histogram::kRangeNs) + 1, "highest"},
        Change{32, 8, std::bit_cast<uint64_t>(2.0), "ratio"}, Change{32, 8, 1, "ratio"}}) {
    Bytes content = Content({5, 2});
    PutBig(content, change.at, change.value, change.size);
    const Expected<Histogram> decoded = DecodeHdrV2(Text(content));
    ASSERT_FALSE(decoded) << change.named << " " << change.value;
    EXPECT_EQ(decoded.error().error_class, ErrorClass::kUsage);
    EXPECT_NE(decoded.error().message.find(change.named), std::string::npos)
        << decoded.error().message;
    EXPECT_FALSE(decoded.error().next_step.empty());
  }
}

TEST(HdrCodec, RefusesContentCutAnywhere) {
  Histogram histogram;
  for (int i = 0; i < 1000; ++i) histogram.Record(5000);
  const Bytes whole = EncodeHdrV2Content(histogram);
  ASSERT_TRUE(DecodeHdrV2Content(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeHdrV2Content(std::span(whole).first(size))) << size;
  }
}

TEST(HdrCodec, RefusesTextCutAnywhere) {
  Histogram histogram;
  histogram.Record(5000);
  const std::string whole = EncodeHdrV2(histogram);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeHdrV2(std::string_view(whole).substr(0, size))) << size;
  }
}

TEST(HdrCodec, RefusesCountersBeyondTheLayout) {
  Bytes full = {0xff, 0xbf, 0x03};  // run of 28,672: fits exactly
  EXPECT_TRUE(DecodeHdrV2Content(Content(full)));
  full.push_back(2);
  EXPECT_FALSE(DecodeHdrV2Content(Content(full)));
  EXPECT_FALSE(DecodeHdrV2Content(Content({0x81, 0xc0, 0x03})));  // run of 28,673
  const Bytes lowest(9, 0xff);                                    // run of 2^63
  EXPECT_FALSE(DecodeHdrV2Content(Content(lowest)));
  Bytes then_lowest = {1};
  then_lowest.insert(then_lowest.end(), lowest.begin(), lowest.end());
  EXPECT_FALSE(DecodeHdrV2Content(Content(then_lowest)));
}

TEST(HdrCodec, RefusesMoreSamplesThanTheSumsHold) {
  const Bytes most = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20};  // 2^53
  const Expected<Histogram> decoded = DecodeHdrV2Content(Content(most));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->count(), kHdrMaxCount);
  Bytes more = most;
  more.push_back(2);
  EXPECT_FALSE(DecodeHdrV2Content(Content(more)));
  EXPECT_FALSE(DecodeHdrV2Content(Content({0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})));
}

TEST(HdrCodec, RefusesContentThatInflatesWithoutEnd) {
  const std::string bomb = Text(Bytes(200'000'000, 0));
  ASSERT_LT(bomb.size(), kHdrMaxText);
  const Expected<Histogram> decoded = DecodeHdrV2(bomb);
  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().message.find("inflates"), std::string::npos) << decoded.error().message;
}

TEST(HdrCodec, RefusesOtherText) {
  EXPECT_FALSE(DecodeHdrV2(""));
  EXPECT_FALSE(DecodeHdrV2("HISTFAA"));
  EXPECT_FALSE(DecodeHdrV2("not base64 at all!"));
  EXPECT_FALSE(DecodeHdrV2(std::string(kHdrMaxText + 4, 'A')));
  Bytes bytes = *DecodeBase64(Text(Content({2})));
  const std::function<void(Bytes&)> damages[] = {
      [](Bytes& b) { b[3] = 0x13; },             // cookie of uncompressed content
      [](Bytes& b) { b[7]++; },                  // length beyond the end
      [](Bytes& b) { b[7]--; },                  // bytes left over
      [](Bytes& b) { b.push_back(0), b[7]++; },  // bytes behind the zlib stream
      [](Bytes& b) { b.back() ^= 1; },           // zlib checksum
      [](Bytes& b) { b[8] = 0; }};               // zlib header
  for (const auto& damage : damages) {
    Bytes damaged = bytes;
    damage(damaged);
    EXPECT_FALSE(DecodeHdrV2(EncodeBase64(damaged)));
  }
}

}  // namespace
}  // namespace verbscope
