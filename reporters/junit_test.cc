#include "reporters/junit.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/record/random_record.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Whether tags nest and every character is one of XML 1.0. Attributes here never hold '<' or '>'.
void ExpectWellFormed(const std::string& text) {
  ASSERT_EQ(ValidUtf8(text), text);
  for (const char c : text) ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
  ASSERT_FALSE(Contains(text, "\xEF\xBF\xBE") || Contains(text, "\xEF\xBF\xBF"));
  std::vector<std::string> open;
  size_t at = text.find("?>") + 2;
  while ((at = text.find('<', at)) != std::string::npos) {
    const size_t end = text.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = text.substr(at + 1, end - at - 1);
    ASSERT_EQ(CountOf(tag, "\"") % 2, 0u) << tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.starts_with("/")) {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ("/" + open.back(), tag);
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(name);
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
}

Record Gated(std::string status, int exit_code) {
  Record record;
  record.command = "send-lat";
  record.verdict = exit_code == 0 ? "pass" : exit_code == 4 ? "inconclusive" : "fail";
  record.exit_code = exit_code;
  Result& result = record.results.emplace_back();
  result.metrics.latency.emplace().samples = 1000;
  record.gates.push_back({.expression = "p99<5us",
                          .unit = "ns",
                          .outcome = {.status = std::move(status),
                                      .observed = 6000,
                                      .bound = 5900,
                                      .limit = 5000,
                                      .samples = 1000,
                                      .effective_samples = 70,
                                      .why = "of <one> & \"another\""}});
  return record;
}

std::string Rendered(const Record& record) {
  std::string text = RenderJunit({&record, 1});
  ExpectWellFormed(text);
  return text;
}

TEST(JunitTest, WhatPassedIsATestCaseWithoutMore) {
  const std::string text = Rendered(Gated("pass", 0));
  EXPECT_TRUE(Contains(text, "tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"0\"")) << text;
  EXPECT_TRUE(Contains(text, "name=\"assert p99&lt;5us\""));
  EXPECT_FALSE(Contains(text, "<failure"));
}

TEST(JunitTest, AFailedAssertionSaysFiguresAndWhy) {
  const std::string text = Rendered(Gated("fail", 3));
  EXPECT_TRUE(Contains(text, "failures=\"1\" errors=\"0\"")) << text;
  EXPECT_TRUE(Contains(
      text,
      "<failure type=\"fail\" message=\"fail: observed 6000 ns, bound 5900 ns, limit 5000 ns, "
      "samples 1000, effective samples 70; of &lt;one&gt; &amp; &quot;another&quot;\">"))
      << text;
}

TEST(JunitTest, InconclusiveIsAFailureUnlessTheCodeSaysItIsAccepted) {
  EXPECT_TRUE(Contains(Rendered(Gated("inconclusive", 4)), "<failure type=\"inconclusive\""));
  const std::string accepted = Rendered(Gated("inconclusive", 0));
  EXPECT_FALSE(Contains(accepted, "<failure"));
  EXPECT_TRUE(Contains(accepted, "<skipped message=\"inconclusive: observed"));
}

TEST(JunitTest, AStatusOfNobodyIsAFailure) {
  EXPECT_TRUE(Contains(Rendered(Gated("great", 0)), "<failure type=\"unknown\""));
}

TEST(JunitTest, ABrokenRunIsAnErrorAlsoWithSamplesAndPassedAssertions) {
  Record record = Gated("pass", 5);
  record.verdict = "error";
  record.error.emplace().error_class = ErrorClass::kRun;
  record.error->message = "the peer died";
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "errors=\"1\"")) << text;
  EXPECT_TRUE(Contains(text, "<error type=\"run\" message=\"the peer died"));
}

TEST(JunitTest, ARecordThatHoldsNothingIsAnErrorWhateverItsVerdict) {
  Record record;
  record.verdict = "pass";
  record.exit_code = 0;
  EXPECT_TRUE(Contains(Rendered(record), "<error type=\"no_samples\""));
}

TEST(JunitTest, ACodeThatNothingExplainsIsAnError) {
  const std::string text = Rendered(Gated("pass", 4));
  EXPECT_TRUE(Contains(text, "<error type=\"exit_code\"")) << text;
  EXPECT_FALSE(Contains(Rendered(Gated("fail", 3)), "<error"));
}

TEST(JunitTest, ChecksFailPassAndAreSkipped) {
  Record record = Gated("pass", 3);
  record.checks = {{.name = "a", .status = "pass"},
                   {.name = "b", .status = "fail", .expected = "x", .observed = "y", .why = "z"},
                   {.name = "c", .status = "deviation", .observed = "otherwise"},
                   {.name = "d", .status = "skip", .why = "not here"}};
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "tests=\"6\" failures=\"1\" errors=\"0\" skipped=\"1\"")) << text;
  EXPECT_TRUE(Contains(text, "message=\"fail: observed y; expected x; z\""));
  EXPECT_TRUE(Contains(text, "<system-out>deviation: observed otherwise"));
  EXPECT_TRUE(Contains(text, "<skipped message=\"skip: observed"));
}

TEST(JunitTest, GatedRowsOfAComparisonAreTestCases) {
  Record record;
  record.command = "compare";
  record.verdict = "fail";
  record.exit_code = 3;
  ComparisonRow row{.point = {}, .side = "requester", .metric = "p99", .unit = "ns", .gated = true};
  row.verdict = "worse";
  record.comparison.emplace().rows = {row, row};
  record.comparison->rows[1].gated = false;
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "tests=\"2\" failures=\"1\" errors=\"0\"")) << text;
  EXPECT_TRUE(Contains(text, "name=\"compare p99, "));
}

TEST(JunitTest, WhatXmlCannotHoldIsRemoved) {
  Record record = Gated("fail", 3);
  record.gates[0].expression = "]]>\x01<a>\xEF\xBF\xBF\xFF'\"&";
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "assert ]]&gt;&lt;a&gt;\xEF\xBF\xBD&apos;&quot;&amp;")) << text;
}

TEST(JunitTest, RandomRecordsAreWellFormedAndCounted) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 200; ++i) {
    std::vector<Record> records;
    for (int k = 0; k < i % 4; ++k) records.push_back(RandomRecord(random, i % 2 == 1));
    const std::string text = RenderJunit(records);
    ExpectWellFormed(text);
    size_t expected = 0;
    for (const Record& record : records) {
      expected += 1 + record.gates.size() + record.checks.size();
      if (!record.comparison) continue;
      for (const ComparisonRow& row : record.comparison->rows) expected += row.gated ? 1 : 0;
    }
    EXPECT_EQ(CountOf(text, "<testcase "), expected);
    EXPECT_EQ(CountOf(text, "<testsuite "), records.size());
  }
}

}  // namespace
}  // namespace verbscope
