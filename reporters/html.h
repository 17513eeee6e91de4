// Records as one HTML page that needs nothing else: no network, no file beside it. Pure function,
// any thread.
//
// The page holds the JSON documents as reporters/json writes them, in script elements of type
// application/json with every `<` written as \u003c. Its own script builds tables and charts from
// them, so that what is shown and what the document has cannot differ. A Content-Security-Policy in
// the page forbids it to load anything.
#ifndef VERBSCOPE_REPORTERS_HTML_H_
#define VERBSCOPE_REPORTERS_HTML_H_

#include <span>
#include <string>

#include "core/record/record.h"

namespace verbscope {

// One record: its report. Several: how they compare, and the report of each. Valid UTF-8 whatever
// the texts in the records are.
std::string RenderHtml(std::span<const Record> records);

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_HTML_H_
