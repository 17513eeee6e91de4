#include "transports/control/sanitize.h"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

TEST(SanitizeTest, PlainAndNonAsciiTextIsKept) {
  EXPECT_EQ(Sanitize("v0.1.0-rc1 (Größe 5 µs) 漢 🙂", 100),
            "v0.1.0-rc1 (Größe 5 µs) 漢 🙂");
}

TEST(SanitizeTest, TerminalControlIsRemovedAndLinesAreJoined) {
  EXPECT_EQ(Sanitize("a\x1b[31mred\x07\r\nb\tc\x7f", 100), "a[31mred b c");
  EXPECT_EQ(Sanitize("c1:\xc2\x9b"
                     "31m",
                     100),
            "c1:31m");
}

TEST(SanitizeTest, TextThatReordersALineIsRemoved) {
  EXPECT_EQ(Sanitize("x\xe2\x80\xaeyz\xe2\x81\xa6!", 100), "xyz!");
}

TEST(SanitizeTest, BytesThatAreNoUtf8BecomeQuestionMarks) {
  EXPECT_EQ(Sanitize("\xff", 100), "?");
  EXPECT_EQ(Sanitize("a\xc3", 100), "a?") << "cut short";
  EXPECT_EQ(Sanitize("\xc0\xaf", 100), "??") << "overlong";
  EXPECT_EQ(Sanitize("\xed\xa0\x80", 100), "???") << "surrogate";
  EXPECT_EQ(Sanitize("\xf4\x90\x80\x80", 100), "????") << "above U+10FFFF";
}

TEST(SanitizeTest, LengthIsBoundedBetweenCharacters) {
  EXPECT_EQ(Sanitize("abcdef", 3), "abc");
  EXPECT_EQ(Sanitize("ab\xc3\xa4", 3), "ab");
  EXPECT_EQ(Sanitize("ab\xc3\xa4", 4), "ab\xc3\xa4");
  EXPECT_EQ(Sanitize("abc", 0), "");
}

}  // namespace
}  // namespace verbscope
