// What `cq-scale` and `cq-overrun` try, as far as a plan must know it before the run: which
// completion queues, how many threads, how deep, for how long.
//
// Pure functions of the plan; any thread.
#ifndef VERBSCOPE_CORE_PLAN_CQ_PLAN_H_
#define VERBSCOPE_CORE_PLAN_CQ_PLAN_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"

namespace verbscope {

inline constexpr std::string_view kCqScale = "cq-scale";
inline constexpr std::string_view kCqOverrun = "cq-overrun";
// One step must end while the other side waits for it, on slow devices too.
inline constexpr uint64_t kMostOverrunMessages = 100'000;

// Defaults of cq-scale, where they are not those of every command.
inline constexpr uint32_t kScaleQps = 16;
inline constexpr uint32_t kScaleTxDepth = 16;
inline constexpr int64_t kScaleDurationNs = 1'000'000'000;
inline constexpr int64_t kScaleQuickDurationNs = 100'000'000;
// Of one point: the side that only serves waits for its end in one step of the control channel.
inline constexpr int64_t kMostScaleDurationNs = 10'000'000'000;
// The warm-up of one point, a part of the measured time.
inline constexpr int64_t kScaleWarmupPart = 10;

inline constexpr uint32_t kMaxCqs = 64;             // and threads: each has one at most
inline constexpr uint32_t kMaxCqDepth = 4'194'304;  // beyond what devices have (max_cqe)
inline constexpr size_t kMaxCqRows = 32;            // of --cqs, and of --cq-depth

// "1,2,4": whole numbers from 1, in the order given, without duplicates. kUsage otherwise.
Expected<std::vector<uint32_t>> ParseCounts(std::string_view text);

// The numbers of CQs of the plan, or those of a run that asks for none.
std::vector<uint32_t> CqsOf(const Plan& plan);

// One measurement: so many CQs, polled by so many threads.
struct ScalePoint {
  uint32_t cqs = 1;
  uint32_t threads = 1;   // as many as CQs, or several at one CQ
  uint32_t cq_depth = 0;  // entries asked for of each CQ; 0: what LeastCqDepth says
  uint32_t run = 0;       // 1: measured a second time
  friend bool operator==(const ScalePoint&, const ScalePoint&) = default;
};
// First one thread at one CQ, which is what the others are compared with; then for every number of
// CQs those with a thread each, and as many threads at one CQ; then one CQ of every depth; last the
// first again, so that what two alike measurements differ by is known.
std::vector<ScalePoint> ScalePointsOf(const Plan& plan);

// Entries that a CQ of this point needs: one for every request in flight of its queue pairs, which
// are all signalled.
uint32_t LeastCqDepth(const Plan& plan, uint32_t cqs);
int64_t ScaleWarmupNs(const Plan& plan);

// Of the whole command, in ns.
int64_t CqScalePlannedNs(const Plan& plan);

// Ranges and combinations of these two commands; kUsage, naming the options.
Status CheckCqPlan(const Plan& plan);

// What cq-threads sends, before anything is measured.
inline constexpr uint32_t kThreadsQps = 4;
inline constexpr uint32_t kThreadsPollers = 4;
uint32_t ThreadsMessages(const Plan& plan);  // of each queue pair

// cq-overrun: entries that are asked for, and how many completions more than the CQ then has room
// for are left in it.
inline constexpr uint32_t kOverrunCqe = 16;
inline constexpr uint32_t kOverrunExtra = 16;
// Entries of the CQ that is filled to the brim, and its queue pairs.
inline constexpr uint32_t kSizingCqe = 64;
inline constexpr uint32_t kSizingQps = 2;

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_PLAN_CQ_PLAN_H_
