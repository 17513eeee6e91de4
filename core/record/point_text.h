// What a result is about, in words. Pure function, any thread.
#ifndef VERBSCOPE_CORE_RECORD_POINT_TEXT_H_
#define VERBSCOPE_CORE_RECORD_POINT_TEXT_H_

#include <string>

#include "core/record/point.h"

namespace verbscope {

// What of a point is its identity from run to run: a rate that is a share of what busy polling
// sustained differs each time, the share is what stays.
Point Identity(Point point);

// "busy", "hybrid:20us".
std::string WaitText(const Point& point);

enum class WithSize { kNo, kYes };

// "send 64 bytes, 1 QP, wait busy". Texts of the point stand as they are: whoever prints it makes
// them safe.
std::string PointText(const Point& point, WithSize with_size = WithSize::kYes);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_POINT_TEXT_H_
