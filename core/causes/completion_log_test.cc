#include "core/causes/completion_log.h"

#include <gtest/gtest.h>

#include <cstring>

namespace verbscope {
namespace {

// A completion with garbage in every member that is not valid after an error.
ibv_wc Completion(ibv_wc_status status, uint64_t wr_id, uint32_t qp_num = 0x11) {
  ibv_wc completion;
  std::memset(static_cast<void*>(&completion), 0xa5, sizeof(completion));
  completion.status = status;
  completion.wr_id = wr_id;
  completion.qp_num = qp_num;
  completion.vendor_err = 0x88;
  return completion;
}

TEST(CompletionLogTest, GoodCompletionsAreNoFailure) {
  CompletionLog log;
  log.Add(Completion(IBV_WC_SUCCESS, 1));
  log.AddSuccesses(0x11, 9);
  EXPECT_FALSE(log.FirstFailure());
  EXPECT_TRUE(log.Failures().empty());
  EXPECT_EQ(log.successes(), 10u);
  EXPECT_EQ(log.flushed(), 0u);
}

TEST(CompletionLogTest, EmptyLogHasNothingToTell) {
  const CompletionLog log;
  EXPECT_FALSE(log.FirstFailure());
  EXPECT_EQ(log.flushed(), 0u);
}

TEST(CompletionLogTest, RealErrorIsFoundAmongFlushesBeforeAndAfterIt) {
  CompletionLog log;
  log.AddSuccesses(0x11, 40);
  for (uint64_t i = 0; i < 127; ++i) log.Add(Completion(IBV_WC_WR_FLUSH_ERR, i));
  log.Add(Completion(IBV_WC_REM_ACCESS_ERR, 500));
  for (uint64_t i = 0; i < 127; ++i) log.Add(Completion(IBV_WC_WR_FLUSH_ERR, 600 + i));
  const auto failure = log.FirstFailure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(failure->wr_id, 500u);
  EXPECT_EQ(failure->qp_num, 0x11u);
  EXPECT_EQ(failure->vendor_err, 0x88u);
  EXPECT_EQ(failure->completions_before, 40u);
  EXPECT_EQ(failure->flushed, 254u);
  EXPECT_EQ(log.flushed(), 254u);
}

TEST(CompletionLogTest, NothingIsTakenFromTheInvalidMembers) {
  CompletionLog log;
  log.Add(Completion(IBV_WC_REM_ACCESS_ERR, 1));
  const auto failure = log.FirstFailure();
  ASSERT_TRUE(failure);
  EXPECT_TRUE(failure->op.empty());
  EXPECT_FALSE(failure->size_bytes);
  EXPECT_EQ(failure->remote_qp_num, 0u);
}

TEST(CompletionLogTest, OnlyTheFirstRealErrorOfAQueuePairIsKept) {
  CompletionLog log;
  log.Add(Completion(IBV_WC_LOC_PROT_ERR, 1));
  log.Add(Completion(IBV_WC_RETRY_EXC_ERR, 2));
  EXPECT_EQ(log.FirstFailure()->status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(log.Failures().size(), 1u);
}

TEST(CompletionLogTest, SuccessesAfterTheErrorDoNotCountAsBefore) {
  CompletionLog log;
  log.Add(Completion(IBV_WC_SUCCESS, 1));
  log.Add(Completion(IBV_WC_RETRY_EXC_ERR, 2));
  log.Add(Completion(IBV_WC_SUCCESS, 3));
  EXPECT_EQ(log.FirstFailure()->completions_before, 1u);
  EXPECT_EQ(log.successes(), 2u);
}

TEST(CompletionLogTest, OnlyFlushesAreReportedAsSuch) {
  CompletionLog log;
  for (uint64_t i = 0; i < 3; ++i) log.Add(Completion(IBV_WC_WR_FLUSH_ERR, i));
  const auto failure = log.FirstFailure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(failure->wr_id, 0u);
  EXPECT_EQ(failure->flushed, 2u);
  EXPECT_EQ(log.flushed(), 2u);
}

TEST(CompletionLogTest, EachQueuePairKeepsItsOwnFirstErrorAndCounts) {
  CompletionLog log;
  log.Add(Completion(IBV_WC_WR_FLUSH_ERR, 1, 0x31));  // first of all, yet no cause
  log.AddSuccesses(0x12, 5);
  log.Add(Completion(IBV_WC_RETRY_EXC_ERR, 2, 0x12));
  log.Add(Completion(IBV_WC_REM_ACCESS_ERR, 3, 0x11));
  log.Add(Completion(IBV_WC_WR_FLUSH_ERR, 4, 0x12));
  const auto failures = log.Failures();
  ASSERT_EQ(failures.size(), 3u);
  EXPECT_EQ(failures[0].qp_num, 0x12u);
  EXPECT_EQ(failures[0].completions_before, 5u);
  EXPECT_EQ(failures[0].flushed, 1u);
  EXPECT_EQ(failures[1].qp_num, 0x11u);
  EXPECT_EQ(failures[1].completions_before, 0u);
  EXPECT_EQ(failures[2].qp_num, 0x31u);
  EXPECT_EQ(failures[2].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(log.flushed(), 2u);
}

// A queue pair's error may be polled after a later one's if a flush of its own came first.
TEST(CompletionLogTest, OrderIsThatOfTheRealErrorsNotOfTheFlushes) {
  CompletionLog log;
  log.Add(Completion(IBV_WC_WR_FLUSH_ERR, 1, 0x11));
  log.Add(Completion(IBV_WC_RETRY_EXC_ERR, 2, 0x12));
  log.Add(Completion(IBV_WC_REM_OP_ERR, 3, 0x11));
  EXPECT_EQ(log.FirstFailure()->qp_num, 0x12u);
}

}  // namespace
}  // namespace verbscope
