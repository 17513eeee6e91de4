#include "core/wait/stop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

namespace verbscope {
namespace {

TEST(StopSignalTest, TheFirstReasonWins) {
  StopSignal stop;
  EXPECT_FALSE(stop.stopped());
  stop.Stop(StopReason::kPeerLost);
  stop.Stop(StopReason::kDone);
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.reason(), StopReason::kPeerLost);
  stop.Reset();
  EXPECT_FALSE(stop.stopped());
}

// A thread that blocks in read(2) for ever comes back with EINTR once stop is asked for, however
// the signal and the read are ordered.
TEST(StopSignalTest, TickWakesASleepingThread) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  StopSignal stop;
  std::atomic<bool> left = false;
  int read_errno = 0;
  std::thread sleeper([&] {
    const StopAttachment attachment(stop);
    while (!stop.stopped()) {
      char byte;
      stop.BeginSleep();
      const ssize_t got = stop.stopped() ? -1 : ::read(pipe[0], &byte, 1);
      if (got < 0) read_errno = errno;
      stop.EndSleep();
    }
    left = true;
  });
  stop.Stop(StopReason::kInterrupted);
  while (!left) stop.Tick();
  sleeper.join();
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(StopSignalTest, AwaitSleepsUntilStop) {
  StopSignal stop;
  std::atomic<bool> left = false;
  std::thread sleeper([&] {
    stop.Await();
    left = true;
  });
  EXPECT_FALSE(left);
  stop.Stop(StopReason::kDone);
  sleeper.join();
  EXPECT_TRUE(left);
  stop.Await();  // already stopped: at once
}

TEST(StopSignalTest, TickDoesNotTouchADetachedThread) {
  StopSignal stop;
  std::thread([&] { const StopAttachment attachment(stop); }).join();
  stop.Stop(StopReason::kDone);
  stop.Tick();  // would signal a thread that is gone
}

}  // namespace
}  // namespace verbscope
