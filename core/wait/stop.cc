#include "core/wait/stop.h"

#include <csignal>
#include <ctime>

namespace verbscope {
namespace {

// SIGURG: ignored by default, so a stray one after our process has lost interest harms nobody.
constexpr int kWakeSignal = SIGURG;

void InstallWakeHandler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    sigemptyset(&action.sa_mask);
    action.sa_flags = 0;  // no SA_RESTART: a blocking read must return EINTR
    sigaction(kWakeSignal, &action, nullptr);
  });
}

uint64_t MonotonicNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

void StopSignal::Stop(StopReason reason) {
  StopReason none = StopReason::kNone;
  reason_.compare_exchange_strong(none, reason, std::memory_order_acq_rel);
  reason_.notify_all();
}

void StopSignal::Reset() { reason_.store(StopReason::kNone, std::memory_order_release); }

void StopSignal::Attach() {
  InstallWakeHandler();
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, kWakeSignal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  const std::lock_guard lock(mutex_);
  attached_ = true;
  thread_ = pthread_self();
  seen_since_ns_ = 0;
}

void StopSignal::Detach() {
  const std::lock_guard lock(mutex_);
  attached_ = false;
}

void StopSignal::Tick() {
  const std::lock_guard lock(mutex_);
  if (!attached_) return;
  const uint64_t sequence = sleep_sequence_.load(std::memory_order_acquire);
  if (sequence % 2 == 0) return;
  const uint64_t now = MonotonicNs();
  if (sequence != seen_sequence_ || seen_since_ns_ == 0) {
    seen_sequence_ = sequence;
    seen_since_ns_ = now;
  }
  if (stopped() || now - seen_since_ns_ >= kSleepCheckNs) {
    seen_since_ns_ = now;
    pthread_kill(thread_, kWakeSignal);
  }
}

}  // namespace verbscope
