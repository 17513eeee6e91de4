// The tables of cq-scale and cq-overrun.
#include <gtest/gtest.h>

#include <string>

#include "core/record/record.h"
#include "reporters/text.h"

namespace verbscope {
namespace {

Result Scale(uint32_t cqs, uint32_t threads, double rate_per_s, double speedup) {
  Result result;
  result.point.op = "write";
  result.point.size_bytes = 64;
  result.point.qps = 16;
  result.point.cqs = cqs;
  result.point.threads = threads;
  result.point.tx_depth = 16;
  result.metrics.bandwidth.emplace().msg_per_s = rate_per_s;
  result.metrics.scale = ScaleMetrics{.threads = threads,
                                      .cqe = 256 / cqs,
                                      .cores = 2,
                                      .speedup = speedup,
                                      .cpu_us_per_message = 0.147,
                                      .completions_per_poll = 15.5};
  return result;
}

Record ScaleRecord() {
  Record record;
  record.command = "cq-scale";
  record.verdict = "pass";
  record.results = {Scale(1, 1, 6755903.4, 1), Scale(2, 2, 3899301, 0.58),
                    Scale(1, 2, 4146677, 0.61), Scale(4, 4, 2861257, 0.42),
                    Scale(1, 1, 6000000, 0.89)};
  record.results.back().point.cq_depth = 4096;
  record.results.back().metrics.scale->cqe = 4096;
  record.results.push_back(Scale(1, 1, 7000000, 1.04));
  record.results.back().run = 1;
  return record;
}

Result Overrun(std::string variant, uint64_t lost) {
  Result result;
  result.point.op = "write";
  result.point.variant = std::move(variant);
  result.metrics.overrun = OverrunMetrics{.cqe = 16,
                                          .outstanding = 32,
                                          .delivered = 32 - lost,
                                          .lost = lost,
                                          .event = lost > 0 ? "CQ_ERR on CQ 7" : "",
                                          .qp_state = lost > 0 ? "ERR" : "RTS"};
  return result;
}

std::string Rendered(const Record& record, bool verbose = false) {
  return RenderText(record, {.verbose = verbose});
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TextCqTest, EachPointIsARow) {
  const std::string text = Rendered(ScaleRecord());
  EXPECT_TRUE(Contains(text, "write 64 bytes, 16 QPs, 16 in flight of each"));
  EXPECT_TRUE(Contains(
      text, "    2        2        128       3899301       0.58           0.147       15.5\n"))
      << text;
  EXPECT_TRUE(Contains(text, "    1        1      4,096 ")) << text;
  EXPECT_FALSE(Contains(text, "incomplete"));
}

TEST(TextCqTest, ASentenceComparesMoreCqsWithTheSameThreadsAtOne) {
  const std::string text = Rendered(ScaleRecord());
  EXPECT_TRUE(Contains(text, "2 threads on 2 CQs: 0.58 times the message rate")) << text;
  EXPECT_TRUE(Contains(text, "the same threads 0.61")) << text;
  EXPECT_TRUE(Contains(text, "by depth of one CQ: 0.89 to 0.89 times")) << text;
}

TEST(TextCqTest, WhatTwoAlikeMeasurementsDifferByIsSaid) {
  EXPECT_TRUE(Contains(Rendered(ScaleRecord()), "once more, at the end: 1.04 times"));
}

TEST(TextCqTest, MoreThreadsThanCpusAreSaidToBoundTheRatio) {
  const std::string text = Rendered(ScaleRecord());
  EXPECT_TRUE(Contains(text, "(4 threads on 2 CPUs: bounded by the CPUs, not by the CQs)"));
  EXPECT_FALSE(Contains(text, "(2 threads on 2 CPUs"));
}

TEST(TextCqTest, WhatIsNotKnownIsNoNumberAndWhatBrokeIsMarked) {
  Record record = ScaleRecord();
  record.results[1].complete = false;
  record.results[1].metrics.scale->speedup.reset();
  record.results[1].metrics.bandwidth->msg_per_s.reset();
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "        128*            -          -")) << text;
  EXPECT_TRUE(Contains(text, "* incomplete"));
}

TEST(TextCqTest, WhatWasLostStandsInItsColumn) {
  Record record;
  record.command = "cq-overrun";
  record.results = {Overrun("overrun by sends", 16), Overrun("overrun by receives", 16),
                    Overrun("posts that pause", 0)};
  record.results[1].side = "responder";
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "due delivered flushed   lost  QP    event\n")) << text;
  EXPECT_TRUE(Contains(
      text, "  overrun by sends             16      32        16       0     16  ERR   CQ_ERR\n"))
      << text;
  EXPECT_TRUE(Contains(text, "  overrun by receives *        16 ")) << text;
  EXPECT_TRUE(Contains(
      text, "  posts that pause             16      32        32       0      0  RTS   none\n"));
}

TEST(TextCqTest, TablesReplaceBlocksUnlessAllIsAskedFor) {
  EXPECT_FALSE(Contains(Rendered(ScaleRecord()), "MiB/s"));
  const std::string verbose = Rendered(ScaleRecord(), /*verbose=*/true);
  EXPECT_TRUE(Contains(verbose, "16 QPs, 2 CQs, 2 threads")) << verbose;
  EXPECT_TRUE(Contains(verbose, "1 CQ of 4096 entries, 1 thread")) << verbose;
}

}  // namespace
}  // namespace verbscope
