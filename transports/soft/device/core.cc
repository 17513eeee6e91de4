// Opening and progress.
#include "transports/soft/device/core.h"

#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>

#include "transports/soft/device/verbs_ops.h"

namespace verbscope::soft {

uint64_t NowNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

SoftCore::SoftCore(const SoftOptions& options, const DeviceInfo& info)
    : options_(options),
      control_faults_(options.hooks.control),
      completion_faults_(options.hooks.completions),
      data_faults_(options.hooks.data) {
  device_.node_type = IBV_NODE_CA;
  device_.transport_type = IBV_TRANSPORT_IB;
  info.name.copy(device_.name, sizeof(device_.name) - 1);
  verbs_.sz = sizeof(verbs_);
  ibv_context& context = verbs_.context;
  context.device = &device_;
  context.cmd_fd = -1;
  context.num_comp_vectors = static_cast<int>(info.limits.comp_vectors);
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  FillOps(context.ops, options_.hooks.events);
}

Expected<std::unique_ptr<SoftCore>> SoftCore::Create(const SoftOptions& options,
                                                     const DeviceInfo& info, LinkChoice links) {
  std::unique_ptr<SoftCore> core(new SoftCore(options, info));
  core->async_fd_.Reset(::eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC));
  if (!core->async_fd_) {
    return Fail(CallError(ErrorClass::kSetup, "eventfd", options.name, errno));
  }
  core->call_fd_.Reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!core->call_fd_) {
    return Fail(CallError(ErrorClass::kSetup, "eventfd", options.name, errno));
  }
  core->verbs_.context.async_fd = core->async_fd_.get();
  Expected<std::unique_ptr<DeviceLink>> link =
      DeviceLink::Create(std::move(links), core->lock_, core->link_counters_);
  if (!link) return Fail(std::move(link.error()));
  core->link_ = std::move(*link);
  Expected<std::unique_ptr<PacketPath>> packets =
      PacketPath::Open(core->options_, *core->link_, NowNs);
  if (!packets) return Fail(std::move(packets.error()));
  core->packets_ = std::move(*packets);

  EngineOptions engine;
  engine.profile = options.profile;
  engine.defects = options.defects;
  if (const UdpPort* udp = core->link_->port()) {
    std::tie(engine.first_qpn, engine.last_qpn) = udp->qpns();
  }
  engine.max_regions = options.limits.device.max_mr;
  engine.max_message_bytes = static_cast<uint32_t>(options.limits.max_message_bytes);
  engine.max_access_bytes = options.hooks.data.max_access_bytes.value_or(UINT64_MAX);
  core->engine_ = std::make_unique<Engine>(engine, core->packets_->sink(), *core);
  if (core->completion_faults_.Active()) core->engine_->env().filter = core.get();
  if (core->data_faults_.Active()) core->engine_->env().data_filter = core.get();
  core->packets_->SetEngine(*core->engine_, core->engine_->counters());
  return core;
}

SoftCore::~SoftCore() = default;

void SoftCore::UseLink() {
  // A CQ may have been armed before; and in memory peers wake who waits.
  if (std::exchange(used_udp_, link_->udp()) != link_->udp()) {
    helper_watches_.store(link_->udp(), std::memory_order_relaxed);
  }
  packets_->UseLink();
  engine_->env().sink = &packets_->sink();
}

void SoftCore::Service() {
  engine_->Transmit();
  if (engine_->timer_urgent()) [[unlikely]]
    engine_->Tick(NowNs());
  ServiceOverruns();
  link_->Flush();
  attention_.store(engine_->wants_to_transmit(), std::memory_order_relaxed);
}

void SoftCore::Tick(uint64_t now_ns) {
  engine_->Tick(now_ns);
  if (packets_->timed()) packets_->Tick(now_ns);
  for (SoftCq* timed : timed_cqs_) {
    SoftCq& cq = *timed;
    if (cq.queue.Tick(now_ns)) OnCompletionEvent(cq.queue);
    if (cq.late_event_ns && now_ns >= *cq.late_event_ns) {
      cq.late_event_ns.reset();
      RaiseCqEvent(cq);
    }
  }
}

void SoftCore::IdlePoll() {
  CountActivity();
  helper_watches_.store(false, std::memory_order_relaxed);
  LookAtClock();
}

void SoftCore::LookAtClock() {
  if (!lock_.TryAcquire()) return;
  Tick(NowNs());
  Service();
  lock_.Release();
}

size_t SoftCore::Drive(uint64_t now_ns) {
  Tick(now_ns);
  size_t all = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    const size_t delivered = Deliver();
    Service();
    all += delivered;
    if (delivered < kBatch) break;
  }
  return all;
}

std::optional<uint64_t> SoftCore::NextTimer() const {
  std::optional<uint64_t> next = engine_->NextTimer();
  const auto consider = [&next](std::optional<uint64_t> timer) {
    if (timer && (!next || *timer < *next)) next = timer;
  };
  consider(packets_->NextTimer());
  for (const SoftCq* cq : timed_cqs_) {
    consider(cq->queue.NextTimer());
    consider(cq->late_event_ns);
  }
  return next;
}

Counters SoftCore::counters() const {
  Counters all = engine_->counters();
  all.send_err += link_counters_.send_err;
  all.icrc_errors += link_counters_.icrc_errors;
  all.malformed_pkts += link_counters_.malformed_pkts;
  return all;
}

void SoftCore::FailOverrunCqs() {
  // Failing the QPs may fill another CQ, whose QPs then fail in the next round.
  while (!overrun_.empty()) {
    CompletionQueue* cq = overrun_.back();
    overrun_.pop_back();
    engine_->FailQpsOf(*cq);
  }
  engine_->Transmit();
}

}  // namespace verbscope::soft
