#include "reporters/text_canvas.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace verbscope {
namespace {

TEST(TimeTextTest, UnitsAdaptAndDigitsStayFour) {
  const std::pair<double, const char*> rows[] = {
      {0, "0 ns"},           {1, "1 ns"},           {0.408, "0.41 ns"},   {9.8, "9.80 ns"},
      {12.34, "12.3 ns"},    {123.4, "123 ns"},     {999, "999 ns"},      {999.4, "999 ns"},
      {999.6, "1.000 us"},   {1000, "1.000 us"},    {1021, "1.021 us"},   {9'999.4, "9.999 us"},
      {9'999.6, "10.00 us"}, {12'430, "12.43 us"},  {99'994, "99.99 us"}, {99'996, "100.0 us"},
      {999'949, "999.9 us"}, {999'960, "1.000 ms"}, {1.5e6, "1.500 ms"},  {999.96e6, "1.000 s"},
      {2e9, "2.000 s"},      {100e9, "100.0 s"},    {3'600e9, "3600 s"},  {-5, "-5 ns"},
  };
  for (const auto& [ns, text] : rows) EXPECT_EQ(TimeText(ns), text) << ns;
}

TEST(TimeTextTest, ColumnsAlignNumbersAndUnits) {
  for (const double ns : {0.0, 7.0, 0.41, 123.4, 999.0, 1e3, 99'996.0, 5.5e6, 1e9, 100e9}) {
    EXPECT_EQ(TimeColumn(ns).size(), 8u) << ns;
  }
  EXPECT_EQ(TimeColumn(2e9), "2.000 s ");
  EXPECT_EQ(TimeColumn(812), "  812 ns");
  EXPECT_EQ(TimeColumn(std::nullopt), "    -   ");
}

TEST(CountTextTest, ThousandsAreSeparated) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1'000), "1,000");
  EXPECT_EQ(CountText(123'456), "123,456");
  EXPECT_EQ(CountText(18'446'744'073'709'551'615u), "18,446,744,073,709,551,615");
}

TEST(CountTextTest, ShortFormNeverPassesNineColumns) {
  EXPECT_EQ(ShortCountText(9'999'999), "9,999,999");
  EXPECT_EQ(ShortCountText(10'000'000), "10.0 M");
  EXPECT_EQ(ShortCountText(123'400'000), "123.4 M");
  EXPECT_EQ(ShortCountText(999'960'000), "1.0 G");
  EXPECT_EQ(ShortCountText(18'446'744'073'709'551'615u), "18.4 E");
}

TEST(PluralTest, OneIsOne) {
  EXPECT_EQ(Plural(1, "QP"), "1 QP");
  EXPECT_EQ(Plural(0, "byte"), "0 bytes");
  EXPECT_EQ(Plural(1024, "byte"), "1,024 bytes");
}

TEST(PadTest, CountsCharactersNotBytes) {
  EXPECT_EQ(Columns("caf\xC3\xA9"), 4u);
  EXPECT_EQ(PadRight("\xE2\x96\x88", 3), "\xE2\x96\x88  ");
  EXPECT_EQ(PadLeft("\xC3\xA9", 2), " \xC3\xA9");
  EXPECT_EQ(PadLeft("long", 2), "long");
}

TEST(CanvasTest, LabelledTextWrapsUnderItself) {
  TextOptions options;
  options.width = 60;
  Canvas canvas(options);
  canvas.Labelled("note", "one two three four five six seven eight nine ten eleven twelve");
  EXPECT_EQ(canvas.Take(),
            "  note     one two three four five six seven eight nine ten\n"
            "           eleven twelve\n");
}

TEST(CanvasTest, WordsLongerThanALineAreCutAtCharacters) {
  TextOptions options;
  options.width = 60;
  Canvas canvas(options);
  std::string word;
  for (int i = 0; i < 70; ++i) word += "\xC3\xA9";
  canvas.Wrapped(0, word);
  const std::string text = canvas.Take();
  const size_t end = text.find('\n');
  EXPECT_EQ(Columns(std::string_view(text).substr(0, end)), 60u);
  EXPECT_EQ(Columns(std::string_view(text).substr(end + 1)), 11u);  // ten and the line end
}

TEST(CanvasTest, BlankLinesComeAloneAndNeverFirst) {
  Canvas canvas(TextOptions{});
  canvas.Blank();
  canvas.Line("a  ");
  canvas.Blank();
  canvas.Blank();
  canvas.Line("b");
  EXPECT_EQ(canvas.Take(), "a\n\nb\n");
}

TEST(CanvasTest, ColoursOnlyWhenAskedFor) {
  TextOptions options;
  EXPECT_EQ(Canvas(options).In(Ink::kRed, "x"), "x");
  options.color = true;
  EXPECT_EQ(Canvas(options).In(Ink::kRed, "x"), "\x1b[1;31mx\x1b[0m");
  EXPECT_EQ(Canvas(options).In(Ink::kPlain, "x"), "x");
  EXPECT_EQ(Canvas(options).In(Ink::kRed, ""), "");
}

TEST(CanvasTest, SafeTextHasNoControlsAndIsAsciiWhereAsked) {
  TextOptions options;
  EXPECT_EQ(Canvas(options).Safe("\x1b[1mcaf\xC3\xA9\n"), "[1mcaf\xC3\xA9 ");
  options.unicode = false;
  EXPECT_EQ(Canvas(options).Safe("caf\xC3\xA9 \xE6\xBC\xA2\xFF"), "caf? ??");
}

}  // namespace
}  // namespace verbscope
