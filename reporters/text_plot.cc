#include "reporters/text_plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace verbscope {
namespace {

constexpr size_t kRows = 9;
constexpr size_t kLabelColumns = 11;
constexpr double kSmallest = 1e-9;  // what a logarithm is taken of

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // 0 … cells - 1.
  size_t CellOf(double value, size_t cells) const {
    if (!(high > low)) return 0;
    const double share = std::clamp((value - low) / (high - low), 0.0, 1.0);
    return static_cast<size_t>(std::lround(share * static_cast<double>(cells - 1)));
  }
  double ValueOf(size_t cell, size_t cells) const {
    return low + (high - low) * static_cast<double>(cell) / static_cast<double>(cells - 1);
  }
};

double Scaled(double value, bool logarithmic) {
  return logarithmic ? std::log10(std::max(value, kSmallest)) : value;
}

struct Axes {
  Range x;
  Range y;
};

Axes AxesOf(const Plot& plot) {
  Axes axes;
  if (!plot.log_y) axes.y.Take(0);
  for (const PlotSeries& series : plot.series) {
    for (const auto& [x, y] : series.points) {
      axes.x.Take(Scaled(x, true));
      axes.y.Take(Scaled(y, plot.log_y));
    }
  }
  if (!(axes.y.high > axes.y.low)) axes.y.high = axes.y.low + 1;
  return axes;
}

char Letter(size_t series) { return static_cast<char>('A' + series); }

std::vector<std::string> Cells(const Plot& plot, const Axes& axes, size_t columns) {
  std::vector<std::string> cells(kRows, std::string(columns, ' '));
  for (size_t i = 0; i < plot.series.size() && i < 26; ++i) {
    for (const auto& [x, y] : plot.series[i].points) {
      const size_t row = axes.y.CellOf(Scaled(y, plot.log_y), kRows);
      char& cell = cells[kRows - 1 - row][axes.x.CellOf(Scaled(x, true), columns)];
      cell = cell == ' ' ? Letter(i) : '*';
    }
  }
  return cells;
}

}  // namespace

void DrawPlot(const Plot& plot, Canvas& canvas) {
  const Axes axes = AxesOf(plot);
  if (!(axes.x.high > axes.x.low)) return;
  const size_t columns = std::min<size_t>(canvas.width(), 100) - kLabelColumns - 3;
  canvas.Blank();
  canvas.Wrapped(0, plot.title, Ink::kBold);
  const std::vector<std::string> cells = Cells(plot, axes, columns);
  for (size_t row = 0; row < kRows; ++row) {
    std::string label;
    if (row % 4 == 0) {
      const double value = axes.y.ValueOf(kRows - 1 - row, kRows);
      label = plot.y_text(plot.log_y ? std::pow(10, value) : value);
    }
    canvas.Line(PadLeft(label, kLabelColumns) + " |" + cells[row]);
  }
  canvas.Line(std::string(kLabelColumns, ' ') + " +" + std::string(columns, '-'));
  const std::string first = plot.x_text(std::pow(10, axes.x.low));
  const std::string last = plot.x_text(std::pow(10, axes.x.high));
  canvas.Line(std::string(kLabelColumns + 2, ' ') + first +
              PadLeft(last, columns - std::min(columns, Columns(first))));
  std::string legend = plot.x_label + ";";
  for (size_t i = 0; i < plot.series.size() && i < 26; ++i) {
    legend += fmt::format(" {} {}{}", Letter(i), canvas.Safe(plot.series[i].name),
                          i + 1 < plot.series.size() ? "," : "");
  }
  canvas.Wrapped(2, legend + "; * several", Ink::kDim);
}

}  // namespace verbscope
