// What most likely lies behind what a run shows: a failure, or signs of trouble in a run that
// passed. Facts of both sides go in, at most three ranked causes come out, each with what speaks
// for it and a next step. The rules are data, in rules.cc.
//
// An Error has its own cause already, often several alternatives ("a; or b"): its process knew no
// more. Where the facts of both sides decide, that cause comes first; then the Error's alternatives
// in their order; then what may make matters worse. The Error itself stays as it is.
//
// Plain data and pure functions; any thread.
#ifndef VERBSCOPE_CORE_CAUSES_DIAGNOSIS_H_
#define VERBSCOPE_CORE_CAUSES_DIAGNOSIS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/record/record.h"

namespace verbscope {

inline constexpr size_t kMaxCauses = 3;

struct SideEvidence {
  std::string role;  // "requester", "responder"
  std::string governor = {};
  std::optional<GidRecord> gid = {};
  std::optional<JitterFloor> jitter_floor = {};
  std::map<std::string, int64_t> counters = {};  // changes over the session; empty: not known
};

struct Evidence {
  std::optional<Error> error = {};
  std::string error_side = "both";  // whose observation it is: "requester", "responder", "local"
  bool provokes = false;            // a command whose steps provoke faults: counters say nothing
  bool one_device = false;          // both sides use the same device: its counters are of both
  SideEvidence requester = {.role = "requester"};
  SideEvidence responder = {.role = "responder"};
  std::optional<Plan> plan = {};
  std::optional<uint64_t> passed_bytes = {};  // the largest size that was run to its end
  // Of the result with the longest tail.
  std::optional<int64_t> p50_ns = {};
  std::optional<int64_t> p99_9_ns = {};
};

// From what a record has of both sides.
Evidence EvidenceOf(const Record& record);

// Most likely first, at most kMaxCauses; empty when nothing speaks for trouble.
std::vector<CauseRow> Diagnose(const Evidence& evidence);

// record.causes and record.counter_notes from the record itself.
void AddCauses(Record& record);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CAUSES_DIAGNOSIS_H_
