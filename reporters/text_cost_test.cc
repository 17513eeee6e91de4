// The table of verb-cost and its sentences.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "core/record/record.h"
#include "reporters/text.h"

namespace verbscope {
namespace {

struct RowOptions {
  uint64_t size_bytes = 0;
  uint64_t work = 1;
  int64_t p50_ns = 0;
  std::optional<bool> enters_kernel = false;
  std::optional<uint64_t> syscalls = {};
};

Result Row(std::string op, const RowOptions& options) {
  Result row;
  row.point.op = std::move(op);
  row.point.size_bytes = options.size_bytes;
  row.point.wait = "busy";
  LatencyMetrics latency;
  latency.definition = "call";
  latency.ended_by = "return";
  latency.samples = 2000;
  latency.max_ns = 10 * options.p50_ns;
  latency.percentiles = {{.percent = "50", .value_ns = options.p50_ns, .interval = {}},
                         {.percent = "99", .value_ns = 2 * options.p50_ns, .interval = {}}};
  row.metrics.latency = latency;
  row.metrics.cost = CostMetrics{
      .calls = 2000,
      .per_call_work = options.work,
      .ns_per_request = static_cast<double>(options.p50_ns) / static_cast<double>(options.work),
      .enters_kernel = options.enters_kernel,
      .syscalls_per_call = options.syscalls,
      .overhead_ns = 13};
  return row;
}

Record CostRecord() {
  Record record;
  record.command = "verb-cost";
  record.verdict = "pass";
  record.exit_code = 0;
  record.results.push_back(Row("empty_timing", {.p50_ns = 13}));
  Result post = Row("post_send", {.size_bytes = 64, .p50_ns = 90});
  post.point.inline_data = false;
  record.results.push_back(post);
  post = Row("post_send", {.size_bytes = 65, .p50_ns = 95});
  post.point.inline_data = false;
  record.results.push_back(post);
  post = Row("post_send", {.size_bytes = 64, .p50_ns = 70});
  post.point.inline_data = true;
  record.results.push_back(post);
  post = Row("post_send", {.size_bytes = 64, .work = 64, .p50_ns = 1280});
  post.point.inline_data = false;
  post.point.post_list = 64;
  record.results.push_back(post);
  post = Row("post_send", {.size_bytes = 64, .p50_ns = 60});
  post.point.inline_data = false;
  post.point.signal_every = 64;
  record.results.push_back(post);
  record.results.push_back(
      Row("get_cq_event", {.p50_ns = 1500, .enters_kernel = true, .syscalls = 2}));
  record.results.push_back(Row("reg_mr", {.size_bytes = 4096, .enters_kernel = true}));
  record.results.push_back(Row("create_cq", {.p50_ns = 300, .enters_kernel = std::nullopt}));
  Result step = Row("modify_qp", {.p50_ns = 100});
  step.point.variant = "RESET to INIT";
  record.results.push_back(step);
  step = Row("modify_qp", {.p50_ns = 100, .enters_kernel = true, .syscalls = 3});
  step.point.variant = "INIT to RTR";
  record.results.push_back(step);
  return record;
}

std::string Rendered(const Record& record, bool verbose = false) {
  return RenderText(record, {.verbose = verbose});
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TextCostTest, ARowSaysWhatOneCallAndOneRequestCost) {
  const std::string text = Rendered(CostRecord());
  EXPECT_TRUE(Contains(text,
                       "post_send     list of 64       2,000  1.280 us 2.560 us 12.80 us    20 ns "
                       "    no\n"))
      << text;
  EXPECT_TRUE(Contains(text, "post_send     64 B inline      2,000     70 ns")) << text;
  EXPECT_TRUE(Contains(text, "take 13 ns of each time, which is")) << text;
}

TEST(TextCostTest, TheKernelIsEnteredSoOftenOrNotAtAllOrNotKnown) {
  const std::string text = Rendered(CostRecord());
  EXPECT_TRUE(Contains(text, " yes 2\n")) << text;
  EXPECT_TRUE(Contains(text, "    yes\n")) << "a count that is not whole: " << text;
  EXPECT_TRUE(Contains(text, "      ?\n")) << text;
  EXPECT_TRUE(Contains(text, "entered by get_cq_event, reg_mr, modify_qp (INIT to RTR)")) << text;
  EXPECT_TRUE(Contains(text, "not entered by post_send, modify_qp (RESET to INIT)")) << text;
  EXPECT_TRUE(Contains(text, "not known of create_cq")) << text;
}

TEST(TextCostTest, SentencesSayWhatTheRowsMeanTogether) {
  const std::string text = Rendered(CostRecord());
  EXPECT_TRUE(Contains(text, "64 bytes cost 70 ns inline and 90 ns not; 64 bytes, the limit,"))
      << text;
  EXPECT_TRUE(Contains(text, "65, which is above it, 95 ns")) << text;
  EXPECT_TRUE(Contains(text, "in a list of 64 a request costs 20 ns, alone 90 ns")) << text;
  EXPECT_TRUE(Contains(text, "with one in 64 signalled a post costs 60 ns, with each 90 ns\n"))
      << text;
  EXPECT_FALSE(Contains(text, "ibv_wr")) << "it was not measured: " << text;
}

TEST(TextCostTest, ARowThatWasCutShortIsMarked) {
  Record record = CostRecord();
  EXPECT_FALSE(Contains(Rendered(record), "the run ended within this row"));
  record.results.back().complete = false;
  const std::string text = Rendered(record);
  EXPECT_TRUE(Contains(text, "2,000*")) << text;
  EXPECT_TRUE(Contains(text, "*: the run ended within this row")) << text;
}

TEST(TextCostTest, HistogramsAreForWhoeverAsksForAll) {
  EXPECT_FALSE(Contains(Rendered(CostRecord()), "time spent inside one call"));
  EXPECT_TRUE(Contains(Rendered(CostRecord(), /*verbose=*/true), "time spent inside one call"));
}

TEST(TextCostTest, TextFromElsewhereIsMadeSafe) {
  Record record = CostRecord();
  record.results.back().point.op = "bad\x1b[31m";
  record.results.back().point.variant = "worse\x1b[0m";
  EXPECT_FALSE(Contains(Rendered(record), "\x1b"));
}

}  // namespace
}  // namespace verbscope
