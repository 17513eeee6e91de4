// Records as input of services that keep a history of benchmarks. Pure functions, any thread.
//
// A result that is not complete, and every result of a record with an error, is left out: a number
// of a broken run in a history would be taken for one of a whole run. What is left may be empty.
#ifndef VERBSCOPE_REPORTERS_BMF_H_
#define VERBSCOPE_REPORTERS_BMF_H_

#include <span>
#include <string>

#include "core/record/record.h"

namespace verbscope {

// Bencher Metric Format: {benchmark: {measure: {"value", "lower_value", "upper_value"}}}. The unit
// is in the name of the measure: latency-p50-ns, latency-mean-ns, bandwidth-gbit-per-s,
// rate-msg-per-s, cpu-us-per-message. The bounds are the two-sided 95 % interval, where there is
// one.
std::string RenderBmf(std::span<const Record> records);

// Lists [{"name", "unit", "value", "range", "extra"}] for github-action-benchmark: what is better
// when smaller (latency, CPU per message), and what is better when bigger (bandwidth, message
// rate). Each needs its own step there: customSmallerIsBetter and customBiggerIsBetter.
std::string RenderGhaSmaller(std::span<const Record> records);
std::string RenderGhaBigger(std::span<const Record> records);

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_BMF_H_
