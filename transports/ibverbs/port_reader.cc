#include "transports/ibverbs/port_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "transports/common/port_text.h"
#include "transports/ibverbs/causes.h"
#include "transports/ibverbs/gid_table.h"

namespace verbscope {
namespace {

struct WidthRow {
  uint8_t code;
  int lanes;
};
constexpr std::array<WidthRow, 5> kWidths = {{{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}}};

struct SpeedRow {
  uint8_t code;
  double lane_gbit_per_s;
};
// SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR.
constexpr std::array<SpeedRow, 8> kSpeeds = {
    {{1, 2.5}, {2, 5}, {4, 10}, {8, 10}, {16, 14}, {32, 25}, {64, 50}, {128, 100}}};

uint32_t Count(int value) { return value > 0 ? static_cast<uint32_t>(value) : 0; }

// A QP attribute holds 8 bits, so more can never be asked for.
uint8_t Depth(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

}  // namespace

double LinkRate(uint8_t width_code, uint8_t speed_code) {
  for (const WidthRow& width : kWidths) {
    if (width.code != width_code) continue;
    for (const SpeedRow& speed : kSpeeds) {
      if (speed.code == speed_code) return width.lanes * speed.lane_gbit_per_s;
    }
  }
  return 0;
}

double LinkRateFromSysfs(std::string_view text) {
  const size_t unit = text.find(" Gb/sec");
  if (unit == std::string_view::npos || unit == 0) return 0;
  const std::string number(text.substr(0, unit));
  char* end = nullptr;
  const double rate = std::strtod(number.c_str(), &end);
  return *end == '\0' && rate > 0 && rate < 1e6 ? rate : 0;
}

DeviceLimits LimitsOf(const ibv_device_attr& attributes, int comp_vectors) {
  DeviceLimits limits;
  limits.max_qp_wr = Count(attributes.max_qp_wr);
  limits.max_sge = Count(attributes.max_sge);
  limits.max_cqe = Count(attributes.max_cqe);
  limits.max_qp = Count(attributes.max_qp);
  limits.max_cq = Count(attributes.max_cq);
  limits.max_mr = Count(attributes.max_mr);
  limits.max_pd = Count(attributes.max_pd);
  limits.max_srq = Count(attributes.max_srq);
  limits.max_mr_bytes = attributes.max_mr_size;
  limits.max_rd_atomic_initiator = Depth(attributes.max_qp_init_rd_atom);
  limits.max_rd_atomic_responder = Depth(attributes.max_qp_rd_atom);
  limits.comp_vectors = Count(comp_vectors);
  limits.atomics = attributes.atomic_cap != IBV_ATOMIC_NONE;
  return limits;
}

Expected<PortInfo> ReadPort(VerbsApi& verbs, ibv_context* context, const std::string& device,
                            int port, int port_count, const SystemPaths& paths) {
  if (port < 1 || port > port_count) {
    Error error;
    error.error_class = ErrorClass::kSetup;
    error.message = fmt::format("{} has no port {}", device, port);
    error.cause = port_count == 1 ? std::string("it has one port, number 1")
                                  : fmt::format("its ports are 1 to {}", port_count);
    error.next_step = "choose one of its ports with --ib-port";
    return Fail(std::move(error));
  }
  ibv_port_attr attributes = {};
  const std::string where = fmt::format("device={}, port={}", device, port);
  if (const int code = verbs.QueryPort(context, port, &attributes); code != 0) {
    return Fail(VerbError(VerbCall::kQueryPort, where, code));
  }

  PortInfo info;
  info.number = port;
  info.state = PortStateName(attributes.state);
  info.active = attributes.state == IBV_PORT_ACTIVE;
  info.link_layer = LinkLayerOf(attributes.link_layer);
  info.active_mtu_bytes = MtuBytes(attributes.active_mtu);
  info.max_mtu_bytes = MtuBytes(attributes.max_mtu);
  info.max_message_bytes = attributes.max_msg_sz;
  info.gbit_per_s = LinkRate(attributes.active_width, attributes.active_speed);
  if (info.gbit_per_s == 0) {
    info.gbit_per_s = LinkRateFromSysfs(ReadText(paths.Port(device, port) + "/rate").value_or(""));
  }
  info.lid = attributes.lid;
  info.sm_lid = attributes.sm_lid;

  GidTableRequest request = {.device = device,
                             .port = port,
                             .link_layer = info.link_layer,
                             .port_entries = attributes.gid_tbl_len,
                             .device_entries = Count(attributes.gid_tbl_len)};
  for (int other = 1; other <= port_count; ++other) {
    ibv_port_attr other_attributes = {};
    if (other == port || verbs.QueryPort(context, other, &other_attributes) != 0) continue;
    request.device_entries += Count(other_attributes.gid_tbl_len);
  }
  info.gids = ReadGidTable(verbs, context, request, paths);
  return info;
}

}  // namespace verbscope
