#include "core/gates/assertion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace verbscope {
namespace {

using testing::HasSubstr;

std::string Problem(const std::string& text) {
  const Expected<Assertion> assertion = ParseAssertion(text);
  if (assertion) return "parsed";
  EXPECT_EQ(assertion.error().error_class, ErrorClass::kUsage) << text;
  EXPECT_THAT(assertion.error().message, HasSubstr("assertion '")) << text;
  EXPECT_FALSE(assertion.error().next_step.empty()) << text;
  return assertion.error().message;
}

TEST(Assertion, ReadsMetricOperatorAndUnit) {
  const Assertion assertion = ParseAssertion(" p99.9 <= 12.5us ").value();
  EXPECT_EQ(assertion.text, "p99.9 <= 12.5us");
  EXPECT_EQ(assertion.metric.percentile, kP99_9);
  EXPECT_EQ(assertion.op, GateOp::kLessEqual);
  EXPECT_EQ(assertion.limit, 12'500);
  EXPECT_TRUE(assertion.scope.empty());
  EXPECT_FALSE(assertion.baseline_factor);
}

TEST(Assertion, EveryUnit) {
  const std::pair<const char*, double> kCases[] = {{"p50<5ns", 5},
                                                   {"max<5us", 5e3},
                                                   {"mean<5\u00b5s", 5e3},
                                                   {"min<5ms", 5e6},
                                                   {"stdev<5s", 5e9},
                                                   {"bw>5Gb/s", 5},
                                                   {"bw>5GB/s", 40},
                                                   {"bw>500Mb/s", 0.5},
                                                   {"bw>1Tb/s", 1000},
                                                   {"bw>1Gbit/s", 1},
                                                   {"msgrate>=1/s", 1},
                                                   {"msgrate>=1K/s", 1e3},
                                                   {"msgrate>=2.5M/s", 2.5e6},
                                                   {"msgrate>=1Mpps", 1e6},
                                                   {"cpu<30%", 30},
                                                   {"errors==0", 0},
                                                   {"count>=1000", 1000},
                                                   {"lost_wakeups==0", 0},
                                                   {"counter.out_of_sequence==0", 0}};
  for (const auto& [text, limit] : kCases) {
    const Expected<Assertion> assertion = ParseAssertion(text);
    ASSERT_TRUE(assertion) << text << ": " << assertion.error().message;
    EXPECT_DOUBLE_EQ(assertion->limit, limit) << text;
  }
}

TEST(Assertion, EveryOperator) {
  const std::pair<const char*, GateOp> kCases[] = {
      {"count<1", GateOp::kLess},    {"count<=1", GateOp::kLessEqual},
      {"count>1", GateOp::kGreater}, {"count>=1", GateOp::kGreaterEqual},
      {"count==1", GateOp::kEqual},  {"count!=1", GateOp::kNotEqual}};
  for (const auto& [text, op] : kCases) EXPECT_EQ(ParseAssertion(text).value().op, op) << text;
  EXPECT_TRUE(Holds(GateOp::kLessEqual, 1, 1));
  EXPECT_FALSE(Holds(GateOp::kLess, 1, 1));
  EXPECT_TRUE(Holds(GateOp::kGreaterEqual, 1, 1));
  EXPECT_FALSE(Holds(GateOp::kGreater, 1, 1));
  EXPECT_TRUE(Holds(GateOp::kEqual, 1, 1));
  EXPECT_FALSE(Holds(GateOp::kNotEqual, 1, 1));
}

TEST(Assertion, ABaseline) {
  EXPECT_EQ(ParseAssertion("p99<=baseline*1.05").value().baseline_factor, 1.05);
  EXPECT_EQ(ParseAssertion("p99 <= baseline * 1.05").value().baseline_factor, 1.05);
  EXPECT_EQ(ParseAssertion("bw>=baseline").value().baseline_factor, 1.0);
  EXPECT_THAT(Problem("p99<=baseline*"), HasSubstr("no factor"));
  EXPECT_THAT(Problem("p99<=baseline*0"), HasSubstr("no factor"));
  EXPECT_THAT(Problem("p99<=baseline*-1"), HasSubstr("no factor"));
  EXPECT_THAT(Problem("p99<=baseline*1.05us"), HasSubstr("no factor"));
  EXPECT_THAT(Problem("p99<=baseline+1"), HasSubstr("no value"));
  EXPECT_THAT(Problem("p99<=baselines"), HasSubstr("no value"));
}

TEST(Assertion, AScope) {
  const Assertion assertion =
      ParseAssertion("p99.9{size=64K, wait = hybrid:20us,side=responder}<12us").value();
  const Scope expected = {{"size", "65536"}, {"wait", "hybrid:20us"}, {"side", "responder"}};
  EXPECT_EQ(assertion.scope, expected);
  EXPECT_THAT(Problem("p99{size}<5us"), HasSubstr("not key=value"));
  EXPECT_THAT(Problem("p99{}<5us"), HasSubstr("not key=value"));
  EXPECT_THAT(Problem("p99{size=64,}<5us"), HasSubstr("not key=value"));
  EXPECT_THAT(Problem("p99{colour=red}<5us"), HasSubstr("\"colour\""));
  EXPECT_THAT(Problem("p99{size=64x}<5us"), HasSubstr("no value of size"));
  EXPECT_THAT(Problem("p99{wait=sleeping}<5us"), HasSubstr("no value of wait"));
  EXPECT_THAT(Problem("p99{side=server}<5us"), HasSubstr("no value of side"));
  EXPECT_THAT(Problem("p99{imm=1}<5us"), HasSubstr("no value of imm"));
  EXPECT_THAT(Problem("p99{size=64,size_bytes=64}<5us"), HasSubstr("twice"));
  EXPECT_THAT(Problem("p99{size=64<5us"), HasSubstr("no closing"));
}

TEST(Assertion, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(Problem("p99.9x<5us"), HasSubstr("\"p99.9x\" is no metric"));
  EXPECT_THAT(Problem("p<5us"), HasSubstr("no metric"));
  EXPECT_THAT(Problem("latency<5us"), HasSubstr("no metric"));
  EXPECT_THAT(Problem("p100<5us"), HasSubstr("not a percentile"));
  EXPECT_THAT(Problem("counter.<5"), HasSubstr("names no counter"));
  EXPECT_THAT(Problem("counter.a b<5"), HasSubstr("names no counter"));
  EXPECT_THAT(Problem("p99<5"), HasSubstr("no unit"));
  EXPECT_THAT(Problem("p99<5Gb/s"), HasSubstr("not measured in"));
  EXPECT_THAT(Problem("bw>=90"), HasSubstr("no unit"));
  EXPECT_THAT(Problem("cpu<30"), HasSubstr("no unit"));
  EXPECT_THAT(Problem("count>=1k"), HasSubstr("has no unit \"k\""));
  EXPECT_THAT(Problem("p99<"), HasSubstr("value is missing"));
  EXPECT_THAT(Problem("p99<fast"), HasSubstr("no value"));
  EXPECT_THAT(Problem("p99<-5us"), HasSubstr("no value"));
  EXPECT_THAT(Problem("p99<nanus"), HasSubstr("no value"));
  EXPECT_THAT(Problem("p99<infus"), HasSubstr("no value"));
  EXPECT_THAT(Problem("p99"), HasSubstr("no comparison"));
  EXPECT_THAT(Problem("p99=5us"), HasSubstr("no comparison"));
  EXPECT_THAT(Problem("p99==5us"), HasSubstr("never exactly"));
  EXPECT_THAT(Problem("p99<5us p50<3us"), HasSubstr("not measured in"));
  EXPECT_THAT(Problem(""), HasSubstr("empty"));
  EXPECT_THAT(Problem("<5us"), HasSubstr("no metric"));
  EXPECT_THAT(Problem(std::string(1000, 'p')), HasSubstr("longer"));
  EXPECT_THAT(Problem("p99\x1b[31m<5us"), HasSubstr("no plain text"));
}

TEST(Assertions, AFileOfThem) {
  const auto assertions = ParseAssertions("# latency\np99<5us\n\n  p50<3us\r\n").value();
  ASSERT_EQ(assertions.size(), 2u);
  EXPECT_EQ(assertions[1].text, "p50<3us");
  EXPECT_TRUE(ParseAssertions("").value().empty());
  EXPECT_EQ(ParseAssertions("\xEF\xBB\xBFp99<5us").value().size(), 1u);
  const auto wrong = ParseAssertions("p99<5us\np99.9x<5us");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("line 2: "));
}

std::string Refusal(const std::string& text, const std::string& command) {
  Plan plan;
  plan.command = command;
  const Status status = CheckAssertion(ParseAssertion(text).value(), command, &plan);
  return status ? "" : status.error().message;
}

TEST(Assertion, WhatACommandCannotYield) {
  EXPECT_EQ(Refusal("p99<5us", "send-lat"), "");
  EXPECT_THAT(Refusal("bw>=1Gb/s", "send-lat"), HasSubstr("send-lat does not measure bw"));
  EXPECT_THAT(Refusal("p99<5us", "send-bw"), HasSubstr("does not measure p99"));
  EXPECT_EQ(Refusal("bw>=1Gb/s", "read-bw"), "");
  EXPECT_THAT(Refusal("cpu<30%", "verb-cost"), HasSubstr("does not measure cpu"));
  EXPECT_THAT(Refusal("p99<5us", "cq-overrun"), HasSubstr("does not measure"));
  EXPECT_EQ(Refusal("errors==0", "cq-overrun"), "");
  EXPECT_EQ(Refusal("lost_wakeups==0", "event-vs-poll"), "");
}

TEST(Assertion, AScopeThatNoResultCanBeIn) {
  EXPECT_EQ(Refusal("p99{size=64}<5us", "send-lat"), "");
  EXPECT_THAT(Refusal("p99{size=128}<5us", "send-lat"), HasSubstr("128 bytes"));
  EXPECT_THAT(Refusal("p99{op=read}<5us", "send-lat"), HasSubstr("no results of op read"));
  EXPECT_THAT(Refusal("p99{run=1}<5us", "send-lat"), HasSubstr("1 run,"));
  EXPECT_THAT(Refusal("p99{side=local}<5us", "send-lat"), HasSubstr("side local"));
  EXPECT_THAT(Refusal("errors{size=64}==0", "send-lat"), HasSubstr("whole run"));
}

TEST(Scope, EveryTermMustHold) {
  Result result;
  result.point.op = "send";
  result.point.size_bytes = 64;
  result.point.wait = "hybrid";
  result.point.spin_ns = 20'000;
  result.point.rate_per_s = 1000;
  const auto in = [&result](const std::string& text) {
    return InScope(ParseScope(text).value(), result);
  };
  EXPECT_TRUE(in("size=64"));
  EXPECT_TRUE(in("size_bytes=64,op=send"));
  EXPECT_FALSE(in("size=64,op=read"));
  EXPECT_TRUE(in("wait=hybrid"));
  EXPECT_TRUE(in("wait=hybrid:20us"));
  EXPECT_FALSE(in("wait=hybrid:21us"));
  EXPECT_TRUE(in("rate=1e3"));
  EXPECT_FALSE(in("tx_depth=1")) << "the result does not have it";
  EXPECT_TRUE(in("side=requester,run=0"));
  EXPECT_TRUE(in("imm=false"));
  EXPECT_TRUE(InScope({}, result));
}

}  // namespace
}  // namespace verbscope
