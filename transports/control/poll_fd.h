// Small pieces every waiting part of the control channel is built from: wait for one descriptor
// with a deadline, wake a thread that waits, start a background thread.
#ifndef VERBSCOPE_TRANSPORTS_CONTROL_POLL_FD_H_
#define VERBSCOPE_TRANSPORTS_CONTROL_POLL_FD_H_

#include <functional>
#include <thread>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/file_descriptor.h"

namespace verbscope {

enum class WaitResult { kReady, kTimeout, kInterrupted };

// Waits until `fd` has one of `events` (POLLIN, POLLOUT), an error or a hang-up; or until
// `interrupt_fd` is readable, which wins; or until the deadline. -1 for either: not waited for.
WaitResult WaitFd(int fd, short events, Deadline deadline, int interrupt_fd);

// The kInterrupted error of a wait; `doing` completes "interrupted while …".
Error InterruptedError(std::string_view doing);

// Wakes a thread that polls fd(). Notify may be called from any thread (and from a signal handler);
// Drain by the polling one.
class WakeEvent {
 public:
  static Expected<WakeEvent> Make();
  void Notify();
  void Drain();
  int fd() const { return fd_.get(); }

 private:
  explicit WakeEvent(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

// Starts a thread in which every signal is blocked: signals belong to the thread that measures and
// to main. `name` shows in ps and debuggers, at most 15 characters.
Expected<std::thread> StartThread(const char* name, std::function<void()> body);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_CONTROL_POLL_FD_H_
