#include "transports/ibverbs/teardown_watchdog.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace verbscope {
namespace {

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

TeardownWatchdog::Options WithDefaults(TeardownWatchdog::Options options) {
  if (!options.warn) {
    options.warn = [](const std::string& line) {
      // One call per line, so that lines of several threads do not mix.
      const std::string text = "verbscope: " + line + "\n";
      std::fputs(text.c_str(), stderr);
    };
  }
  if (!options.on_stuck) options.on_stuck = [](const std::string&) {};
  options.give_up_after = std::max(options.give_up_after, options.warn_after);
  return options;
}

}  // namespace

TeardownWatchdog::TeardownWatchdog(Options options) : options_(WithDefaults(std::move(options))) {}

TeardownWatchdog::~TeardownWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (supervisor_.joinable()) supervisor_.join();
}

int TeardownWatchdog::Run(std::string what, const std::function<int()>& call) {
  std::list<Watched> own;
  own.push_back({std::move(what), Clock::now()});
  const auto mine = own.begin();
  {
    const std::lock_guard lock(mutex_);
    if (!supervisor_.joinable()) supervisor_ = std::thread([this] { Supervise(); });
    running_.splice(running_.end(), own);
  }
  changed_.notify_all();
  const int result = call();
  const std::lock_guard lock(mutex_);
  own.splice(own.end(), running_, mine);
  return result;
}

TeardownWatchdog::Clock::time_point TeardownWatchdog::NextStageOf(const Watched& watched) const {
  if (watched.stage == 0) return watched.start + options_.warn_after;
  if (watched.stage == 1) return watched.start + options_.give_up_after;
  return Clock::time_point::max();
}

void TeardownWatchdog::Supervise() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    auto next = running_.begin();
    for (auto it = running_.begin(); it != running_.end(); ++it) {
      if (NextStageOf(*it) < NextStageOf(*next)) next = it;
    }
    if (next == running_.end() || NextStageOf(*next) == Clock::time_point::max()) {
      changed_.wait(lock);  // until a call starts
      continue;
    }
    if (const auto when = NextStageOf(*next); Clock::now() < when) {
      changed_.wait_until(lock, when);
      continue;  // the call may have ended meanwhile
    }
    const int stage = ++next->stage;
    const std::string line =
        fmt::format("{} has waited {:.0f} s{}", next->what, Seconds(Clock::now() - next->start),
                    stage == 1 ? "" : " and is given up");
    // Unlocked: a slow callback must not hold up calls that are in time.
    lock.unlock();
    (stage == 1 ? options_.warn : options_.on_stuck)(line);
    lock.lock();
  }
}

}  // namespace verbscope
