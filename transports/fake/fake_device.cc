// Opening, presentation, memory, completion channels and events. CQs and QPs are in
// fake_control.cc.
#include "transports/fake/fake_device.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "transports/fake/fake_objects.h"

namespace verbscope {
namespace {

using fake::Context;
using fake::State;

constexpr std::string_view kBlob = "fake";
constexpr size_t kPageBytes = 4096;

class FakeBuffer : public Buffer {
 public:
  FakeBuffer(std::shared_ptr<FakeFabric> fabric, State& state, void* memory, size_t bytes)
      : fabric_(std::move(fabric)), state_(state), memory_(memory) {
    bytes_ = {static_cast<std::byte*>(memory), bytes};
    if (bytes > 0) std::memset(memory, 0, bytes);
    const std::lock_guard lock(state_.mutex);
    ++state_.buffers;
  }
  ~FakeBuffer() override {
    std::free(memory_);
    const std::lock_guard lock(state_.mutex);
    --state_.buffers;
  }
  FakeBuffer(const FakeBuffer&) = delete;
  FakeBuffer& operator=(const FakeBuffer&) = delete;

 private:
  const std::shared_ptr<FakeFabric> fabric_;  // keeps state_ alive
  State& state_;
  void* const memory_;
};

// The context rules of device.h's fast path: extended, sized, and every fd pollable or -1.
std::shared_ptr<Context> MakeContext(const DeviceInfo& info) {
  auto context = std::make_shared<Context>();
  context->device.node_type = IBV_NODE_CA;
  context->device.transport_type = IBV_TRANSPORT_IB;
  info.name.copy(context->device.name, sizeof(context->device.name) - 1);
  context->async_fd.Reset(::eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC));
  context->verbs.sz = sizeof(context->verbs);
  ibv_context& verbs = context->verbs.context;
  verbs.device = &context->device;
  verbs.cmd_fd = -1;
  verbs.async_fd = context->async_fd.get();
  verbs.num_comp_vectors = static_cast<int>(info.limits.comp_vectors);
  verbs.abi_compat = __VERBS_ABI_IS_EXTENDED;
  fake::FillOps(verbs.ops);
  return context;
}

GidEntry MakeGid(int index, std::string_view type, const ibv_gid& raw) {
  GidEntry gid = {
      .index = index, .value = {}, .type = std::string(type), .netdev = "fake", .raw = raw};
  for (size_t i = 0; i < sizeof(raw.raw); i += 2) {
    gid.value += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", raw.raw[i], raw.raw[i + 1]);
  }
  return gid;
}

}  // namespace

FakeDeviceOptions DefaultFakeDevice(std::string name, uint8_t host) {
  FakeDeviceOptions options;
  options.max_inline_bytes = 236;
  DeviceInfo& info = options.info;
  info.name = std::move(name);
  info.provider = "fake";
  info.firmware = "0.0.0";
  info.limits = {.max_qp_wr = 16384,
                 .max_sge = 16,
                 .max_cqe = 65536,
                 .max_qp = 1024,
                 .max_cq = 1024,
                 .max_mr = 1024,
                 .max_pd = 1024,
                 .max_srq = 0,
                 .max_mr_bytes = uint64_t{1} << 40,
                 .max_rd_atomic_initiator = 16,
                 .max_rd_atomic_responder = 16,
                 .comp_vectors = 2,
                 .atomics = true};
  PortInfo port;
  port.state = "ACTIVE";
  port.active = true;
  port.link_layer = LinkLayer::kEthernet;
  port.active_mtu_bytes = 1024;
  port.max_mtu_bytes = 4096;
  port.max_message_bytes = uint64_t{1} << 30;
  port.gbit_per_s = 100;
  const ibv_gid v1 = {.raw = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, host}};
  const ibv_gid v2 = {.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, host}};
  port.gids = {MakeGid(0, "RoCE v1", v1), MakeGid(1, "RoCE v2", v2)};
  info.ports = {port};
  return options;
}

FakeDevice::FakeDevice(std::shared_ptr<FakeFabric> fabric, FakeDeviceOptions options)
    : fabric_(std::move(fabric)),
      options_(std::move(options)),
      context_(MakeContext(options_.info)),
      ports_(options_.info.ports),
      fault_(options_.fault) {
  State& state = *fabric_->state_;
  const std::lock_guard lock(state.mutex);
  ++state.devices;
  state.contexts.push_back(context_);
}

FakeDevice::~FakeDevice() {
  State& state = *fabric_->state_;
  const std::lock_guard lock(state.mutex);
  --state.devices;
}

void FakeDevice::SetPort(const PortInfo& port) {
  const std::lock_guard lock(settings_mutex_);
  for (PortInfo& each : ports_) {
    if (each.number == port.number) each = port;
  }
}

void FakeDevice::FailControlCall(const FakeFault& fault) {
  const std::lock_guard lock(settings_mutex_);
  fault_ = fault;
}

void FakeDevice::FailNextDestroy(int errno_value) {
  const std::lock_guard lock(settings_mutex_);
  destroy_errno_ = errno_value;
}

int FakeDevice::control_calls() const {
  const std::lock_guard lock(settings_mutex_);
  return control_calls_;
}

std::optional<Error> FakeDevice::Injected(std::string_view call, std::string_view parameter) {
  const std::lock_guard lock(settings_mutex_);
  ++control_calls_;
  if (fault_.nth == 0 || (!fault_.call.empty() && fault_.call != call) || --fault_.nth > 0) {
    return std::nullopt;
  }
  Error error = CallError(ErrorClass::kSetup, call, parameter, fault_.errno_value);
  error.cause = "the test asked for this failure";
  return error;
}

std::optional<Error> FakeDevice::InjectedDestroy(std::string_view call) {
  const std::lock_guard lock(settings_mutex_);
  if (destroy_errno_ == 0) return std::nullopt;
  Error error = CallError(ErrorClass::kInternal, call, "", std::exchange(destroy_errno_, 0));
  error.cause = "the test asked for this failure";
  return error;
}

Expected<PortInfo> FakeDevice::QueryPort(int port) {
  const std::string parameter = fmt::format("port={}", port);
  if (auto error = Injected("ibv_query_port", parameter)) return Fail(*std::move(error));
  const std::lock_guard lock(settings_mutex_);
  for (const PortInfo& each : ports_) {
    if (each.number == port) return each;
  }
  Error error = CallError(ErrorClass::kSetup, "ibv_query_port", parameter, EINVAL);
  error.cause = fmt::format("{} has {} port(s)", options_.info.name, ports_.size());
  error.next_step = "choose an existing port";
  return Fail(std::move(error));
}

Expected<Pd> FakeDevice::AllocatePd() {
  if (auto error = Injected("ibv_alloc_pd", "")) return Fail(*std::move(error));
  auto pd = std::make_unique<fake::FakePd>();
  pd->context = &context_->verbs.context;
  State& state = *fabric_->state_;
  const std::lock_guard lock(state.mutex);
  pd->handle = state.next_handle++;
  ibv_pd* handle = pd.get();
  state.pds.emplace(handle, std::move(pd));
  return Pd(this, handle);
}

Expected<std::unique_ptr<Buffer>> FakeDevice::AllocateBuffer(const BufferOptions& options) {
  const std::string parameter = fmt::format("bytes={}", options.bytes);
  if (auto error = Injected("AllocateBuffer", parameter)) return Fail(*std::move(error));
  void* memory = nullptr;
  if (options.bytes > 0) {
    const bool sane = options.bytes <= options_.info.limits.max_mr_bytes;
    const size_t whole_pages = (options.bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    memory = sane ? std::aligned_alloc(kPageBytes, whole_pages) : nullptr;
    if (memory == nullptr) {
      return Fail(CallError(ErrorClass::kSetup, "AllocateBuffer", parameter, ENOMEM));
    }
  }
  return std::make_unique<FakeBuffer>(fabric_, *fabric_->state_, memory, options.bytes);
}

Expected<Mr> FakeDevice::RegisterMemory(ibv_pd* pd, std::span<std::byte> memory, int access) {
  const std::string parameter = fmt::format("length={}, access={:#x}", memory.size(), access);
  if (auto error = Injected("ibv_reg_mr", parameter)) return Fail(*std::move(error));
  const int remote_change = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if (((access & remote_change) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) ||
      memory.size() > options_.info.limits.max_mr_bytes) {
    Error error = CallError(ErrorClass::kSetup, "ibv_reg_mr", parameter, EINVAL);
    error.cause = "remote write or Atomic access needs local write, or the region is too long";
    return Fail(std::move(error));
  }
  auto mr = std::make_unique<fake::FakeMr>();
  mr->context = &context_->verbs.context;
  mr->pd = pd;
  mr->addr = memory.data();
  mr->length = memory.size();
  mr->access = access;
  State& state = *fabric_->state_;
  const std::lock_guard lock(state.mutex);
  mr->handle = state.next_handle++;
  mr->lkey = mr->rkey = state.next_key++;
  ++static_cast<fake::FakePd*>(pd)->users;
  ibv_mr* handle = mr.get();
  state.mrs.emplace(mr->lkey, std::move(mr));
  return Mr(this, handle);
}

Expected<CompChannel> FakeDevice::CreateCompChannel() {
  if (auto error = Injected("ibv_create_comp_channel", "")) return Fail(*std::move(error));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Fail(CallError(ErrorClass::kSetup, "pipe2", "", errno));
  }
  auto channel = std::make_unique<fake::FakeChannel>();
  channel->read_end.Reset(ends[0]);
  channel->write_end.Reset(ends[1]);
  if (::fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) {
    return Fail(CallError(ErrorClass::kSetup, "fcntl", "O_NONBLOCK", errno));
  }
  channel->context = &context_->verbs.context;
  channel->fd = ends[0];
  State& state = *fabric_->state_;
  const std::lock_guard lock(state.mutex);
  ibv_comp_channel* handle = channel.get();
  state.channels.emplace(handle, std::move(channel));
  return CompChannel(this, handle);
}

Expected<uint32_t> FakeDevice::MaxInlineBytes() {
  if (auto error = Injected("MaxInlineBytes", "")) return Fail(*std::move(error));
  return options_.max_inline_bytes;
}

Expected<ibv_cq*> FakeDevice::GetCqEvent(ibv_comp_channel* channel) {
  State& state = *fabric_->state_;
  for (;;) {
    state.RunHook(FakePoint::kBeforeEventRead, channel);
    ibv_cq* cq = nullptr;
    const ssize_t got = ::read(channel->fd, &cq, fake::kEventBytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return nullptr;
    if (got != fake::kEventBytes) {
      return Fail(CallError(ErrorClass::kRun, "ibv_get_cq_event", fmt::format("fd={}", channel->fd),
                            got < 0 ? errno : EIO));
    }
    const std::lock_guard lock(state.mutex);
    // The kernel drops unread events of a CQ that is destroyed; a pipe cannot, so they are skipped.
    if (!state.cqs.contains(cq)) continue;
    ++fake::Of(cq).seen.events_taken;
    return cq;
  }
}

void FakeDevice::AckCqEvents(ibv_cq* cq, unsigned count) {
  const std::lock_guard lock(fabric_->state_->mutex);
  cq->comp_events_completed += count;
}

Expected<std::optional<AsyncEvent>> FakeDevice::NextAsyncEvent(Deadline deadline) {
  State& state = *fabric_->state_;
  for (;;) {
    pollfd wait = {.fd = context_->async_fd.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, deadline.PollTimeoutMs());
    if (ready < 0 && errno != EINTR) return Fail(CallError(ErrorClass::kRun, "poll", "", errno));
    const std::lock_guard lock(state.mutex);
    uint64_t one = 0;
    if (ready > 0 && ::read(context_->async_fd.get(), &one, sizeof(one)) == sizeof(one)) {
      AsyncEvent event = std::move(context_->async_events.front());
      context_->async_events.pop_front();
      return event;
    }
    if (deadline.Passed()) return std::nullopt;
  }
}

std::vector<std::byte> FakeDevice::PeerBlob(ibv_qp* /*qp*/) {
  const auto bytes = std::as_bytes(std::span(kBlob));
  return {bytes.begin(), bytes.end()};
}

Status FakeDevice::AcceptPeerBlob(ibv_qp* qp, std::span<const std::byte> blob) {
  const std::string parameter = fmt::format("bytes={}", blob.size());
  if (auto error = Injected("AcceptPeerBlob", parameter)) return Fail(*std::move(error));
  if (!std::ranges::equal(blob, std::as_bytes(std::span(kBlob)))) {
    Error error = CallError(ErrorClass::kSetup, "AcceptPeerBlob", parameter, EPROTO);
    error.cause = "the peer is not a fake device, or the blob was damaged on the way";
    return Fail(std::move(error));
  }
  const std::lock_guard lock(fabric_->state_->mutex);
  fake::Of(qp).blob_accepted = true;
  return {};
}

Expected<std::vector<DeviceSummary>> FakeProvider::List() {
  if (list_error_) return Fail(*list_error_);
  std::vector<DeviceSummary> rows;
  for (const FakeDeviceOptions& each : devices_) {
    DeviceSummary row = {.name = each.info.name, .info = {}, .error = each.unusable};
    if (!row.error) row.info = each.info;
    rows.push_back(std::move(row));
  }
  return rows;
}

Expected<std::unique_ptr<Device>> FakeProvider::Open(const std::string& name) {
  for (const FakeDeviceOptions& each : devices_) {
    if (each.info.name != name) continue;
    if (each.unusable) return Fail(*each.unusable);
    return std::make_unique<FakeDevice>(fabric_, each);
  }
  Error error = CallError(ErrorClass::kSetup, "ibv_open_device", name, ENODEV);
  error.cause = "no such device";
  error.next_step = "choose a device of the list";
  return Fail(std::move(error));
}

}  // namespace verbscope
