// "The user wants to stop": a flag for loops and a descriptor for waits, raised once by a signal
// handler or a test.
//
// Raise() may be called from a signal handler and from any thread: it stores a lock-free atomic and
// writes to an eventfd. fd() stays readable for ever after, so every poll(2) on it ends.
#ifndef VERBSCOPE_CORE_BASE_INTERRUPT_H_
#define VERBSCOPE_CORE_BASE_INTERRUPT_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "core/base/file_descriptor.h"

namespace verbscope {

class Interrupt {
 public:
  Interrupt() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void Raise() {
    raised_.store(true, std::memory_order_relaxed);
    const int saved_errno = errno;
    const uint64_t one = 1;
    // A full counter means that it was raised already.
    if (::write(fd_.get(), &one, sizeof(one)) < 0) errno = saved_errno;
  }
  bool raised() const { return raised_.load(std::memory_order_relaxed); }
  int fd() const { return fd_.get(); }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free);
  std::atomic<bool> raised_ = false;
  FileDescriptor fd_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_BASE_INTERRUPT_H_
