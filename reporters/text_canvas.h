// Where a text report is drawn: lines within a width, colours or none, safe text only. One canvas
// per report, one thread.
#ifndef VERBSCOPE_REPORTERS_TEXT_CANVAS_H_
#define VERBSCOPE_REPORTERS_TEXT_CANVAS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/record/count_text.h"
#include "reporters/text_options.h"

namespace verbscope {

// "812 ns", "1.021 us", "12.43 us", "123.4 ms", "2.000 s": up to four digits, at most 8 columns
// below 10,000 s. A whole number of ns is shown as such.
std::string TimeText(double ns);
// The same right-aligned by its number and left-aligned by its unit, 8 columns; `-` for no value.
std::string TimeColumn(std::optional<double> ns);
// Like CountText, but never wider than 9 columns: "123.4 M" from 10^7 on.
std::string ShortCountText(uint64_t count);

// Columns of well-formed UTF-8 text without control characters: one per character.
size_t Columns(std::string_view text);
std::string PadLeft(std::string_view text, size_t columns);   // right-aligned
std::string PadRight(std::string_view text, size_t columns);  // left-aligned

// PadRight of a text of any length: cut where it would run into the next column.
std::string Cell(std::string text, size_t columns);

enum class Ink { kPlain, kBold, kDim, kGreen, kRed, kYellow, kCyan };

class Canvas {
 public:
  explicit Canvas(const TextOptions& options);

  size_t width() const { return width_; }
  const TextOptions& options() const { return options_; }

  void Line(std::string_view line);
  // One empty line, however often it is asked for, and none at the top.
  void Blank();
  // `text` wrapped at words behind `label`, which stands in a column of its own:
  //   "  label    first line"
  //   "           second line"
  void Labelled(std::string_view label, std::string_view text, Ink ink = Ink::kPlain);
  // The same behind any head, which takes up `columns`.
  void Hanging(std::string_view head, size_t columns, std::string_view text, Ink ink = Ink::kPlain);
  // `text` wrapped at words, every line indented.
  void Wrapped(size_t indent, std::string_view text, Ink ink = Ink::kPlain);

  // `text` within SGR sequences, or as it is without colours. Pad before, not after.
  std::string In(Ink ink, std::string_view text) const;
  // Text from elsewhere, fit for this terminal.
  std::string Safe(std::string_view text) const;

  std::string Take() { return std::move(text_); }

 private:
  std::vector<std::string> Wrap(std::string_view text, size_t columns) const;

  TextOptions options_;
  size_t width_;
  std::string text_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_TEXT_CANVAS_H_
