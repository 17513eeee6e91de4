// libFuzzer target of the HdrHistogram decoder. The first byte chooses the entry: the text as it
// comes from a file, or the content below zlib and base64, where mutations reach the counters.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "core/histogram/hdr_codec.h"

namespace verbscope {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// What was decoded must encode, and decode to the same counters.
void CheckRoundTrip(const Histogram& histogram) {
  const Expected<Histogram> again = DecodeHdrV2(EncodeHdrV2(histogram));
  Require(again.has_value());
  Require(again->count() == histogram.count());
  Require(again->min() == histogram.min() && again->max() == histogram.max());
  Require(again->mean() == histogram.mean() && again->stdev() == histogram.stdev());
  for (size_t i = 0; i < Histogram::kCounters; ++i) {
    Require(again->counter(i) == histogram.counter(i));
  }
}

}  // namespace
}  // namespace verbscope

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace verbscope;  // NOLINT(google-build-using-namespace): the entry has C linkage
  if (size == 0) return 0;
  const std::span<const uint8_t> input(data + 1, size - 1);
  const Expected<Histogram> decoded =
      data[0] % 2 == 0
          ? DecodeHdrV2(std::string_view(reinterpret_cast<const char*>(input.data()), input.size()))
          : DecodeHdrV2Content(input);
  if (decoded) CheckRoundTrip(*decoded);
  return 0;
}
