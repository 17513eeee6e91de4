#include "transports/ibverbs/teardown_watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace verbscope {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Far longer than any test runs: what happens within it, happens at once.
constexpr std::chrono::hours kNever{1};

TEST(TeardownWatchdogTest, ReturnsWhatTheCallReturned) {
  TeardownWatchdog watchdog;
  EXPECT_EQ(watchdog.Run("destroying CQ 1", [] { return 0; }), 0);
  EXPECT_EQ(watchdog.Run("destroying CQ 1", [] { return EBUSY; }), EBUSY);
}

TEST(TeardownWatchdogTest, ACallInTimeIsNotMentionedAndTheEndDoesNotWait) {
  std::vector<std::string> lines;
  {
    TeardownWatchdog watchdog(
        {.warn_after = kNever,
         .give_up_after = kNever,
         .warn = [&](const std::string& line) { lines.push_back(line); },
         .on_stuck = [&](const std::string& line) { lines.push_back(line); }});
    for (int i = 0; i < 100; ++i) watchdog.Run("destroying QP", [] { return 0; });
  }
  EXPECT_THAT(lines, IsEmpty());
}

TEST(TeardownWatchdogTest, ABlockedCallIsNamedWhileItWaits) {
  std::latch warned(1);
  std::string text;
  TeardownWatchdog watchdog({.warn_after = std::chrono::milliseconds(1),
                             .give_up_after = kNever,
                             .warn = [&](const std::string& line) {
                               text = line;
                               warned.count_down();
                             }});
  const int result = watchdog.Run("destroying CQ 0x1; events taken 5, acknowledged 4", [&] {
    warned.wait();  // returns only because the warning came before the end of the call
    return 0;
  });
  EXPECT_EQ(result, 0);
  EXPECT_THAT(text, StartsWith("destroying CQ 0x1; events taken 5, acknowledged 4 has waited"));
  EXPECT_THAT(text, Not(HasSubstr("given up")));
}

TEST(TeardownWatchdogTest, ACallThatNeverReturnsIsWarnedOfOnceThenGivenUpOnce) {
  std::latch gave_up(1);
  std::vector<std::string> lines;  // written by the supervisor only, read after it was joined
  {
    TeardownWatchdog watchdog({.warn_after = std::chrono::milliseconds(1),
                               .give_up_after = std::chrono::milliseconds(2),
                               .warn = [&](const std::string& line) { lines.push_back(line); },
                               .on_stuck =
                                   [&](const std::string& line) {
                                     lines.push_back(line);
                                     gave_up.count_down();
                                   }});
    watchdog.Run("destroying QP 0x11", [&] {
      gave_up.wait();
      return 0;
    });
  }
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], Not(HasSubstr("given up")));
  EXPECT_THAT(lines[1], HasSubstr("destroying QP 0x11"));
  EXPECT_THAT(lines[1], HasSubstr("given up"));
}

TEST(TeardownWatchdogTest, OneStuckCallDoesNotHideAnother) {
  std::latch both_warned(2);
  std::mutex mutex;
  std::vector<std::string> lines;
  TeardownWatchdog watchdog({.warn_after = std::chrono::milliseconds(1),
                             .give_up_after = kNever,
                             .warn = [&](const std::string& line) {
                               const std::lock_guard lock(mutex);
                               lines.push_back(line);
                               both_warned.count_down();
                             }});
  const auto blocked = [&] {
    both_warned.wait();
    return 0;
  };
  std::thread other([&] { watchdog.Run("destroying QP 0x11", blocked); });
  watchdog.Run("destroying CQ 0x1", blocked);
  other.join();
  const std::lock_guard lock(mutex);
  EXPECT_THAT(lines, ::testing::UnorderedElementsAre(HasSubstr("QP 0x11"), HasSubstr("CQ 0x1")));
}

TEST(TeardownWatchdogTest, ALateStartAfterOneWasGivenUpIsStillWatched) {
  std::latch first_given_up(1);
  std::latch second_warned(1);
  TeardownWatchdog watchdog({.warn_after = std::chrono::milliseconds(1),
                             .give_up_after = std::chrono::milliseconds(2),
                             .warn =
                                 [&](const std::string& line) {
                                   if (line.find("second") != std::string::npos) {
                                     second_warned.count_down();
                                   }
                                 },
                             .on_stuck =
                                 [&](const std::string& line) {
                                   if (line.find("first") != std::string::npos) {
                                     first_given_up.count_down();
                                   }
                                 }});
  std::thread other([&] {
    watchdog.Run("first", [&] {
      second_warned.wait();
      return 0;
    });
  });
  first_given_up.wait();
  EXPECT_EQ(watchdog.Run("second",
                         [&] {
                           second_warned.wait();
                           return 7;
                         }),
            7);
  other.join();
}

TEST(TeardownWatchdogTest, TheDefaultWarningIsOneLineOnStandardError) {
  std::latch gave_up(1);
  ::testing::internal::CaptureStderr();
  {
    TeardownWatchdog watchdog({.warn_after = std::chrono::milliseconds(1),
                               .give_up_after = std::chrono::milliseconds(1),
                               .on_stuck = [&](const std::string&) { gave_up.count_down(); }});
    watchdog.Run("destroying CQ 0x1", [&] {
      gave_up.wait();  // comes after the warning
      return 0;
    });
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, StartsWith("verbscope: destroying CQ 0x1 has waited "));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

}  // namespace
}  // namespace verbscope
