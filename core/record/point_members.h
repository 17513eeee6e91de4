// The members of a point as texts by name: the one list for whoever joins, prints or names them.
// Pure function, any thread.
#ifndef VERBSCOPE_CORE_RECORD_POINT_MEMBERS_H_
#define VERBSCOPE_CORE_RECORD_POINT_MEMBERS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/record/point.h"

namespace verbscope {

struct PointMember {
  std::string_view name;            // as in the document
  std::optional<std::string> text;  // "true" or "false" of a yes or no; absent: does not apply
};

// The same names in the same order for every point. Texts stand as they are: whoever prints them
// makes them safe.
std::vector<PointMember> PointMembers(const Point& point);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_POINT_MEMBERS_H_
