// A Record as its JSON document (schema version 1): the one place where documents are written.
// Pure function, any thread.
#ifndef VERBSCOPE_REPORTERS_JSON_H_
#define VERBSCOPE_REPORTERS_JSON_H_

#include <string>

#include "core/record/record.h"

namespace verbscope {

// Indented by 2; arrays and objects of plain values that fit 100 columns stay on one line, so that
// a histogram has one line per bucket. Valid UTF-8, finite numbers only, ends with a line end.
std::string RenderJson(const Record& record);

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_JSON_H_
