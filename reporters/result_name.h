// What formats for other programs call a result: the members of its point by name, a name that is
// the same from run to run, and numbers without loss. Pure functions, any thread.
#ifndef VERBSCOPE_REPORTERS_RESULT_NAME_H_
#define VERBSCOPE_REPORTERS_RESULT_NAME_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/record/record.h"

namespace verbscope {

struct NamedText {
  std::string_view name;
  std::string value;  // empty: does not apply
};

// Every member of a point, under its JSON name; the same names in the same order for every point.
// Values are printable.
std::vector<NamedText> PointColumns(const Point& point);

// "send-lat: send 64 bytes, 1 QP, wait busy, requester": the same for the same measurement of
// another day, so that a history can join on it. Set and run are named where there are several.
std::string ResultName(const Record& record, const Result& result);

// Turns equal names into different ones: the second "a" becomes "a (2)". One per document.
class UniqueNames {
 public:
  std::string Take(const std::string& name);

 private:
  std::map<std::string, int> seen_;
};

// The shortest text that is read as the same number; empty for what is no number.
std::string NumberText(double value);

// The same of what may be unknown; unknown is empty.
template <class T>
std::string NumberText(const std::optional<T>& value) {
  if (!value) return "";
  if constexpr (std::is_same_v<T, bool>) {
    return *value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(*value);
  } else {
    return NumberText(*value);
  }
}

// Whether anything was measured or found out: samples, bytes, calls, checks, devices, rows of a
// comparison. A record without any is no result, whatever its verdict says.
bool HasEvidence(const Record& record);

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_RESULT_NAME_H_
