// Counts the system calls of a piece of code, on the calling thread only, with the kernel's Syscall
// User Dispatch (prctl(2), PR_SET_SYSCALL_USER_DISPATCH; Linux 5.11, no privilege needed): every
// system call of the thread becomes a SIGSYS, whose handler counts it and then makes it.
//
//   Expected<std::unique_ptr<SyscallCounter>> counter = SyscallCounter::Start();
//   SyscallCount count = (*counter)->Count([&] { ibv_poll_cq(cq, 1, &wc); });
//
// What it slows down is the counted call alone: dispatch is off before and after it, so time and
// count the same call in turn, never at once. What other threads do for the call is not counted.
// While a call is counted the thread takes no other signals; they come afterwards.
//
// One counter at a time in a process, used by the thread that made it. It owns the process's SIGSYS
// handler while it lives and puts the old one back. The code that is counted must not replace that
// handler.
#ifndef VERBSCOPE_CORE_COST_SYSCALL_COUNTER_H_
#define VERBSCOPE_CORE_COST_SYSCALL_COUNTER_H_

#include <csignal>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/error.h"

namespace verbscope {

struct SyscallCount {
  uint64_t calls = 0;
  // false: at least `calls`. After one that a signal handler cannot make for its thread (making a
  // thread, changing the signal mask) the rest went uncounted.
  bool complete = true;
  friend bool operator==(const SyscallCount&, const SyscallCount&) = default;
};

class SyscallCounter {
 public:
  // kSetup where this kernel, sandbox or CPU cannot count, and where another counter lives.
  static Expected<std::unique_ptr<SyscallCounter>> Start();
  SyscallCounter(const SyscallCounter&) = delete;
  SyscallCounter& operator=(const SyscallCounter&) = delete;
  ~SyscallCounter();

  // Runs `call` in any case, and counts if that can be done now. It must not throw.
  template <class Call>
  SyscallCount Count(Call&& call) {
    if (!Begin()) {
      std::forward<Call>(call)();
      return {.calls = 0, .complete = false};
    }
    Block(true);
    std::forward<Call>(call)();
    Block(false);
    return End();
  }

 private:
  SyscallCounter() = default;

  bool Begin();
  static void Block(bool on);
  SyscallCount End();

  sigset_t old_mask_ = {};
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COST_SYSCALL_COUNTER_H_
