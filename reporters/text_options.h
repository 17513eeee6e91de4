// How a text report looks. Plain data.
#ifndef VERBSCOPE_REPORTERS_TEXT_OPTIONS_H_
#define VERBSCOPE_REPORTERS_TEXT_OPTIONS_H_

namespace verbscope {

struct TextOptions {
  bool unicode = true;   // bars of eighth blocks; else '#'
  bool color = false;    // SGR sequences
  int width = 80;        // columns, 60 … 200 (clamped)
  bool verbose = false;  // the full block for each of several results, and all groups of metrics
};

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_TEXT_OPTIONS_H_
