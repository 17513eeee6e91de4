#include "core/compare/run_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/compare/point_key.h"
#include "core/record/point_text.h"

namespace verbscope {
namespace {

// The runs of one set at one point and side.
struct Group {
  Point point;
  std::string side;
  std::vector<const Result*> runs;
  double clock_step_ns = 0;
};

// One set's groups in the order in which they came.
struct Groups {
  std::vector<Group> list;
  std::map<std::string, size_t> by_key;
};

double ClockStepNs(const Record& record, const std::string& side) {
  const bool remote = record.remote && record.remote->role == side;
  const SideRecord& of = remote ? *record.remote : record.local;
  return of.clock ? of.clock->resolution_ns.value_or(0) : 0;
}

Error Indistinct(std::string_view set, const Point& one, const Point& other) {
  return UsageError(fmt::format("the {} set has \"{}\" and \"{}\", which differ only in what "
                                "--allow-diff leaves out",
                                set, PointText(one), PointText(other)),
                    {}, "give reports with one of them, or allow less to differ");
}

Expected<Groups> GroupRuns(std::span<const Record> records, std::string_view set,
                           const std::set<std::string>& ignored) {
  Groups groups;
  for (const Record& record : records) {
    for (const Result& result : record.results) {
      const std::string key = result.side + ";" + PointKey(result.point, ignored);
      const auto [at, first] = groups.by_key.emplace(key, groups.list.size());
      if (first) groups.list.push_back({.point = result.point, .side = result.side, .runs = {}});
      Group& group = groups.list[at->second];
      if (!ignored.empty() && PointKey(group.point) != PointKey(result.point)) {
        return Fail(Indistinct(set, group.point, result.point));
      }
      if (group.runs.size() == kMaxRunsOfASet) {
        return Fail(UsageError(fmt::format("the {} set has more than {} runs of \"{}\"", set,
                                           kMaxRunsOfASet, PointText(group.point)),
                               {}, "compare fewer of them"));
      }
      group.runs.push_back(&result);
      group.clock_step_ns = std::max(group.clock_step_ns, ClockStepNs(record, result.side));
    }
  }
  return groups;
}

JoinedRuns Joined(Group& base, Group& fresh) {
  return {.point = base.point,
          .side = base.side,
          .base = std::move(base.runs),
          .fresh = std::move(fresh.runs),
          .clock_step_ns = std::max(base.clock_step_ns, fresh.clock_step_ns)};
}

std::string OnlyIn(std::string_view set, const Group& group) {
  return fmt::format("only in {}: {}, {}", set, PointText(group.point), group.side);
}

// Index of the group of `other` that belongs to group `i` of `one`.
std::vector<std::optional<size_t>> MatchByKey(const Groups& one, const Groups& other) {
  std::vector<std::optional<size_t>> matches(one.list.size());
  for (const auto& [key, i] : one.by_key) {
    if (const auto at = other.by_key.find(key); at != other.by_key.end()) matches[i] = at->second;
  }
  return matches;
}

std::vector<std::optional<size_t>> MatchByOrder(const Groups& one, const Groups& other) {
  std::map<std::string, std::vector<size_t>> others;
  for (size_t i = 0; i < other.list.size(); ++i) others[other.list[i].side].push_back(i);
  std::map<std::string, size_t> next;
  std::vector<std::optional<size_t>> matches;
  for (const Group& group : one.list) {
    const std::vector<size_t>& candidates = others[group.side];
    const size_t i = next[group.side]++;
    matches.push_back(i < candidates.size() ? std::optional(candidates[i]) : std::nullopt);
  }
  return matches;
}

}  // namespace

Expected<RunTable> JoinRuns(std::span<const Record> base, std::span<const Record> fresh,
                            const std::set<std::string>& ignored, bool by_order) {
  Expected<Groups> of_base = GroupRuns(base, "base", ignored);
  if (!of_base) return Fail(std::move(of_base.error()));
  Expected<Groups> of_fresh = GroupRuns(fresh, "new", ignored);
  if (!of_fresh) return Fail(std::move(of_fresh.error()));
  const std::vector<std::optional<size_t>> matches =
      by_order ? MatchByOrder(*of_base, *of_fresh) : MatchByKey(*of_base, *of_fresh);
  RunTable table;
  std::vector<bool> used(of_fresh->list.size());
  for (size_t i = 0; i < matches.size(); ++i) {
    if (!matches[i]) {
      table.unmatched.push_back(OnlyIn("base", of_base->list[i]));
      continue;
    }
    used[*matches[i]] = true;
    table.rows.push_back(Joined(of_base->list[i], of_fresh->list[*matches[i]]));
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) table.unmatched.push_back(OnlyIn("new", of_fresh->list[i]));
  }
  return table;
}

}  // namespace verbscope
