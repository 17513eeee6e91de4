#include "transports/common/qp_text.h"

#include <fmt/core.h>

#include <array>
#include <iterator>

#include "transports/common/port_text.h"

namespace verbscope {
namespace {

// What kind of object an event is about, which is the union member that is valid.
enum class Element { kQp, kCq, kSrq, kWq, kPort, kDevice };

struct EventRow {
  ibv_event_type type;
  std::string_view name;
  Element element;
};
constexpr std::array<EventRow, 20> kEvents = {{
    {IBV_EVENT_CQ_ERR, "CQ_ERR", Element::kCq},
    {IBV_EVENT_QP_FATAL, "QP_FATAL", Element::kQp},
    {IBV_EVENT_QP_REQ_ERR, "QP_REQ_ERR", Element::kQp},
    {IBV_EVENT_QP_ACCESS_ERR, "QP_ACCESS_ERR", Element::kQp},
    {IBV_EVENT_COMM_EST, "COMM_EST", Element::kQp},
    {IBV_EVENT_SQ_DRAINED, "SQ_DRAINED", Element::kQp},
    {IBV_EVENT_PATH_MIG, "PATH_MIG", Element::kQp},
    {IBV_EVENT_PATH_MIG_ERR, "PATH_MIG_ERR", Element::kQp},
    {IBV_EVENT_DEVICE_FATAL, "DEVICE_FATAL", Element::kDevice},
    {IBV_EVENT_PORT_ACTIVE, "PORT_ACTIVE", Element::kPort},
    {IBV_EVENT_PORT_ERR, "PORT_ERR", Element::kPort},
    {IBV_EVENT_LID_CHANGE, "LID_CHANGE", Element::kPort},
    {IBV_EVENT_PKEY_CHANGE, "PKEY_CHANGE", Element::kPort},
    {IBV_EVENT_SM_CHANGE, "SM_CHANGE", Element::kPort},
    {IBV_EVENT_SRQ_ERR, "SRQ_ERR", Element::kSrq},
    {IBV_EVENT_SRQ_LIMIT_REACHED, "SRQ_LIMIT_REACHED", Element::kSrq},
    {IBV_EVENT_QP_LAST_WQE_REACHED, "QP_LAST_WQE_REACHED", Element::kQp},
    {IBV_EVENT_CLIENT_REREGISTER, "CLIENT_REREGISTER", Element::kPort},
    {IBV_EVENT_GID_CHANGE, "GID_CHANGE", Element::kPort},
    {IBV_EVENT_WQ_FATAL, "WQ_FATAL", Element::kWq},
}};

std::string DescribeAddress(const ibv_ah_attr& address) {
  std::string text = fmt::format("ah_attr {{port_num {}, dlid {}, sl {}, is_global {}",
                                 address.port_num, address.dlid, address.sl, address.is_global);
  if (address.is_global != 0) {
    text += fmt::format(", sgid_index {}, dgid {}, traffic_class {}, flow_label {}, hop_limit {}",
                        address.grh.sgid_index, FormatGid(address.grh.dgid),
                        address.grh.traffic_class, address.grh.flow_label, address.grh.hop_limit);
  }
  return text + "}";
}

}  // namespace

std::string DescribeQpAttributes(const ibv_qp_attr& attributes, int mask) {
  std::string text;
  const auto add = [&text, mask](int bit, std::string_view name, const auto& value) {
    if ((mask & bit) == 0) return;
    fmt::format_to(std::back_inserter(text), "{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  const auto hex = [](uint32_t value) { return fmt::format("{:#x}", value); };
  add(IBV_QP_STATE, "qp_state", QpStateName(attributes.qp_state));
  add(IBV_QP_PORT, "port_num", attributes.port_num);
  add(IBV_QP_PKEY_INDEX, "pkey_index", attributes.pkey_index);
  add(IBV_QP_ACCESS_FLAGS, "qp_access_flags", hex(attributes.qp_access_flags));
  add(IBV_QP_QKEY, "qkey", hex(attributes.qkey));
  // The code, not the bytes, when it is none: that is then the fault.
  if (const uint32_t bytes = MtuBytes(attributes.path_mtu); bytes != 0) {
    add(IBV_QP_PATH_MTU, "path_mtu", bytes);
  } else {
    add(IBV_QP_PATH_MTU, "path_mtu code", static_cast<int>(attributes.path_mtu));
  }
  add(IBV_QP_DEST_QPN, "dest_qp_num", hex(attributes.dest_qp_num));
  add(IBV_QP_RQ_PSN, "rq_psn", hex(attributes.rq_psn));
  add(IBV_QP_SQ_PSN, "sq_psn", hex(attributes.sq_psn));
  add(IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", attributes.max_dest_rd_atomic);
  add(IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", attributes.max_rd_atomic);
  add(IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", attributes.min_rnr_timer);
  add(IBV_QP_TIMEOUT, "timeout", attributes.timeout);
  add(IBV_QP_RETRY_CNT, "retry_cnt", attributes.retry_cnt);
  add(IBV_QP_RNR_RETRY, "rnr_retry", attributes.rnr_retry);
  if ((mask & IBV_QP_AV) != 0) {
    text += text.empty() ? "" : ", ";
    text += DescribeAddress(attributes.ah_attr);
  }
  return text;
}

std::string DescribeAsyncEvent(const ibv_async_event& event, std::string_view device) {
  for (const EventRow& row : kEvents) {
    if (row.type != event.event_type) continue;
    switch (row.element) {
      case Element::kQp:
        return fmt::format("{} on QP {:#x}", row.name, event.element.qp->qp_num);
      case Element::kCq:
        return fmt::format("{} on CQ {} ({} entries)", row.name,
                           static_cast<const void*>(event.element.cq), event.element.cq->cqe);
      case Element::kSrq:
        return fmt::format("{} on SRQ {}", row.name, event.element.srq->handle);
      case Element::kWq:
        return fmt::format("{} on WQ {:#x}", row.name, event.element.wq->wq_num);
      case Element::kPort:
        return fmt::format("{} on port {}", row.name, event.element.port_num);
      case Element::kDevice:
        return fmt::format("{} on {}", row.name, device);
    }
  }
  return fmt::format("event type {} on {}", static_cast<int>(event.event_type), device);
}

}  // namespace verbscope
