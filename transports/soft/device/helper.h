// The helper thread of a soft device: what happens when the program does not drive the device
// itself.
//
// It answers one-sided requests, runs timers, takes in new peers, and is otherwise asleep. While
// the program polls (or sleeps on a completion channel, which drives the device too) the helper
// only looks in every few milliseconds, and peers are not asked to wake it, so that a polling
// program pays nothing for it. When the program shows no sign of life between two looks, the helper
// takes over: peers then ring for it, and it stays awake for a few microseconds after each batch,
// giving its CPU away in between: it never holds on to a core that the program may want. Where that
// turns out to be expensive, because the machine has more to do than it has cores, it sleeps at
// once.
//
// Over UDP no peer can wake the program that waits for an event, so there the helper watches the
// sockets as soon as a CQ is armed, and raises the event itself.
//
// Owned by the device; started and joined by it.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_HELPER_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_HELPER_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "transports/soft/device/core.h"

namespace verbscope::soft {

class Helper {
 public:
  explicit Helper(SoftCore& core) : core_(core) {}
  ~Helper() { Stop(); }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  Status Start();
  void Stop();  // idempotent

 private:
  void Run();
  // The program drives the device: look in, no more.
  void LookIn();
  // It does not: serve until nothing is left to do, then sleep until a peer rings or a timer is
  // due.
  void TakeOver();
  uint64_t SleepTime(uint64_t now_ns) const;  // lock held
  // Until a descriptor is ready or the time is over.
  void Sleep(uint64_t for_ns);
  bool stopping() const { return stop_.load(std::memory_order_relaxed); }

  SoftCore& core_;
  std::atomic<bool> stop_{false};
  uint64_t seen_activity_ = 0;
  uint64_t look_in_ns_ = 0;
  uint64_t crowded_until_ns_ = 0;
  std::thread thread_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_HELPER_H_
