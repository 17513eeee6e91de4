#include "transports/ibverbs/resources_netlink.h"

#include <fmt/core.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "core/base/file_descriptor.h"
#include "transports/ibverbs/nldev_messages.h"

namespace verbscope {
namespace {

// The kernel answers within the call; a wait this long means that something is wrong with it.
constexpr timeval kTimeout = {.tv_sec = 5, .tv_usec = 0};
constexpr size_t kDatagramBytes = 1 << 18;  // dumps come in datagrams of at most 32 KiB

Error NetlinkError(std::string_view call, int errno_value) {
  Error error = CallError(ErrorClass::kSetup, call, "NETLINK_RDMA", errno_value);
  error.cause = "the kernel's RDMA netlink cannot be used";
  error.next_step =
      "verbscope devices without --resources needs none; rdma resource show tries "
      "the same";
  return error;
}

class NldevSocket {
 public:
  // errno of the failure, or 0.
  int Open() {
    socket_.Reset(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
    if (!socket_) return errno;
    if (::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof kTimeout) != 0) {
      return errno;
    }
    buffer_.resize(kDatagramBytes);
    return 0;
  }

  // Sends a dump request and gives each datagram of the answer to `parse` until it is over.
  template <class Parse>
  Expected<NldevAnswer> Ask(uint16_t command, std::optional<uint32_t> device, Parse parse) {
    const std::vector<std::byte> request = NldevDump(command, ++sequence_, device);
    if (::send(socket_.get(), request.data(), request.size(), 0) < 0) {
      return Fail(NetlinkError("send", errno));
    }
    NldevAnswer answer;
    while (!answer.done) {
      const ssize_t bytes = ::recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
      if (bytes < 0 && errno == EINTR) continue;  // a signal is seen by whoever asked
      if (bytes < 0) return Fail(NetlinkError("recv", errno));
      parse(std::span<const std::byte>(buffer_).first(static_cast<size_t>(bytes)), answer);
      if (answer.broken) return Fail(NetlinkError("recv", EBADMSG));
    }
    return answer;
  }

 private:
  FileDescriptor socket_;
  std::vector<std::byte> buffer_;
  uint32_t sequence_ = 0;
};

Expected<DeviceResources> ReadDevice(NldevSocket& socket, const NldevDevice& device,
                                     const SystemPaths& paths, bool direct_is_last) {
  DeviceResources resources{.device = device.name};
  for (const NldevKind& kind : kNldevKinds) {
    auto answer = socket.Ask(kind.command, device.index,
                             [&](std::span<const std::byte> datagram, NldevAnswer& into) {
                               ParseNldevResources(datagram, kind, direct_is_last, into);
                             });
    if (!answer) return Fail(std::move(answer.error()));
    // A kernel that does not know the command, or a driver without such objects.
    if (answer->errno_value != 0) resources.unknown.emplace_back(kind.name);
    for (ResourceRow& row : answer->rows) {
      if (row.pid) {
        row.name = ReadText(fmt::format("{}/{}/comm", paths.proc, *row.pid)).value_or("");
      }
      resources.rows.push_back(std::move(row));
    }
  }
  return resources;
}

}  // namespace

bool DirectIsLast(std::string_view release) {
  int major = 0;
  int minor = 0;
  const char* end = release.data() + release.size();
  const auto first = std::from_chars(release.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return true;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return true;
  return major > 5 || (major == 5 && minor >= 8);
}

Expected<std::vector<DeviceResources>> ReadResources(const SystemPaths& paths) {
  std::vector<DeviceResources> all;
  NldevSocket socket;
  if (const int error = socket.Open(); error != 0) {
    // ib_core, which answers, is not loaded: then there is no device either.
    if (error == EPROTONOSUPPORT) return all;
    return Fail(NetlinkError("socket", error));
  }
  auto devices = socket.Ask(RDMA_NLDEV_CMD_GET, std::nullopt, ParseNldevDevices);
  if (!devices) {
    // The protocol without ib_core: nobody listens.
    if (devices.error().errno_value == ECONNREFUSED) return all;
    return Fail(std::move(devices.error()));
  }
  if (devices->errno_value != 0) return Fail(NetlinkError("recv", devices->errno_value));
  const bool direct_is_last =
      DirectIsLast(ReadText(paths.proc + "/sys/kernel/osrelease").value_or(""));
  for (const NldevDevice& device : devices->devices) {
    auto resources = ReadDevice(socket, device, paths, direct_is_last);
    if (!resources) return Fail(std::move(resources.error()));
    all.push_back(std::move(*resources));
  }
  return all;
}

}  // namespace verbscope
