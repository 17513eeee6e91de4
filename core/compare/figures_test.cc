#include "core/compare/figures.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/compare/shifts.h"
#include "core/compare/testing.h"

namespace verbscope {
namespace {

JoinedRuns Of(const std::vector<Result>& base, const std::vector<Result>& fresh) {
  JoinedRuns runs;
  runs.point = base.front().point;
  runs.side = base.front().side;
  for (const Result& result : base) runs.base.push_back(&result);
  for (const Result& result : fresh) runs.fresh.push_back(&result);
  return runs;
}

std::string Names(const std::vector<Figure>& figures) {
  std::string names;
  for (const Figure& figure : figures) {
    names += (names.empty() ? "" : " ") + figure.metric + (figure.gated ? "" : "?");
  }
  return names;
}

TEST(FiguresTest, PercentilesGateALatencyAndTheRestIsShown) {
  std::vector<Result> runs = {LatencyRun(1000, 0), LatencyRun(1010, 1)};
  for (Result& run : runs) run.metrics.cpu.emplace().utilization = 0.5;
  const std::vector<Figure> figures = FiguresOf(Of(runs, runs), true);
  EXPECT_EQ(Names(figures), "p50 p99 p99.9 mean? max? cpu?");
  EXPECT_EQ(figures[1].base, (std::vector<double>{1200, 1212}));
  EXPECT_EQ(figures[1].unit, "ns");
  EXPECT_EQ(figures[5].base, (std::vector<double>{50, 50}));
  EXPECT_EQ(Names(FiguresOf(Of(runs, runs), false)), "p50? p99? p99.9? mean? max? cpu?");
}

TEST(FiguresTest, BitsGateABandwidthOrMessagesWhereTheyCarryNone) {
  std::vector<Result> runs = {BandwidthRun("write", 90, 0)};
  EXPECT_EQ(Names(FiguresOf(Of(runs, runs), true)), "bw msgrate?");
  EXPECT_FALSE(FiguresOf(Of(runs, runs), true)[0].less_is_better);
  runs[0].metrics.bandwidth->bytes = 0;
  EXPECT_EQ(Names(FiguresOf(Of(runs, runs), true)), "msgrate");
  runs[0].metrics.bandwidth->bytes = 1;
  runs[0].metrics.bandwidth->gbit_per_s.reset();
  EXPECT_EQ(Names(FiguresOf(Of(runs, runs), true)), "msgrate");
  // Beside a latency it is what the pace came to.
  std::vector<Result> both = {LatencyRun(1000, 0)};
  both[0].metrics.bandwidth = BandwidthRun("send", 1, 0).metrics.bandwidth;
  EXPECT_EQ(Names(FiguresOf(Of(both, both), true)), "p50 p99 p99.9 bw? msgrate? mean? max?");
}

TEST(FiguresTest, APercentileThatFewRunsStateDoesNotGate) {
  std::vector<Result> runs;
  for (uint32_t run = 0; run < 10; ++run) {
    runs.push_back(LatencyRun(1000, run));
    if (run >= 4) runs.back().metrics.latency->percentiles[2].value_ns.reset();
  }
  const std::vector<Figure> figures = FiguresOf(Of(runs, runs), true);
  EXPECT_EQ(Names(figures), "p50 p99 p99.9? mean? max?");
  EXPECT_EQ(figures[2].base.size(), 4u);
  runs[4].metrics.latency->percentiles[2].value_ns = 1600;
  EXPECT_EQ(Names(FiguresOf(Of(runs, runs), true)), "p50 p99 p99.9 mean? max?");
  for (Result& run : runs) run.metrics.latency->percentiles[2].value_ns.reset();
  EXPECT_EQ(Names(FiguresOf(Of(runs, runs), true)), "p50 p99 mean? max?");
}

TEST(FiguresTest, WhatOneSetLacksIsSaid) {
  const std::vector<Result> base = {LatencyRun(1000, 0)};
  std::vector<Result> fresh = base;
  fresh[0].metrics.latency->percentiles[2].value_ns.reset();
  EXPECT_EQ(Names(FiguresOf(Of(base, fresh), true)), "p50 p99 mean? max?");
  EXPECT_EQ(
      LackingFigures(Of(base, fresh)),
      std::vector<std::string>{"only in base: p99.9 of send 64 bytes, 1 QP, wait busy, requester"});
  EXPECT_EQ(LackingFigures(Of(fresh, base)).size(), 1u);
  EXPECT_TRUE(LackingFigures(Of(base, base)).empty());
}

TEST(FiguresTest, TheRequesterGatesButOfWhatASendBandwidthDeliveredTheReceiver) {
  const auto gates = [](const std::vector<Result>& results, const std::string& side) {
    RunTable table;
    for (const Result& result : results) table.rows.push_back(Of({result}, {result}));
    for (size_t i = 0; i < results.size(); ++i) {
      table.rows[i].base = table.rows[i].fresh = {&results[i]};
    }
    for (const JoinedRuns& row : table.rows) {
      if (row.side == side) return SideGates(row, table);
    }
    return false;
  };
  const std::vector<Result> lat = {LatencyRun(1000, 0), LatencyRun(1000, 0, "responder")};
  EXPECT_TRUE(gates(lat, "requester"));
  EXPECT_FALSE(gates(lat, "responder"));
  const std::vector<Result> write = {BandwidthRun("write", 9, 0),
                                     BandwidthRun("write", 9, 0, "responder")};
  EXPECT_TRUE(gates(write, "requester"));
  EXPECT_FALSE(gates(write, "responder"));
  std::vector<Result> send = {BandwidthRun("send", 9, 0), BandwidthRun("send", 9, 0, "responder")};
  send[1].point.wait = "event";
  EXPECT_FALSE(gates(send, "requester"));
  EXPECT_TRUE(gates(send, "responder"));
  for (Result& result : send) result.point.bidirectional = true;
  EXPECT_TRUE(gates(send, "requester"));
  EXPECT_TRUE(gates(send, "responder"));
  send[1].metrics.bandwidth.reset();
  send[0].point.bidirectional.reset();
  EXPECT_TRUE(gates(send, "requester"));
}

TEST(ShiftsTest, DecilesComeFromTheBucketsAndTheTailFromThePercentiles) {
  const std::vector<Result> base = {LatencyRun(1000, 0), LatencyRun(1000, 1), LatencyRun(5000, 2)};
  const std::vector<Result> fresh = {LatencyRun(1100, 0)};
  const std::vector<ShiftRow> rows = ShiftsOf(Of(base, fresh));
  ASSERT_EQ(rows.size(), 11u);  // there is no p99.99
  EXPECT_EQ(rows[0].percent, "10");
  EXPECT_EQ(rows[0].base_ns, 900);
  EXPECT_EQ(rows[0].fresh_ns, 990);
  EXPECT_EQ(rows[4].percent, "50");
  EXPECT_EQ(rows[4].base_ns, 980);  // the fifth of ten buckets
  EXPECT_EQ(rows[8].percent, "90");
  EXPECT_EQ(rows[8].fresh_ns, 1166);
  EXPECT_EQ(rows[9].percent, "99");
  EXPECT_EQ(rows[9].fresh_ns, 1320);
  EXPECT_EQ(rows[10].percent, "99.9");
}

TEST(ShiftsTest, ABandwidthHasNone) {
  const std::vector<Result> runs = {BandwidthRun("write", 90, 0)};
  EXPECT_TRUE(ShiftsOf(Of(runs, runs)).empty());
}

}  // namespace
}  // namespace verbscope
