// The list of the `devices` command.
#include <fmt/core.h>

#include <string>

#include "reporters/text.h"
#include "reporters/text_canvas.h"
#include "reporters/text_parts.h"

namespace verbscope {
namespace {

std::string Bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

void DrawPort(const PortInfo& port, Canvas& canvas) {
  std::string text = fmt::format("{}, {}, MTU {} (at most {})", canvas.Safe(port.state),
                                 Name(port.link_layer), port.active_mtu_bytes, port.max_mtu_bytes);
  if (port.gbit_per_s > 0) text += fmt::format(", {:g} Gb/s", port.gbit_per_s);
  if (port.link_layer == LinkLayer::kInfiniBand) {
    text += fmt::format(", LID {}, subnet manager LID {}", port.lid, port.sm_lid);
  }
  text += fmt::format(", messages up to {}", Bytes(port.max_message_bytes));
  canvas.Labelled(fmt::format("port {}", port.number), text,
                  port.active ? Ink::kPlain : Ink::kYellow);
  if (port.gids.empty()) return canvas.Labelled("", "no GID", Ink::kYellow);
  canvas.Line(canvas.In(Ink::kDim, "    GID  type     value" + std::string(36, ' ') + "netdev"));
  for (const GidEntry& gid : port.gids) {
    canvas.Line(fmt::format("    {:>3}  {}  {}  {}", gid.index, PadRight(canvas.Safe(gid.type), 7),
                            PadRight(canvas.Safe(gid.value), 39), canvas.Safe(gid.netdev)));
  }
}

void DrawDevice(const DeviceInfo& info, Canvas& canvas) {
  const DeviceLimits& limits = info.limits;
  std::string about = fmt::format("{}", Name(info.kind));
  const auto add = [&about](std::string_view name, const std::string& value) {
    if (!value.empty()) about += fmt::format(", {} {}", name, value);
  };
  add("provider", canvas.Safe(info.provider));
  add("firmware", canvas.Safe(info.firmware));
  add("NUMA node", info.numa_node < 0 ? "" : std::to_string(info.numa_node));
  if (info.vendor_id != 0) {
    add("vendor", fmt::format("0x{:04x} part {}", info.vendor_id, info.vendor_part_id));
  }
  canvas.Labelled("device", about);
  for (const PortInfo& port : info.ports) DrawPort(port, canvas);
  // Drivers without a limit of their own say 2^63 or 2^64, less one.
  const std::string mr_bytes =
      limits.max_mr_bytes >> 62 ? "" : fmt::format(" of {}", Bytes(limits.max_mr_bytes));
  canvas.Labelled(
      "limits",
      fmt::format("{} QPs, {} CQs of {} entries, {} MRs{}, {} PDs, {} SRQs, {} requests per queue "
                  "of {} SGEs, {} READs out and {} in per QP, {} completion vectors, {}",
                  limits.max_qp, limits.max_cq, limits.max_cqe, limits.max_mr, mr_bytes,
                  limits.max_pd, limits.max_srq, limits.max_qp_wr, limits.max_sge,
                  limits.max_rd_atomic_initiator, limits.max_rd_atomic_responder,
                  limits.comp_vectors, limits.atomics ? "Atomics" : "no Atomics"),
      Ink::kDim);
}

}  // namespace

std::string RenderDevices(const Record& record, const TextOptions& options) {
  Canvas canvas(options);
  for (const DeviceSummary& summary : record.devices) {
    canvas.Blank();
    canvas.Wrapped(0, canvas.Safe(summary.name), Ink::kBold);
    if (summary.info) DrawDevice(*summary.info, canvas);
    if (!summary.error) continue;
    canvas.Labelled("unusable", canvas.Safe(summary.error->message), Ink::kRed);
    if (!summary.error->cause.empty()) {
      canvas.Labelled("cause", canvas.Safe(summary.error->cause));
    }
    if (!summary.error->next_step.empty()) {
      canvas.Labelled("next", canvas.Safe(summary.error->next_step));
    }
  }
  if (record.resources) {
    for (const DeviceResources& resources : *record.resources) DrawResources(resources, canvas);
  }
  return canvas.Take();
}

}  // namespace verbscope
