// The lock of one soft device: an exchange on the way in, a plain store on the way out. Held for
// tens of nanoseconds by whoever posts or polls, so waiting for it means spinning briefly and then
// giving the CPU away, in case the holder is not running.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_SPIN_LOCK_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_SPIN_LOCK_H_

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "transports/soft/link/device_lock.h"

namespace verbscope::soft {

class SpinLock final : public DeviceLock {
 public:
  void Lock() override { Acquire(); }
  void Unlock() override { Release(); }

  // The same without a virtual call, for the data path.
  void Acquire() {
    if (!held_.exchange(true, std::memory_order_acquire)) [[likely]]
      return;
    Wait();
  }
  bool TryAcquire() { return !held_.exchange(true, std::memory_order_acquire); }
  void Release() { held_.store(false, std::memory_order_release); }
  // The same by who takes it again and again: a waiter that is not as close would never get it,
  // least of all where system calls are made under the lock.
  void ReleaseAndGiveWay() {
    Release();
    if (wanted()) [[unlikely]]
      ::sched_yield();
  }
  // Whether somebody waits for it: whoever takes it again and again should then make room.
  bool wanted() const { return waiting_.load(std::memory_order_relaxed) > 0; }

 private:
  static constexpr uint32_t kSpins = 64;

  void Wait() {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    for (uint32_t spins = 0;
         held_.load(std::memory_order_relaxed) || held_.exchange(true, std::memory_order_acquire);
         ++spins) {
      if (spins >= kSpins) ::sched_yield();
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }

  std::atomic<bool> held_{false};
  std::atomic<uint32_t> waiting_{0};
};

// Holds a SpinLock for a block.
class SpinLockHolder {
 public:
  explicit SpinLockHolder(SpinLock& lock) : lock_(lock) { lock_.Acquire(); }
  SpinLockHolder(const SpinLockHolder&) = delete;
  SpinLockHolder& operator=(const SpinLockHolder&) = delete;
  ~SpinLockHolder() { lock_.Release(); }

 private:
  SpinLock& lock_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_SPIN_LOCK_H_
