#include <gtest/gtest.h>

#include <random>
#include <string>

#include "core/record/record_json.h"

namespace verbscope {
namespace {

constexpr char kBad[] = "\xEF\xBF\xBD";

TEST(ValidUtf8Test, WellFormedTextStaysAsItIs) {
  for (const std::string& text :
       {std::string(), std::string("plain\n\t\x1b[0m"), std::string("a\0b", 3),
        std::string("\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEF\xBF\xBF \xF0\x90\x80\x80 "
                    "\xF4\x8F\xBF\xBF")}) {
    EXPECT_EQ(ValidUtf8(text), text);
  }
}

TEST(ValidUtf8Test, EveryWrongByteIsReplaced) {
  const std::string bad = kBad;
  EXPECT_EQ(ValidUtf8("a\xFFz"), "a" + bad + "z");
  EXPECT_EQ(ValidUtf8("\x80"), bad);                      // continuation without a lead
  EXPECT_EQ(ValidUtf8("\xC3"), bad);                      // cut
  EXPECT_EQ(ValidUtf8("\xE2\x82"), bad + bad);            // cut
  EXPECT_EQ(ValidUtf8("\xC3("), bad + "(");               // the next character survives
  EXPECT_EQ(ValidUtf8("\xC0\xAF"), bad + bad);            // overlong '/'
  EXPECT_EQ(ValidUtf8("\xE0\x80\xAF"), bad + bad + bad);  // overlong '/'
  EXPECT_EQ(ValidUtf8("\xF0\x80\x80\xAF"), bad + bad + bad + bad);
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80"), bad + bad + bad);            // surrogate
  EXPECT_EQ(ValidUtf8("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // above U+10FFFF
  EXPECT_EQ(ValidUtf8("\xF8\x88\x80\x80\x80"), bad + bad + bad + bad + bad);
}

// nlohmann's own strict writer is the second opinion: it throws on what is not UTF-8.
TEST(ValidUtf8Test, RandomBytesBecomeWhatAStrictWriterAccepts) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 5'000; ++i) {
    std::string bytes;
    for (uint64_t n = random() % 40; n > 0; --n) bytes += static_cast<char>(random());
    for (const std::string& text : {ValidUtf8(bytes), Printable(bytes)}) {
      EXPECT_NO_THROW(nlohmann::json(text).dump());
      EXPECT_EQ(ValidUtf8(text), text);
    }
  }
}

TEST(PrintableTest, ControlCharactersVanishAndLineEndsBecomeSpaces) {
  EXPECT_EQ(Printable("\x1b[2Jhello\x07"), "[2Jhello");
  EXPECT_EQ(Printable("one\ntwo\tthree\r"), "one two three ");
  EXPECT_EQ(Printable(std::string("a\0b\x7F", 4)), "ab");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m"),
            "31m");  // CSI as one C1 character
  EXPECT_EQ(Printable("a\xE2\x80\xAE"
                      "b\xE2\x81\xA6"),
            "ab");                           // right-to-left override, isolate
  EXPECT_EQ(Printable("\xE2\x80\xA8"), "");  // line separator
  EXPECT_EQ(Printable("caf\xC3\xA9 \xE6\xBC\xA2"), "caf\xC3\xA9 \xE6\xBC\xA2");
  EXPECT_EQ(Printable("a\xFF"), std::string("a") + kBad);
}

TEST(PrintableTest, IsCutAtACharactersEnd) {
  EXPECT_EQ(Printable("abcdef", 3), "abc");
  EXPECT_EQ(Printable("ab\xC3\xA9z", 3), "ab");
  EXPECT_EQ(Printable("ab\xC3\xA9z", 4), "ab\xC3\xA9");
  EXPECT_EQ(Printable(std::string(5'000, 'x')).size(), 1024u);
  EXPECT_EQ(Printable("x", 0), "");
}

}  // namespace
}  // namespace verbscope
