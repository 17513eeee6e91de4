#include "core/session/side.h"

#include <fmt/core.h>

#include <utility>

#include "core/host/affinity.h"
#include "core/host/host.h"
#include "core/selection/selection.h"

namespace verbscope {
namespace {

ClockRecord Describe(const ClockInfo& info) {
  ClockRecord record;
  record.source = Name(info.source);
  record.invariant = info.invariant;
  record.hz = info.hz;
  record.drift_ppm = info.drift_ppm;
  record.resolution_ns = info.resolution_ns;
  record.overhead_ns = info.overhead_ns;
  return record;
}

PeerReach ReachOf(const ControlPath& path) {
  return {.same_host = path.same_host() || path.local_address == path.remote_address,
          .local_address = path.local_address};
}

}  // namespace

void TeardownNotes::Add(Error error) {
  const std::lock_guard lock(mutex_);
  notes_.push_back("teardown: " + error.ToText());
}

std::vector<std::string> TeardownNotes::Take() {
  const std::lock_guard lock(mutex_);
  return std::move(notes_);
}

Expected<SideState> OpenSide(const SessionContext& context, const LocalSettings& settings,
                             const ControlPath& path, const std::string& role, SideRecord& record) {
  const Status pinned = PinThread(settings.cpus);
  record = DescribeHost(role);
  if (!pinned) return Fail(pinned.error());
  Expected<std::vector<DeviceSummary>> devices = context.provider.ListFor(settings.device);
  if (!devices) return Fail(std::move(devices.error()));
  Expected<Choice> choice = ChooseDevice(*devices, settings, path);
  if (!choice) return Fail(std::move(choice.error()));
  if (!choice->notice.empty()) context.notice(choice->notice);

  SideState side{.settings = settings, .clock = Clock::Calibrate()};
  Expected<std::unique_ptr<Device>> device =
      context.provider.OpenFor(choice->device, ReachOf(path));
  if (!device) return Fail(std::move(device.error()));
  side.device = std::move(*device);
  side.device->set_teardown_report(side.teardown.get());
  Expected<PortInfo> port = side.device->QueryPort(choice->port);
  if (!port) return Fail(std::move(port.error()));
  side.port = std::move(*port);
  side.record = record;
  side.record.device = Describe(side.device->info(), side.port, std::nullopt);
  side.record.clock = Describe(side.clock.info());
  for (const std::string& notice : side.clock.info().notices) context.notice(notice);
  record = side.record;
  return side;
}

void DescribePath(SideState& side) {
  side.record.device = Describe(side.device->info(), side.port, side.gid);
  if (Expected<uint32_t> limit = side.device->MaxInlineBytes(); limit) {
    side.record.device->inline_bytes = *limit;
  }
}

std::string ShareCpus(SideState& side, bool same_host, bool one_sleeps) {
  // Who pins has chosen the CPUs, and what this thread may use then says nothing about the other.
  if (!side.settings.cpus.empty()) return "";
  const int pollers =
      (side.settings.wait.uses_events() ? 0 : 1) + (side.peer_wait.uses_events() ? 0 : 1);
  const int usable = UsableCpuCount();
  side.shares_cpu = same_host && pollers == 2 && !one_sleeps && usable <= pollers;
  if (!side.shares_cpu) return "";
  return fmt::format(
      "both ends poll on this host and may use {} CPU{} only, with nothing left for other "
      "work: pollers yield, and times include waiting for a CPU; waiting for events needs fewer",
      usable, usable == 1 ? "" : "s");
}

void FinishSide(SideState& side, const SessionContext& context) {
  const LinkReport link = side.device->ReportLink();
  if (side.record.device && !link.link.empty()) {
    side.record.device->link = link.link;
    side.record.device->icrc = link.icrc;
  }
  for (const std::string& notice : link.notices) context.notice(notice);
  for (const std::string& note : side.teardown->Take()) context.notice(note);
  const size_t told = side.clock.info().notices.size();
  const ClockInfo& info = side.clock.Finish();
  side.record.clock = Describe(info);
  for (size_t i = told; i < info.notices.size(); ++i) context.notice(info.notices[i]);
}

}  // namespace verbscope
