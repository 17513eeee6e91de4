// A point as texts by name: what results are joined by, and what is named when they do not join.
// Pure functions, any thread.
#ifndef VERBSCOPE_CORE_COMPARE_POINT_KEY_H_
#define VERBSCOPE_CORE_COMPARE_POINT_KEY_H_

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/record/point.h"

namespace verbscope {

// Names as in the document; a member that is absent is an empty text. Always the same names in the
// same order.
//
// A rate that is a share of what busy polling sustained differs from run to run and identifies
// nothing: its share does.
std::vector<std::pair<std::string_view, std::string>> KeyMembers(const Point& point);

// Equal for equal points: all members but those in `ignored`.
std::string PointKey(const Point& point, const std::set<std::string>& ignored = {});

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COMPARE_POINT_KEY_H_
