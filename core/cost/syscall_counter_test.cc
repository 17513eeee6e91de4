#include "core/cost/syscall_counter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include "core/clock/cpu_counter.h"

namespace verbscope {
namespace {

class SyscallCounterTest : public testing::Test {
 protected:
  void SetUp() override {
    Expected<std::unique_ptr<SyscallCounter>> counter = SyscallCounter::Start();
    if (!counter) GTEST_SKIP() << counter.error().ToText();
    counter_ = std::move(*counter);
  }

  std::unique_ptr<SyscallCounter> counter_;
};

SyscallCount Exactly(uint64_t calls) { return {.calls = calls, .complete = true}; }

TEST_F(SyscallCounterTest, CountsEveryCallAndMakesIt) {
  pid_t parents[3] = {};
  const SyscallCount count = counter_->Count([&] {
    for (pid_t& parent : parents) parent = static_cast<pid_t>(::syscall(SYS_getppid));
  });
  EXPECT_EQ(count, Exactly(3));
  for (const pid_t parent : parents) EXPECT_EQ(parent, ::getppid());
}

TEST_F(SyscallCounterTest, CodeThatStaysOutOfTheKernelCountsNothing) {
  uint64_t ticks = 0;
  EXPECT_EQ(counter_->Count([&ticks] { ticks = CpuCounter::Now(); }),
            Exactly(CpuCounter::kExists ? 0 : 1));
  EXPECT_NE(ticks, 0u);
}

TEST_F(SyscallCounterTest, ACountBeginsAtZero) {
  EXPECT_EQ(counter_->Count([] { ::syscall(SYS_getppid); }), Exactly(1));
  EXPECT_EQ(counter_->Count([] {}), Exactly(0));
  EXPECT_EQ(counter_->Count([] { ::syscall(SYS_getppid); }), Exactly(1));
}

TEST_F(SyscallCounterTest, ErrorsArriveAsTheKernelGivesThem) {
  int code = 0;
  int result = 0;
  EXPECT_EQ(counter_->Count([&] {
    errno = 0;
    result = ::open("/no/such/file", O_RDONLY);
    code = errno;
  }),
            Exactly(1));
  EXPECT_EQ(result, -1);
  EXPECT_EQ(code, ENOENT);
}

TEST_F(SyscallCounterTest, ErrnoIsLeftAloneByACallThatWorks) {
  int code = 0;
  counter_->Count([&] {
    errno = EXDEV;
    ::getppid();
    code = errno;
  });
  EXPECT_EQ(code, EXDEV);
}

TEST_F(SyscallCounterTest, CallsOfSixArgumentsAndLargeResultsPassUnchanged) {
  int pipe[2] = {};
  ASSERT_EQ(::pipe(pipe), 0);
  char text[6] = {};
  ssize_t got = 0;
  EXPECT_EQ(counter_->Count([&] {
    (void)!::write(pipe[1], "hello", 5);
    got = ::read(pipe[0], text, 5);
  }),
            Exactly(2));
  EXPECT_EQ(got, 5);
  EXPECT_STREQ(text, "hello");
  ::close(pipe[0]);
  ::close(pipe[1]);
  long mapping = 0;
  EXPECT_EQ(counter_->Count([&] {
    mapping = ::syscall(SYS_mmap, nullptr, 4096L, 3L /*read, write*/, 0x22L /*private*/, -1L, 0L);
  }),
            Exactly(1));
  ASSERT_NE(mapping, -1);
  *reinterpret_cast<volatile char*>(mapping) = 1;
  ::syscall(SYS_munmap, mapping, 4096L);
}

TEST_F(SyscallCounterTest, WhatComesAfterACallOfItsOwnThreadIsNotCounted) {
  SyscallCount count = counter_->Count([] {
    std::thread thread([] {});
    thread.join();
  });
  EXPECT_FALSE(count.complete);
  EXPECT_GE(count.calls, 1u);
  // And the next one is whole again.
  EXPECT_EQ(counter_->Count([] { ::syscall(SYS_getppid); }), Exactly(1));
}

TEST_F(SyscallCounterTest, OtherThreadsAreNotCounted) {
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> made = 0;
  std::thread other([&] {
    while (!stop) {
      ::syscall(SYS_getppid);
      ++made;
    }
  });
  while (made == 0) std::this_thread::yield();
  EXPECT_EQ(counter_->Count([&made] {
    const uint64_t before = made;
    while (made < before + 10) {
    }
  }),
            Exactly(0));
  stop = true;
  other.join();
}

std::atomic<int> signals = 0;

TEST_F(SyscallCounterTest, ASignalWaitsUntilTheCountIsOver) {
  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_handler = [](int) { ++signals; };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &old), 0);
  signals = 0;
  int during = -1;
  const SyscallCount count = counter_->Count([&during] {
    ::raise(SIGUSR1);
    during = signals;
  });
  EXPECT_GE(count.calls, 1u);
  EXPECT_EQ(during, 0);
  EXPECT_EQ(signals, 1);
  ::sigaction(SIGUSR1, &old, nullptr);
}

TEST(SyscallCounterLifeTest, PutsTheOldHandlerBack) {
  struct sigaction action = {};
  struct sigaction before = {};
  struct sigaction after = {};
  action.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGSYS, &action, &before), 0);
  {
    const Expected<std::unique_ptr<SyscallCounter>> counter = SyscallCounter::Start();
    if (counter) {
      EXPECT_FALSE(SyscallCounter::Start()) << "two at once";
    }
  }
  ASSERT_EQ(::sigaction(SIGSYS, &before, &after), 0);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
}

}  // namespace
}  // namespace verbscope
