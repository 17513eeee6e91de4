#include "transports/control/poll_fd.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>

#include <array>
#include <chrono>
#include <csignal>

namespace verbscope {
namespace {

using std::chrono::milliseconds;

Deadline Soon() { return Deadline::After(milliseconds(5)); }
Deadline Late() { return Deadline::After(std::chrono::seconds(20)); }

TEST(WaitFdTest, EndsAtTheDeadlineWhenNothingHappens) {
  WakeEvent quiet = *WakeEvent::Make();
  EXPECT_EQ(WaitFd(quiet.fd(), POLLIN, Soon(), -1), WaitResult::kTimeout);
  EXPECT_EQ(WaitFd(-1, POLLIN, Soon(), quiet.fd()), WaitResult::kTimeout);
}

TEST(WaitFdTest, LooksOnceEvenAfterTheDeadline) {
  WakeEvent event = *WakeEvent::Make();
  event.Notify();
  EXPECT_EQ(WaitFd(event.fd(), POLLIN, Deadline::After(milliseconds(-1)), -1), WaitResult::kReady);
}

TEST(WaitFdTest, InterruptWinsOverReadiness) {
  WakeEvent ready = *WakeEvent::Make();
  WakeEvent interrupt = *WakeEvent::Make();
  ready.Notify();
  EXPECT_EQ(WaitFd(ready.fd(), POLLIN, Late(), interrupt.fd()), WaitResult::kReady);
  interrupt.Notify();
  EXPECT_EQ(WaitFd(ready.fd(), POLLIN, Late(), interrupt.fd()), WaitResult::kInterrupted);
}

TEST(WakeEventTest, NotifyWakesAWaitingThreadAndDrainEndsIt) {
  WakeEvent event = *WakeEvent::Make();
  WaitResult seen = WaitResult::kTimeout;
  auto thread = StartThread("waiter", [&] { seen = WaitFd(event.fd(), POLLIN, Late(), -1); });
  ASSERT_TRUE(thread.has_value());
  event.Notify();
  event.Notify();
  thread->join();
  EXPECT_EQ(seen, WaitResult::kReady);
  event.Drain();
  EXPECT_EQ(WaitFd(event.fd(), POLLIN, Soon(), -1), WaitResult::kTimeout);
}

TEST(StartThreadTest, ThreadHasNoSignalsAndTheCallerKeepsItsOwn) {
  sigset_t inside;
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  auto thread = StartThread("masked", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); });
  ASSERT_TRUE(thread.has_value());
  thread->join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal : {SIGINT, SIGTERM, SIGALRM, SIGUSR1}) {
    EXPECT_EQ(sigismember(&inside, signal), 1) << signal;
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
  }
}

TEST(InterruptedErrorTest, HasItsOwnClass) {
  const Error error = InterruptedError("waiting for \"ready\"");
  EXPECT_EQ(error.error_class, ErrorClass::kInterrupted);
  EXPECT_EQ(error.message, "interrupted while waiting for \"ready\"");
}

}  // namespace
}  // namespace verbscope
