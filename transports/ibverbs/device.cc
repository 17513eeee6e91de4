#include "transports/ibverbs/device.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>

#include <cerrno>
#include <utility>

#include "core/base/file_descriptor.h"
#include "transports/common/mapped_buffer.h"
#include "transports/common/qp_text.h"
#include "transports/ibverbs/identity.h"
#include "transports/ibverbs/memlock.h"
#include "transports/ibverbs/port_reader.h"

namespace verbscope {
namespace {

// Opens the device node as libibverbs will. First, because the library hides the reason (it goes on
// to look in /dev/char and waits there for up to 5 s for udev) and may answer with another errno.
Status CheckDeviceNode(const SystemPaths& paths, const ibv_device& device) {
  const std::string node = paths.UverbsNode(device.dev_name);
  const FileDescriptor file(::open(node.c_str(), O_RDWR | O_CLOEXEC));
  if (file) return {};
  const int code = errno;
  if (code == ENOENT) {
    // The library finds a node of another name by its number.
    const std::string number =
        ReadText(fmt::format("{}/class/infiniband_verbs/{}/dev", paths.sysfs, device.dev_name))
            .value_or("");
    const std::string by_number = fmt::format("{}/char/{}", paths.dev, number);
    if (!number.empty() && FileDescriptor(::open(by_number.c_str(), O_RDWR | O_CLOEXEC))) return {};
  }
  return Fail(
      VerbError(VerbCall::kOpenDevice, fmt::format("device={}, {}", device.name, node), code));
}

}  // namespace

IbverbsDevice::IbverbsDevice(VerbsApi& verbs, const IbverbsOptions& options)
    : verbs_(verbs), paths_(options.paths), watchdog_(options.watchdog) {}

Expected<std::unique_ptr<IbverbsDevice>> IbverbsDevice::Open(VerbsApi& verbs, ibv_device* device,
                                                             const IbverbsOptions& options) {
  if (auto refusal = RefusalOf(device->name, device->node_type, device->transport_type)) {
    return Fail(std::move(*refusal));
  }
  if (Status status = CheckDeviceNode(options.paths, *device); !status) {
    return Fail(std::move(status.error()));
  }
  std::unique_ptr<IbverbsDevice> opened(new IbverbsDevice(verbs, options));
  opened->info_.name = device->name;
  errno = 0;
  opened->context_ = verbs.OpenDevice(device);
  if (opened->context_ == nullptr) {
    const int code = errno != 0 ? errno : ENODEV;
    return Fail(VerbError(VerbCall::kOpenDevice, fmt::format("device={}", device->name), code));
  }
  if (Status status = opened->Query(device); !status) return Fail(std::move(status.error()));
  return opened;
}

Status IbverbsDevice::Query(ibv_device* device) {
  // NextAsyncEvent must not block when another thread takes the event that woke it.
  const int flags = ::fcntl(context_->async_fd, F_GETFL);
  if (flags >= 0) ::fcntl(context_->async_fd, F_SETFL, flags | O_NONBLOCK);

  ibv_device_attr attributes = {};
  if (const int code = verbs_.QueryDevice(context_, &attributes); code != 0) {
    return Fail(Failed(VerbCall::kQueryDevice, "", code));
  }
  const DeviceIdentity identity = ReadIdentity(paths_, device->name);
  info_.kind = identity.kind;
  info_.provider = identity.provider;
  info_.numa_node = identity.numa_node;
  // At most 64 characters, and not always closed by a zero.
  info_.firmware.assign(attributes.fw_ver, ::strnlen(attributes.fw_ver, sizeof attributes.fw_ver));
  info_.vendor_id = attributes.vendor_id;
  info_.vendor_part_id = attributes.vendor_part_id;
  info_.limits = LimitsOf(attributes, context_->num_comp_vectors);
  for (int port = 1; port <= attributes.phys_port_cnt; ++port) {
    Expected<PortInfo> info =
        ReadPort(verbs_, context_, info_.name, port, attributes.phys_port_cnt, paths_);
    if (!info) return Fail(std::move(info.error()));
    info_.ports.push_back(std::move(*info));
  }
  return {};
}

Error IbverbsDevice::Failed(VerbCall call, std::string_view parameters, int errno_value) const {
  return VerbError(
      call, fmt::format("device={}{}{}", info_.name, parameters.empty() ? "" : ", ", parameters),
      errno_value);
}

Error IbverbsDevice::FailedToPin(VerbCall call, std::string_view parameters, int errno_value,
                                 uint64_t need_bytes, std::string_view what) const {
  Error error = Failed(call, parameters, errno_value);
  if (errno_value == ENOMEM) ExplainEnomem(ReadMemlockState(paths_), need_bytes, what, error);
  return error;
}

Expected<PortInfo> IbverbsDevice::QueryPort(int port) {
  return ReadPort(verbs_, context_, info_.name, port, static_cast<int>(info_.ports.size()), paths_);
}

Expected<std::unique_ptr<Buffer>> IbverbsDevice::AllocateBuffer(const BufferOptions& options) {
  return MapBuffer(options, paths_);
}

Expected<ibv_cq*> IbverbsDevice::GetCqEvent(ibv_comp_channel* channel) {
  ibv_cq* cq = nullptr;
  const int code = verbs_.GetCqEvent(channel, &cq);
  if (code == EINTR || code == EAGAIN) return nullptr;
  if (code != 0) return Fail(Failed(VerbCall::kGetCqEvent, Describe(channel), code));
  live_.EventTaken(cq);
  return cq;
}

void IbverbsDevice::AckCqEvents(ibv_cq* cq, unsigned count) {
  if (count == 0) return;
  verbs_.AckCqEvents(cq, count);
  live_.EventsAcknowledged(cq, count);
}

Expected<std::optional<AsyncEvent>> IbverbsDevice::NextAsyncEvent(Deadline deadline) {
  while (true) {
    pollfd waiting = {.fd = context_->async_fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, deadline.PollTimeoutMs());
    if (ready < 0 && errno != EINTR) {
      return Fail(CallError(ErrorClass::kRun, "poll", "async events of " + info_.name, errno));
    }
    if (ready > 0) {
      ibv_async_event event = {};
      const int code = verbs_.GetAsyncEvent(context_, &event);
      if (code == 0) {
        AsyncEvent result{.text = DescribeAsyncEvent(event, info_.name),
                          .fatal = IsFatal(event.event_type)};
        verbs_.AckAsyncEvent(&event);
        return result;
      }
      if (code != EAGAIN && code != EINTR) {
        return Fail(Failed(VerbCall::kGetAsyncEvent, "", code));
      }
    }
    if (deadline.Passed()) return std::nullopt;
  }
}

std::vector<std::byte> IbverbsDevice::PeerBlob(ibv_qp* /*qp*/) { return {}; }

Status IbverbsDevice::AcceptPeerBlob(ibv_qp* /*qp*/, std::span<const std::byte> blob) {
  if (blob.size() <= kMaxBlobBytes) return {};
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.side = Side::kPeer;
  error.message = fmt::format("the peer's device sent {} bytes for ours, more than {}", blob.size(),
                              kMaxBlobBytes);
  error.cause = "the peer is no verbscope, or a newer one";
  return Fail(std::move(error));
}

}  // namespace verbscope
