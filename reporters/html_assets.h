// The fixed parts of the HTML report, as they lie in the binary: made at build time by
// reporters/html/embed.py from reporters/html/ and from Debian's libjs-chart.js. Views of static
// memory, any thread.
#ifndef VERBSCOPE_REPORTERS_HTML_ASSETS_H_
#define VERBSCOPE_REPORTERS_HTML_ASSETS_H_

#include <string_view>

namespace verbscope {

// Chart.js 3, with the licence line it comes with.
std::string_view ChartScript();
// The page's own style sheet and script.
std::string_view PageStyle();
std::string_view PageScript();

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_HTML_ASSETS_H_
