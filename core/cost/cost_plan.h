// What verb-cost is to measure: which groups of verbs, how many calls of each and for how long at
// most. Plain data of this side alone: the command has no peer, and nothing of it travels.
//
// Functions without state; any thread.
#ifndef VERBSCOPE_CORE_COST_COST_PLAN_H_
#define VERBSCOPE_CORE_COST_COST_PLAN_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace verbscope {

// Verbs that are measured together, in the order of the report. A group is named by its first verb.
enum class VerbGroup {
  kPostSend,
  kExtendedPost,  // ibv_wr_*
  kPostReceive,
  kPollCq,
  kStartPoll,
  kNotify,
  kGetEvent,   // and ibv_ack_cq_events
  kRegister,   // and ibv_dereg_mr
  kQueuePair,  // ibv_create_qp, ibv_destroy_qp
  kCq,         // ibv_create_cq, ibv_destroy_cq
  kModifyQp,
};
inline constexpr size_t kVerbGroups = 11;

// "post_send", "ibv_wr", …: Point::op of its results, and the word of --verbs.
std::string_view Name(VerbGroup group);
// "post_send,poll_cq": in the order of the report, without duplicates. The second verb of a group
// names it too. kUsage for anything else.
Expected<std::vector<VerbGroup>> ParseVerbGroups(std::string_view text);
std::vector<VerbGroup> AllVerbGroups();

struct CostPlan {
  std::vector<VerbGroup> groups = AllVerbGroups();
  uint64_t calls = 2000;            // timed of each row, 1 … kMaxCostCalls
  uint64_t warmup_calls = 200;      // before them
  int64_t row_ns = 200'000'000;     // a row that takes longer has fewer calls
  uint64_t max_bytes = 1ULL << 30;  // largest registration
  int64_t deadline_ns = 0;          // of the whole command; 0: PlannedNs plus a grace
};
inline constexpr uint64_t kMaxCostCalls = 10'000'000;
inline constexpr uint64_t kLeastCalls = 3;  // of a row, however long they take

// Shorter rows and smaller registrations, for a run of a few seconds.
CostPlan QuickCostPlan();

// The sweeps.
inline constexpr std::array<uint32_t, 7> kListLengths = {1, 2, 4, 8, 16, 32, 64};
inline constexpr std::array<uint32_t, 4> kReceiveLists = {1, 4, 16, 64};
inline constexpr std::array<uint32_t, 6> kSignalPeriods = {2, 4, 8, 16, 32, 64};
inline constexpr std::array<uint32_t, 5> kSendSizes = {8, 32, 64, 256, 4096};  // and both sides of
                                                                               // the inline limit
inline constexpr std::array<uint64_t, 6> kRegisterSizes = {4096,     64 << 10,  1 << 20,
                                                           16 << 20, 256 << 20, 1ULL << 30};
inline constexpr std::array<uint64_t, 3> kHugePageSizes = {2 << 20, 256 << 20, 1ULL << 30};
inline constexpr uint32_t kSweepBytes = 64;  // of a message, where it is not the size that is swept
inline constexpr uint32_t kPollBatch = 16;   // completions or events of one call, where not one

// Rows of a group at most, on a device that has everything.
uint32_t RowsOf(VerbGroup group);
// The longest the rows can take; with memory, which is allocated for registrations, and set-up.
int64_t PlannedNs(const CostPlan& plan);
int64_t EffectiveDeadlineNs(const CostPlan& plan);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COST_COST_PLAN_H_
