// Opening, the port, protection domains and memory.
#include "transports/soft/device/soft_device.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <utility>

#include "transports/common/mapped_buffer.h"
#include "transports/soft/device/call_error.h"
#include "transports/soft/link/udp_route.h"
#include "transports/soft/options/presentation.h"

namespace verbscope::soft {
namespace {

constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                           IBV_ACCESS_RELAXED_ORDERING;

// Processes that share an address answer at once, unless one is stopped.
constexpr std::chrono::seconds kJoinTime(3);

// Keys cannot be guessed: another process that reaches the device must have been told.
uint32_t RandomKey() {
  uint32_t key = 0;
  while (key == 0 && ::getrandom(&key, sizeof(key), 0) != sizeof(key)) {
  }
  return key;
}

// Makes the pages present, so that no message pays for it: 0, or an errno when the range is not
// memory of this process with the wanted rights. EINVAL is also what kernels before 5.14 say.
int Populate(std::span<std::byte> memory, bool writable) {
  if (memory.empty()) return 0;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(memory.data()) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(memory.data()) + memory.size();
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return ::madvise(reinterpret_cast<void*>(first), end - first,
                   writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0
             ? 0
             : errno;
}

// 0, or EFAULT when the range is not memory of this process with the wanted rights.
int CheckMapped(std::span<std::byte> memory, bool writable) {
  const int code = Populate(memory, writable);
  // A kernel that can do the one says EINVAL to the other when the memory is read-only.
  if (code == EINVAL && writable && Populate(memory, false) == 0) return EFAULT;
  if (code == EINVAL) return 0;
  return code == ENOMEM ? EFAULT : code;
}

// The links that the options ask for. A device on UDP alone is presented with the address it has
// got, and the MTU that fits there.
Expected<LinkChoice> LinksOf(SoftOptions& options) {
  LinkChoice links;
  links.gso = options.gso;
  if (options.link == LinkKind::kMemory || !options.port.HasIp()) return links;
  links.memory = options.link == LinkKind::kAuto;
  Expected<std::unique_ptr<UdpPort>> port =
      UdpPort::Take(options.address, Deadline::After(kJoinTime));
  if (port) {
    links.port = std::move(*port);
  } else if (links.memory) {
    links.no_port = std::move(port.error());
  } else {
    return Fail(std::move(port.error()));
  }
  if (links.memory) return links;
  options.address = links.port->gid();
  const uint32_t fits = RoceMtu(links.port->interface_mtu_bytes());
  if (!options.port.active_mtu_given && fits != 0) {
    options.port.active_mtu_bytes = std::min(options.port.active_mtu_bytes, fits);
  }
  return links;
}

LinkReport Describe(LinkKind link, const UdpCounts& counts) {
  if (link == LinkKind::kAuto) return {.link = "auto", .icrc = "not known yet", .notices = {}};
  if (link == LinkKind::kMemory)
    return {.link = "memory", .icrc = "not needed in memory", .notices = {}};
  LinkReport report = {.link = "udp", .icrc = "made and checked", .notices = {}};
  if (counts.proof == IcrcProof::kFull) {
    report.icrc = counts.placed == 0 ? "made, and checked in full (32 bits)"
                                     : "made, and checked in full (26 to 32 bits)";
  }
  if (counts.proof == IcrcProof::kRecovered) {
    report.icrc = "made, and checked but for the peer's IP ID (about 15 bits)";
  }
  return report;
}

}  // namespace

SoftDevice::SoftDevice(const SoftOptions& options, std::string_view firmware)
    : options_(options),
      gids_(GidTable(options_, ReadHostAddresses())),
      info_(MakeDeviceInfo(options_, gids_, firmware)) {}

Expected<std::unique_ptr<SoftDevice>> SoftDevice::Open(const SoftOptions& options,
                                                       std::string_view firmware) {
  SoftOptions own = options;
  Expected<LinkChoice> links = LinksOf(own);
  if (!links) return Fail(std::move(links.error()));
  std::unique_ptr<SoftDevice> device(new SoftDevice(own, firmware));
  Expected<std::unique_ptr<SoftCore>> core =
      SoftCore::Create(device->options_, device->info_, std::move(*links));
  if (!core) return Fail(std::move(core.error()));
  device->core_ = std::move(*core);
  const LinkReport report = device->ReportLink();
  device->info_.link = report.link;
  device->info_.icrc = report.icrc;
  // Everything that is asked of a real device when it is opened.
  for (const std::string_view call : {"open_device", "query_device", "query_port"}) {
    if (Status status = device->Hooked(call, options.name); !status) {
      return Fail(std::move(status.error()));
    }
  }
  device->helper_ = std::make_unique<Helper>(*device->core_);
  if (Status status = device->helper_->Start(); !status) return Fail(std::move(status.error()));
  return device;
}

SoftDevice::~SoftDevice() {
  if (helper_ == nullptr) return;  // never opened
  helper_->Stop();
  Status closed = Hooked("close_device", info_.name);
  if (!closed && teardown_report_ != nullptr) teardown_report_->Add(std::move(closed.error()));
}

Status SoftDevice::Hooked(std::string_view call, std::string_view parameter) {
  const std::optional<int> code = core_->control_faults().Next(call);
  if (!code) return {};
  errno = *code;
  Error error = CallError(ErrorClass::kSetup, fmt::format("ibv_{}", call), parameter, *code);
  error.cause = "the soft device was asked to fail this call";
  return Fail(std::move(error));
}

const GidSlot* SoftDevice::FindGid(int index) const {
  const auto found = std::find_if(gids_.begin(), gids_.end(), [index](const GidSlot& slot) {
    return slot.index == index && slot.unreadable_errno == 0;
  });
  return found == gids_.end() ? nullptr : &*found;
}

Expected<PortInfo> SoftDevice::QueryPort(int port) {
  if (Status status = Hooked("query_port", fmt::format("port={}", port)); !status) {
    return Fail(std::move(status.error()));
  }
  if (port != 1) {
    return Fail(Refused("ibv_query_port", fmt::format("port={}", port), EINVAL,
                        info_.name + " has one port, number 1", "use --ib-port 1"));
  }
  PortInfo info = MakePortInfo(options_, gids_);
  // As on a real device, an entry that cannot be read is left out.
  std::erase_if(info.gids, [this](const GidEntry&) {
    return core_->control_faults().Next("query_gid").has_value();
  });
  return info;
}

Expected<Pd> SoftDevice::AllocatePd() {
  if (Status status = Hooked("alloc_pd", ""); !status) return Fail(std::move(status.error()));
  const std::lock_guard lock(mutex_);
  if (pds_.size() >= info_.limits.max_pd) {
    return Fail(Refused("ibv_alloc_pd", "", ENOMEM,
                        fmt::format("{} has max_pd={}", info_.name, info_.limits.max_pd)));
  }
  auto pd = std::make_unique<SoftPd>();
  pd->context = &core_->verbs().context;
  pd->handle = NewHandle();
  return Pd(this, &pds_.Add(std::move(pd)));
}

Expected<std::unique_ptr<Buffer>> SoftDevice::AllocateBuffer(const BufferOptions& options) {
  Expected<std::unique_ptr<SharedBuffer>> buffer = MapSharedBuffer(options, SystemPaths{});
  if (!buffer) return Fail(std::move(buffer.error()));
  return std::move(*buffer);
}

uint32_t SoftDevice::GrantedAccess(std::span<std::byte> memory, int access) const {
  auto granted = static_cast<uint32_t>(access);
  if (!Has(Defect::kNoRights)) return granted;
  granted |= IBV_ACCESS_REMOTE_READ;
  // Nobody writes to memory that cannot be written to.
  if (Populate(memory, true) == 0) granted |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  return granted;
}

Expected<Mr> SoftDevice::RegisterMemory(ibv_pd* base, std::span<std::byte> memory, int access) {
  const std::string parameter = fmt::format("length={}, access={:#x}", memory.size(), access);
  if (Status status = Hooked("reg_mr", parameter); !status) return Fail(std::move(status.error()));
  const std::lock_guard lock(mutex_);
  if (base == nullptr || !pds_.Has(Of(base))) return Fail(Unknown("ibv_reg_mr"));
  constexpr int kNeedsLocalWrite = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & ~kAllAccess) != 0) {
    return Fail(
        Refused("ibv_reg_mr", parameter, EINVAL, "an access flag is not offered by this device"));
  }
  if ((access & kNeedsLocalWrite) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return Fail(Refused("ibv_reg_mr", parameter, EINVAL,
                        "remote write and remote atomic need local write (ibv_reg_mr(3))"));
  }
  const uint64_t limit = options_.limits.max_registered_bytes;
  if (mrs_.size() >= info_.limits.max_mr || memory.size() > info_.limits.max_mr_bytes ||
      (limit != 0 && memory.size() > limit - std::min(limit, registered_bytes_))) {
    return Fail(Refused("ibv_reg_mr", parameter, ENOMEM,
                        fmt::format("{} has max_mr={}, max_mr_size={}{}", info_.name,
                                    info_.limits.max_mr, info_.limits.max_mr_bytes,
                                    limit == 0 ? "" : fmt::format(", {} bytes in all", limit)),
                        "register less memory"));
  }
  if (const int code = CheckMapped(memory, (access & IBV_ACCESS_LOCAL_WRITE) != 0); code != 0) {
    return Fail(Refused("ibv_reg_mr", parameter, code,
                        "the range is not memory of this process with these rights"));
  }
  auto mr = std::make_unique<SoftMr>();
  mr->context = base->context;
  mr->pd = base;
  mr->addr = memory.data();
  mr->length = memory.size();
  MemoryRegion region{.pd = PdNumber(*base),
                      .access = GrantedAccess(memory, access),
                      .address = reinterpret_cast<uintptr_t>(memory.data()),
                      .bytes = memory.size()};
  {
    const SpinLockHolder hold(core_->lock());
    do {
      region.key = RandomKey();
    } while (!core_->engine().memory().Add(region));
  }
  mr->lkey = mr->rkey = mr->key = region.key;
  mr->handle = NewHandle();
  mr->owner = &Of(base);
  mr->bytes = memory.size();
  ++mr->owner->users;
  registered_bytes_ += memory.size();
  return Mr(this, &mrs_.Add(std::move(mr)));
}

Expected<uint32_t> SoftDevice::MaxInlineBytes() { return options_.limits.max_inline_bytes; }

std::vector<DeviceCounter> SoftDevice::ReadCounters(int /*port*/) {
  std::vector<DeviceCounter> counters;
  const SpinLockHolder hold(core_->lock());
  const auto add = [&counters](std::string_view name, uint64_t value) {
    counters.push_back({std::string(name), value});
  };
  ForEach(core_->counters(), add);
  const WakeCounts& wakes = core_->link().wakes();
  add("peer_bells_rung", wakes.bells);
  add("peer_channels_woken", wakes.channels);
  add("peer_channels_unknown", wakes.unknown_channels);
  add("helper_wakeups", core_->helper_wakeups);
  add("cq_events", core_->events_raised);
  ForEach(core_->faults(), add);
  if (core_->link().udp()) {
    const UdpCounts counts = core_->link().udp_counts();
    add("unknown_source", counts.unknown_source);
    add("ecn_marked", counts.ecn_marked);
    add("cnps", counts.cnps);
    add("ip_ids_recovered", counts.id_recovered);
    add("udp_bursts", counts.bursts);
    add("udp_bursts_refused", counts.bursts_refused);
    add("udp_blocked", counts.blocked);
    add("udp_receive_drops", counts.receive_drops);
  }
  return counters;
}

Status SoftDevice::LoseNext(LossyPacket packets, uint32_t count) {
  const SpinLockHolder hold(core_->lock());
  core_->Lose(
      packets == LossyPacket::kRequest ? FaultClass::kRequest : FaultClass::kReadResponse, count);
  return {};
}

LinkReport SoftDevice::ReportLink() {
  UdpCounts counts;
  LinkReport report;
  {
    const SpinLockHolder hold(core_->lock());
    counts = core_->link().udp_counts();
    report = Describe(core_->link().kind(), counts);
    // That a buffer is small matters when it was too small.
    if (counts.receive_drops != 0) report.notices = core_->link().Notices();
  }
  const auto add = [this, &report](uint64_t packets, std::string_view what) {
    if (packets == 0) return;
    report.notices.push_back(fmt::format("{}: {} packet{} on UDP port {} {}", info_.name, packets,
                                         packets == 1 ? "" : "s", kRoceUdpPort, what));
  };
  add(counts.unknown_source, "came from an address that is no peer's, and were dropped");
  add(counts.receive_drops,
      "were dropped by the kernel and had to be sent again: the receive buffer was full (sysctl "
      "net.core.rmem_max), or they were damaged");
  return report;
}

}  // namespace verbscope::soft
