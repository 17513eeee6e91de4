#include "transports/ibverbs/nldev_messages.h"

#include <fmt/core.h>
#include <linux/netlink.h>

#include <cstring>
#include <utility>

namespace verbscope {
namespace {

using View = std::span<const std::byte>;

template <class T>
T Load(View bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

template <class T>
void Append(std::vector<std::byte>& bytes, const T& value) {
  const auto raw = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// A number of exactly that size, or nothing.
template <class T>
std::optional<T> NumberOf(View value) {
  if (value.size() != sizeof(T)) return std::nullopt;
  return Load<T>(value);
}

// The kernel ends its texts with a zero byte.
std::string TextOf(View value) {
  std::string text(reinterpret_cast<const char*>(value.data()), value.size());
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

// Calls visit(type, value) for each attribute; false when one reaches beyond `bytes`.
template <class Visit>
bool ForEachAttribute(View bytes, Visit visit) {
  while (bytes.size() >= NLA_HDRLEN) {
    const auto header = Load<nlattr>(bytes);
    if (header.nla_len < NLA_HDRLEN || header.nla_len > bytes.size()) return false;
    visit(static_cast<uint16_t>(header.nla_type & NLA_TYPE_MASK),
          bytes.subspan(NLA_HDRLEN, header.nla_len - static_cast<size_t>(NLA_HDRLEN)));
    bytes = bytes.subspan(std::min<size_t>(NLA_ALIGN(header.nla_len), bytes.size()));
  }
  return true;
}

// Calls visit(attributes) for the payload of each answer; notes its end or refusal.
template <class Visit>
void ForEachMessage(View bytes, NldevAnswer& answer, Visit visit) {
  while (bytes.size() >= NLMSG_HDRLEN) {
    const auto header = Load<nlmsghdr>(bytes);
    if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > bytes.size()) {
      answer.broken = true;
      return;
    }
    const View payload =
        bytes.subspan(NLMSG_HDRLEN, header.nlmsg_len - static_cast<size_t>(NLMSG_HDRLEN));
    if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR) {
      // Both begin with an error number, negative or 0.
      const int error = payload.size() < sizeof(int) ? 0 : Load<int>(payload);
      answer.errno_value = error < 0 && error > -4096 ? -error : 0;
      answer.done = true;
      return;
    }
    if (header.nlmsg_type >= NLMSG_MIN_TYPE && !visit(payload)) answer.broken = true;
    bytes = bytes.subspan(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), bytes.size()));
  }
  if (!bytes.empty()) answer.broken = true;
}

template <size_t kCount>
std::string NameOf(const std::array<std::string_view, kCount>& names, uint8_t value) {
  return value < kCount && !names[value].empty() ? std::string(names[value])
                                                 : fmt::format("{}", value);
}

// enum ib_qp_type and ib_qp_state of ib_verbs.h.
constexpr std::array<std::string_view, 11> kQpTypes = {
    "SMI",           "GSI", "RC",         "UC",      "UD",     "RAW_IPV6",
    "RAW_ETHERTYPE", "",    "RAW_PACKET", "XRC_INI", "XRC_TGT"};
constexpr std::array<std::string_view, 7> kQpStates = {"RESET", "INIT", "RTR", "RTS",
                                                       "SQD",   "SQE",  "ERR"};
constexpr std::array<std::string_view, 4> kPollNew = {"softirq", "workqueue", "unbound-workqueue",
                                                      "direct"};
constexpr std::array<std::string_view, 4> kPollOld = {"direct", "softirq", "workqueue",
                                                      "unbound-workqueue"};

// One attribute of an entry into its row.
void TakeAttribute(const NldevKind& kind, bool direct_is_last, uint16_t type, View value,
                   ResourceRow& row) {
  if (type == kind.id) row.id = NumberOf<uint32_t>(value);
  const auto byte = NumberOf<uint8_t>(value);
  switch (type) {
    case RDMA_NLDEV_ATTR_RES_PID:
      row.pid = NumberOf<uint32_t>(value);
      row.owner = "user";
      break;
    case RDMA_NLDEV_ATTR_RES_KERN_NAME:
      row.name = TextOf(value);
      row.owner = "kernel";
      break;
    case RDMA_NLDEV_ATTR_RES_CTXN:
      if (kind.name != "context") row.context = NumberOf<uint32_t>(value);
      break;
    case RDMA_NLDEV_ATTR_RES_PDN:
      if (kind.name != "pd") row.pd = NumberOf<uint32_t>(value);
      break;
    case RDMA_NLDEV_ATTR_PORT_INDEX:
      row.port = NumberOf<uint32_t>(value);
      break;
    case RDMA_NLDEV_ATTR_RES_TYPE:
      if (byte && kind.name == "qp") row.type = NameOf(kQpTypes, *byte);
      break;
    case RDMA_NLDEV_ATTR_RES_STATE:
      if (byte) row.state = NameOf(kQpStates, *byte);
      break;
    case RDMA_NLDEV_ATTR_RES_RQPN:
      row.rqpn = NumberOf<uint32_t>(value);
      break;
    case RDMA_NLDEV_ATTR_RES_RQ_PSN:
      row.rq_psn = NumberOf<uint32_t>(value);
      break;
    case RDMA_NLDEV_ATTR_RES_SQ_PSN:
      row.sq_psn = NumberOf<uint32_t>(value);
      break;
    case RDMA_NLDEV_ATTR_RES_CQE:
      row.cqe = NumberOf<uint32_t>(value);
      break;
    case RDMA_NLDEV_ATTR_RES_USECNT:
      row.users = NumberOf<uint64_t>(value);
      break;
    case RDMA_NLDEV_ATTR_RES_POLL_CTX:
      if (byte) row.poll_context = NameOf(direct_is_last ? kPollNew : kPollOld, *byte);
      break;
    case RDMA_NLDEV_ATTR_RES_MRLEN:
      row.length_bytes = NumberOf<uint64_t>(value);
      break;
    case RDMA_NLDEV_ATTR_RES_RKEY:
      row.rkey = NumberOf<uint32_t>(value);
      break;
    case RDMA_NLDEV_ATTR_RES_LKEY:
      row.lkey = NumberOf<uint32_t>(value);
      break;
    default:
      break;
  }
}

}  // namespace

std::vector<std::byte> NldevDump(uint16_t command, uint32_t sequence,
                                 std::optional<uint32_t> device_index) {
  constexpr uint32_t kAttributeBytes = NLA_HDRLEN + sizeof(uint32_t);
  std::vector<std::byte> bytes;
  const nlmsghdr header = {
      .nlmsg_len = NLMSG_HDRLEN + (device_index ? kAttributeBytes : 0),
      .nlmsg_type = static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command)),
      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
      .nlmsg_seq = sequence,
      .nlmsg_pid = 0};
  Append(bytes, header);
  if (!device_index) return bytes;
  Append(bytes, nlattr{.nla_len = kAttributeBytes, .nla_type = RDMA_NLDEV_ATTR_DEV_INDEX});
  Append(bytes, *device_index);
  return bytes;
}

void ParseNldevDevices(std::span<const std::byte> datagram, NldevAnswer& answer) {
  ForEachMessage(datagram, answer, [&answer](View payload) {
    std::optional<uint32_t> index;
    std::string name;
    const bool whole = ForEachAttribute(payload, [&](uint16_t type, View value) {
      if (type == RDMA_NLDEV_ATTR_DEV_INDEX) index = NumberOf<uint32_t>(value);
      if (type == RDMA_NLDEV_ATTR_DEV_NAME) name = TextOf(value);
    });
    if (index && !name.empty()) answer.devices.push_back({*index, std::move(name)});
    return whole;
  });
}

void ParseNldevResources(std::span<const std::byte> datagram, const NldevKind& kind,
                         bool direct_is_last, NldevAnswer& answer) {
  ForEachMessage(datagram, answer, [&](View payload) {
    bool whole = true;
    const auto entry = [&](uint16_t type, View value) {
      if (type != kind.entry) return;
      ResourceRow& row = answer.rows.emplace_back();
      row.kind = kind.name;
      whole &= ForEachAttribute(value, [&](uint16_t attribute, View part) {
        TakeAttribute(kind, direct_is_last, attribute, part, row);
      });
    };
    whole &= ForEachAttribute(payload, [&](uint16_t type, View value) {
      if (type == kind.table) whole &= ForEachAttribute(value, entry);
    });
    return whole;
  });
}

}  // namespace verbscope
