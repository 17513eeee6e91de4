#include "core/cost/cost_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/plan/plan.h"

namespace verbscope {
namespace {

struct GroupRow {
  VerbGroup group;
  std::string_view name;
  std::string_view other;  // its second verb
  uint32_t rows;
};

constexpr auto kSizes = static_cast<uint32_t>(kSendSizes.size());
// Sizes with and without inline, the limit and the one above it; lists; periods.
constexpr uint32_t kPostRows =
    2 * kSizes + 3 + static_cast<uint32_t>(kListLengths.size() + kSignalPeriods.size());

constexpr std::array<GroupRow, kVerbGroups> kGroups = {{
    {VerbGroup::kPostSend, "post_send", "", kPostRows},
    {VerbGroup::kExtendedPost, "ibv_wr", "", 3},
    {VerbGroup::kPostReceive, "post_recv", "", static_cast<uint32_t>(kReceiveLists.size())},
    {VerbGroup::kPollCq, "poll_cq", "", 3},
    {VerbGroup::kStartPoll, "start_poll", "", 3},
    {VerbGroup::kNotify, "req_notify_cq", "", 1},
    {VerbGroup::kGetEvent, "get_cq_event", "ack_cq_events", 3},
    {VerbGroup::kRegister, "reg_mr", "dereg_mr",
     2 * static_cast<uint32_t>(kRegisterSizes.size() + kHugePageSizes.size())},
    {VerbGroup::kQueuePair, "create_qp", "destroy_qp", 2},
    {VerbGroup::kCq, "create_cq", "destroy_cq", 2},
    {VerbGroup::kModifyQp, "modify_qp", "", 3},
}};

const GroupRow& RowOf(VerbGroup group) { return kGroups[static_cast<size_t>(group)]; }

Error UnknownVerb(std::string_view word) {
  std::string known;
  for (const GroupRow& row : kGroups) known += (known.empty() ? "" : ", ") + std::string(row.name);
  Error error;
  error.error_class = ErrorClass::kUsage;
  error.message = fmt::format("\"{}\" is no verb that is measured", word);
  error.cause = "the verbs are: " + known;
  error.next_step = "give some of them, separated by commas, or leave the option out";
  return error;
}

}  // namespace

std::string_view Name(VerbGroup group) { return RowOf(group).name; }

std::vector<VerbGroup> AllVerbGroups() {
  std::vector<VerbGroup> groups;
  for (const GroupRow& row : kGroups) groups.push_back(row.group);
  return groups;
}

Expected<std::vector<VerbGroup>> ParseVerbGroups(std::string_view text) {
  std::array<bool, kVerbGroups> wanted = {};
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    const auto* row = std::ranges::find_if(kGroups, [word](const GroupRow& candidate) {
      return !word.empty() && (candidate.name == word || candidate.other == word);
    });
    if (row == kGroups.end()) return Fail(UnknownVerb(word));
    wanted[static_cast<size_t>(row->group)] = true;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  std::vector<VerbGroup> groups;
  for (const GroupRow& row : kGroups) {
    if (wanted[static_cast<size_t>(row.group)]) groups.push_back(row.group);
  }
  return groups;
}

CostPlan QuickCostPlan() {
  CostPlan plan;
  plan.calls = 200;
  plan.warmup_calls = 20;
  plan.row_ns = 20'000'000;
  plan.max_bytes = 16 << 20;
  return plan;
}

uint32_t RowsOf(VerbGroup group) { return RowOf(group).rows; }

int64_t PlannedNs(const CostPlan& plan) {
  constexpr int64_t kSetUpNs = 300'000'000;  // the clock, the device, its pairs
  constexpr double kNsPerByte = 1.0;         // of fresh pages, on a slow host
  int64_t rows = 1;                          // no call at all
  for (const VerbGroup group : plan.groups) rows += RowsOf(group);
  double bytes = 0;
  const bool registers = std::ranges::find(plan.groups, VerbGroup::kRegister) != plan.groups.end();
  for (const uint64_t size : kRegisterSizes) {
    if (registers && size <= plan.max_bytes) bytes += static_cast<double>(size);
  }
  // The warm-up has a tenth of a row's time.
  // Warm-up, the timed calls, and those whose system calls are counted.
  return kSetUpNs + rows * (plan.row_ns / 10 + plan.row_ns + plan.row_ns / 10) +
         static_cast<int64_t>(bytes * kNsPerByte);
}

int64_t EffectiveDeadlineNs(const CostPlan& plan) {
  return plan.deadline_ns != 0 ? plan.deadline_ns : PlannedNs(plan) + kDeadlineGraceNs;
}

}  // namespace verbscope
