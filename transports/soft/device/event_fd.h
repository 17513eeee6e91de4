// Adding to and emptying an eventfd, without ever waiting: the descriptor of a completion channel
// is a blocking one, as verbs programs expect it. Failing is nothing that could be acted on (the
// counter is full, so the reader is awake anyway; or it is empty).
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_EVENT_FD_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_EVENT_FD_H_

#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "core/base/file_descriptor.h"

namespace verbscope::soft {

inline void AddOne(const FileDescriptor& event_fd) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_fd.get(), &one, sizeof(one));
}

// One count of a semaphore, or everything of a plain counter. False: there was nothing.
inline bool TakeOne(const FileDescriptor& event_fd) {
  uint64_t count = 0;
  const iovec to = {.iov_base = &count, .iov_len = sizeof(count)};
  if (::preadv2(event_fd.get(), &to, 1, -1, RWF_NOWAIT) >= 0) return true;
  if (errno != EOPNOTSUPP) return false;
  // Kernels before 5.8. Only the owner reads, so what poll sees stays.
  pollfd readable = {.fd = event_fd.get(), .events = POLLIN, .revents = 0};
  if (::poll(&readable, 1, 0) != 1) return false;
  return ::read(event_fd.get(), &count, sizeof(count)) >= 0;
}

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_EVENT_FD_H_
