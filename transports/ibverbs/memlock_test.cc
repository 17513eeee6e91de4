#include "transports/ibverbs/memlock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>

#include "transports/ibverbs/causes.h"

namespace verbscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kStatus =
    "Name:\tverbscope\nVmLck:\t       0 kB\nVmPin:\t      48 kB\nCapEff:\t";
constexpr std::string_view kHostMap = "         0          0 4294967295\n";
constexpr std::string_view kRootlessMap = "         0       1000          1\n";

std::string Status(std::string_view capabilities) {
  return std::string(kStatus) + std::string(capabilities) + "\n";
}

TEST(MemlockTest, ReadsLimitPinnedBytesAndCapability) {
  const MemlockState user = ParseMemlockState(Status("0000000000000000"), kHostMap, 65536);
  EXPECT_EQ(user.limit_bytes, 65536u);
  EXPECT_EQ(user.pinned_bytes, 48u * 1024);
  EXPECT_FALSE(user.ipc_lock);

  const MemlockState root = ParseMemlockState(Status("000001ffffffffff"), kHostMap, RLIM_INFINITY);
  EXPECT_FALSE(root.limit_bytes);
  EXPECT_TRUE(root.ipc_lock);

  // Only bit 14 counts.
  EXPECT_TRUE(ParseMemlockState(Status("0000000000004000"), kHostMap, 1).ipc_lock);
  EXPECT_FALSE(ParseMemlockState(Status("0000000000002000"), kHostMap, 1).ipc_lock);
}

TEST(MemlockTest, ACapabilityInsideAUserNamespaceDoesNotLiftTheLimit) {
  EXPECT_FALSE(ParseMemlockState(Status("000001ffffffffff"), kRootlessMap, 65536).ipc_lock);
}

TEST(MemlockTest, UnreadableFilesLeaveTheValuesUnknown) {
  const MemlockState state = ParseMemlockState("", "", 4096);
  EXPECT_EQ(state.limit_bytes, 4096u);
  EXPECT_FALSE(state.pinned_bytes);
  EXPECT_FALSE(state.ipc_lock);
}

TEST(MemlockTest, ReadsThisProcess) {
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  const MemlockState state = ReadMemlockState(SystemPaths());
  EXPECT_EQ(state.limit_bytes.value_or(RLIM_INFINITY), limit.rlim_cur);
  EXPECT_TRUE(state.pinned_bytes);
}

TEST(MemlockTest, ALimitTooLowIsTheCauseWithNumbersAndThreeFixes) {
  MemlockState state;
  state.limit_bytes = 65536;
  state.pinned_bytes = 16384;
  Error error = VerbError(VerbCall::kRegMr, "length=1048576", ENOMEM);
  ExplainEnomem(state, 1 << 20, "the buffer", error);
  EXPECT_EQ(error.cause,
            "the limit of locked memory is too low (limit 64 KiB, pinned so far 16 KiB, the buffer "
            "needs 1 MiB)");
  EXPECT_THAT(error.next_step, HasSubstr("ulimit -l"));
  EXPECT_THAT(error.next_step, HasSubstr("LimitMEMLOCK"));
  EXPECT_THAT(error.next_step, HasSubstr("--ulimit memlock=-1"));
}

TEST(MemlockTest, WhatIsPinnedAlreadyCounts) {
  MemlockState state;
  state.limit_bytes = 65536;
  state.pinned_bytes = 65536 - 4096;
  Error fits;
  ExplainEnomem(state, 4096, "the buffer", fits);
  EXPECT_THAT(fits.cause, HasSubstr("may be it"));
  Error exceeds;
  ExplainEnomem(state, 4097, "the buffer", exceeds);
  EXPECT_THAT(exceeds.cause, HasSubstr("too low"));
}

TEST(MemlockTest, WithoutALimitTheOtherCauseStays) {
  for (const bool ipc_lock : {false, true}) {
    MemlockState state;
    state.ipc_lock = ipc_lock;
    if (ipc_lock) state.limit_bytes = 4096;
    Error error = VerbError(VerbCall::kCreateQp, "", ENOMEM);
    const std::string next_step = error.next_step;
    ExplainEnomem(state, 1 << 20, "the QP", error);
    EXPECT_THAT(error.cause, HasSubstr("queues do not fit"));
    EXPECT_THAT(error.cause, HasSubstr("limit of locked memory is not it"));
    EXPECT_EQ(error.next_step, next_step);
    EXPECT_THAT(error.next_step, Not(HasSubstr("ulimit -l")));
  }
}

}  // namespace
}  // namespace verbscope
