#include "reporters/text_canvas.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/record/record_json.h"

namespace verbscope {
namespace {

constexpr size_t kLabelColumns = 11;  // "  remote   "

std::string_view Sequence(Ink ink) {
  switch (ink) {
    case Ink::kPlain:
      break;
    case Ink::kBold:
      return "\x1b[1m";
    case Ink::kDim:
      return "\x1b[2m";
    case Ink::kGreen:
      return "\x1b[1;32m";
    case Ink::kRed:
      return "\x1b[1;31m";
    case Ink::kYellow:
      return "\x1b[33m";
    case Ink::kCyan:
      return "\x1b[36m";
  }
  return "";
}

// Four digits, however many of them stand before the point; `value` is below 1,000.
std::string FourDigits(double value) {
  if (value < 9.9995) return fmt::format("{:.3f}", value);
  if (value < 99.995) return fmt::format("{:.2f}", value);
  return fmt::format("{:.1f}", value);
}

}  // namespace

std::string TimeText(double ns) {
  if (ns < 0) return "-" + TimeText(-ns);
  if (ns < 999.5) {
    if (ns == std::floor(ns) || ns >= 99.95) return fmt::format("{:.0f} ns", ns);
    return ns < 9.995 ? fmt::format("{:.2f} ns", ns) : fmt::format("{:.1f} ns", ns);
  }
  // 999.96 us would become 1000.0: it is 1.000 ms.
  constexpr double kHighest = 999.95;
  if (ns < kHighest * 1e3) return FourDigits(ns / 1e3) + " us";
  if (ns < kHighest * 1e6) return FourDigits(ns / 1e6) + " ms";
  if (ns < kHighest * 1e9) return FourDigits(ns / 1e9) + " s";
  return fmt::format("{:.0f} s", ns / 1e9);
}

std::string TimeColumn(std::optional<double> ns) {
  if (!ns) return "    -   ";
  std::string text = TimeText(*ns);
  if (text.ends_with(" s")) text += ' ';
  return PadLeft(text, 8);
}

std::string ShortCountText(uint64_t count) {
  if (count < 10'000'000) return CountText(count);
  constexpr std::array<std::string_view, 5> kUnits = {"M", "G", "T", "P", "E"};
  double value = static_cast<double>(count) / 1e6;
  size_t unit = 0;
  while (value >= 999.95) {
    value /= 1e3;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

size_t Columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string PadLeft(std::string_view text, size_t columns) {
  const size_t have = Columns(text);
  return std::string(have < columns ? columns - have : 0, ' ').append(text);
}

std::string PadRight(std::string_view text, size_t columns) {
  const size_t have = Columns(text);
  return std::string(text).append(have < columns ? columns - have : 0, ' ');
}

std::string Cell(std::string text, size_t columns) {
  while (Columns(text) >= columns) {
    const auto last = std::find_if(text.rbegin(), text.rend(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // the first byte of a character
    });
    text.resize(static_cast<size_t>(text.rend() - last) - 1);
  }
  return PadRight(text, columns);
}

Canvas::Canvas(const TextOptions& options)
    : options_(options), width_(static_cast<size_t>(std::clamp(options.width, 60, 200))) {}

void Canvas::Line(std::string_view line) {
  const size_t end = line.find_last_not_of(' ');
  text_.append(line.substr(0, end == line.npos ? 0 : end + 1)).append("\n");
}

void Canvas::Blank() {
  if (!text_.empty() && !text_.ends_with("\n\n")) text_ += '\n';
}

void Canvas::Labelled(std::string_view label, std::string_view text, Ink ink) {
  const std::string head = PadRight("  " + std::string(label), kLabelColumns);
  Hanging(In(Ink::kDim, head), kLabelColumns, text, ink);
}

void Canvas::Hanging(std::string_view head, size_t columns, std::string_view text, Ink ink) {
  std::string start(head);
  for (const std::string& line : Wrap(text, width_ - columns)) {
    Line(start + In(ink, line));
    start.assign(columns, ' ');
  }
}

void Canvas::Wrapped(size_t indent, std::string_view text, Ink ink) {
  for (const std::string& line : Wrap(text, width_ - indent)) {
    Line(std::string(indent, ' ') + In(ink, line));
  }
}

std::string Canvas::In(Ink ink, std::string_view text) const {
  if (!options_.color || ink == Ink::kPlain || text.empty()) return std::string(text);
  return std::string(Sequence(ink)).append(text).append("\x1b[0m");
}

std::string Canvas::Safe(std::string_view text) const {
  std::string safe = Printable(text);
  if (options_.unicode) return safe;
  std::string ascii;
  for (const char c : safe) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80)
      ascii += c;
    else if (byte >= 0xC0)
      ascii += '?';  // one per character: its other bytes are skipped
  }
  return ascii;
}

std::vector<std::string> Canvas::Wrap(std::string_view text, size_t columns) const {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (!line.empty() && Columns(line) + 1 + Columns(word) > columns) {
      lines.push_back(std::move(line));
      line.clear();
    }
    // A word longer than the line is cut at a character's end.
    while (Columns(word) > columns) {
      size_t bytes = 0;
      for (size_t taken = 0; taken < columns; ++taken) {
        do ++bytes;
        while (bytes < word.size() && (static_cast<unsigned char>(word[bytes]) & 0xC0) == 0x80);
      }
      lines.emplace_back(word.substr(0, bytes));
      word.remove_prefix(bytes);
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty() || lines.empty()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace verbscope
