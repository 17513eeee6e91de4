// A small plot for a terminal: a few named series of points over a logarithmic x axis. Each series
// has a letter; where points of several fall on one place, the place shows '*'.
//
// Draws on a canvas; one thread.
#ifndef VERBSCOPE_REPORTERS_TEXT_PLOT_H_
#define VERBSCOPE_REPORTERS_TEXT_PLOT_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reporters/text_canvas.h"

namespace verbscope {

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x above 0
};

struct Plot {
  std::string title;
  std::string x_label;
  bool log_y = false;  // else from 0
  std::function<std::string(double)> x_text;
  std::function<std::string(double)> y_text;
  std::vector<PlotSeries> series;  // up to 26
};

// Nothing with fewer than two places on the x axis.
void DrawPlot(const Plot& plot, Canvas& canvas);

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_TEXT_PLOT_H_
