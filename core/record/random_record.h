// Random but well-formed Records, for tests of whatever reads them. Test only.
#ifndef VERBSCOPE_CORE_RECORD_RANDOM_RECORD_H_
#define VERBSCOPE_CORE_RECORD_RANDOM_RECORD_H_

#include <cstdint>
#include <random>

#include "core/record/record.h"

namespace verbscope {

// Everything that may be absent is present or not by chance. Histograms and hdr_v2 agree. Texts are
// printable, some of them not ASCII; give `hostile` for texts with control bytes and broken UTF-8.
Record RandomRecord(std::mt19937_64& random, bool hostile = false);

// Latency metrics of `samples` random times around `typical_ns`, with a tail.
LatencyMetrics RandomLatency(std::mt19937_64& random, uint64_t samples, int64_t typical_ns);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_RANDOM_RECORD_H_
