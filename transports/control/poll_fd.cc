#include "transports/control/poll_fd.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

namespace verbscope {

WaitResult WaitFd(int fd, short events, Deadline deadline, int interrupt_fd) {
  std::array<pollfd, 2> fds = {{{fd, events, 0}, {interrupt_fd, POLLIN, 0}}};
  while (true) {
    const bool last_look = deadline.Passed();
    const int ready = ::poll(fds.data(), fds.size(), last_look ? 0 : deadline.PollTimeoutMs());
    if (ready > 0 && fds[1].revents != 0) return WaitResult::kInterrupted;
    if (ready > 0) return WaitResult::kReady;
    if (last_look) return WaitResult::kTimeout;
  }
}

Error InterruptedError(std::string_view doing) {
  Error error;
  error.error_class = ErrorClass::kInterrupted;
  error.message = "interrupted while " + std::string(doing);
  return error;
}

Expected<WakeEvent> WakeEvent::Make() {
  FileDescriptor fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!fd) return Fail(CallError(ErrorClass::kSetup, "eventfd", "", errno));
  return WakeEvent(std::move(fd));
}

void WakeEvent::Notify() {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then the other thread is awake already.
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof(one));
}

void WakeEvent::Drain() {
  uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(fd_.get(), &count, sizeof(count));
}

Expected<std::thread> StartThread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int failed = 0;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error& e) {
    failed = e.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed != 0) return Fail(CallError(ErrorClass::kSetup, "pthread_create", name, failed));
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace verbscope
