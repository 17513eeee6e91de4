#include "core/scenario/channel.h"

#include <fcntl.h>

#include <cerrno>

namespace verbscope {

Expected<CompChannel> MakeNonBlockingChannel(Device& device) {
  Expected<CompChannel> channel = device.CreateCompChannel();
  if (!channel) return channel;
  const int fd = (*channel)->fd;
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    return Fail(CallError(ErrorClass::kSetup, "fcntl", "completion channel", errno));
  }
  return channel;
}

}  // namespace verbscope
