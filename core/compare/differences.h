// What two sets of reports differ in besides what they measured: what was asked for (parameters)
// and where it ran (environment). Pure functions of finished records, any thread.
#ifndef VERBSCOPE_CORE_COMPARE_DIFFERENCES_H_
#define VERBSCOPE_CORE_COMPARE_DIFFERENCES_H_

#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/record/record.h"

namespace verbscope {

// What may differ although it was asked for.
struct AllowedDifferences {
  bool all = false;
  std::set<std::string> names = {};  // members of a plan or of a point, "wait"
};
// Names as users write them: "size", "wait", "all". kUsage for one that is none, with those that
// are.
Expected<AllowedDifferences> ParseAllowed(const std::vector<std::string>& names);

// Fields of which both sets do not have one and the same value; what several reports of a set have
// is joined by commas.
//
// "plan.qps": members of the plan but those that do not change a figure (changes, deadline, repeat,
// interval, p99 limit). "requester.wait", "responder.wait": no plan holds it.
std::vector<SetDifference> ParameterDifferences(std::span<const Record> base,
                                                std::span<const Record> fresh);
// "local.device.firmware", "path_mtu_bytes", "tool.version", …
std::vector<SetDifference> EnvironmentDifferences(std::span<const Record> base,
                                                  std::span<const Record> fresh);

bool IsAllowed(const AllowedDifferences& allowed, const SetDifference& parameter);

// Members of a point to leave out when results are joined: those allowed by name, or, where all is
// allowed, those in which each set has a single value of its own.
std::set<std::string> IgnoredMembers(const AllowedDifferences& allowed,
                                     std::span<const Record> base, std::span<const Record> fresh);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COMPARE_DIFFERENCES_H_
