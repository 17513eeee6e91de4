// Records as Markdown for the summary page of a CI job. Pure function, any thread.
#ifndef VERBSCOPE_REPORTERS_MARKDOWN_H_
#define VERBSCOPE_REPORTERS_MARKDOWN_H_

#include <span>
#include <string>

#include "core/record/record.h"

namespace verbscope {

// GitHub's Markdown: for each record a heading with the verdict, tables of results, assertions,
// failed checks and the comparison, and what ran where, folded away. A mark never stands without
// its word. Texts of the record are escaped: they make no markup and no HTML. Of long tables the
// first 200 rows are shown and the rest is counted: pages have limits (1 MiB).
std::string RenderMarkdown(std::span<const Record> records);

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_MARKDOWN_H_
