// Messages of the kernel's RDMA netlink (NETLINK_RDMA, client NLDEV) that list devices and the
// objects on them, as `rdma resource show` uses them. Requests are built and answers parsed here;
// resources_netlink.h has the socket. Pure functions; any thread.
//
// Layout: netlink(7) for messages and attributes, <rdma/rdma_netlink.h> for the numbers. A message
// is 4-byte aligned; an attribute's length counts its header, and unknown types are passed over, so
// that newer kernels can be read.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_NLDEV_MESSAGES_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_NLDEV_MESSAGES_H_

#include <rdma/rdma_netlink.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transports/resources.h"

namespace verbscope {

// One kind of object: how the kernel is asked, and how it answers.
struct NldevKind {
  std::string_view name;  // of ResourceRow::kind
  uint16_t command;       // RDMA_NLDEV_CMD_RES_…_GET
  uint16_t table;         // attribute that holds the entries
  uint16_t entry;         // attribute of an entry in it
  uint16_t id;            // attribute of the object's number in an entry
};

inline constexpr std::array<NldevKind, 6> kNldevKinds = {{
    {"context", RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY,
     RDMA_NLDEV_ATTR_RES_CTXN},
    {"pd", RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY,
     RDMA_NLDEV_ATTR_RES_PDN},
    {"cq", RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY,
     RDMA_NLDEV_ATTR_RES_CQN},
    {"qp", RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY,
     RDMA_NLDEV_ATTR_RES_LQPN},
    {"mr", RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY,
     RDMA_NLDEV_ATTR_RES_MRN},
    {"srq", RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQ, RDMA_NLDEV_ATTR_RES_SRQ_ENTRY,
     RDMA_NLDEV_ATTR_RES_SRQN},
}};

// A request to list everything of `command`; of one device when its index is given.
std::vector<std::byte> NldevDump(uint16_t command, uint32_t sequence,
                                 std::optional<uint32_t> device_index = std::nullopt);

struct NldevDevice {
  uint32_t index = 0;
  std::string name;
};

// What a received datagram held; several make up an answer.
struct NldevAnswer {
  std::vector<NldevDevice> devices = {};
  std::vector<ResourceRow> rows = {};
  bool done = false;    // the last one
  int errno_value = 0;  // the kernel refuses: the answer is over
  bool broken = false;  // not a message, or one that reaches beyond the datagram
};

// The answer to RDMA_NLDEV_CMD_GET.
void ParseNldevDevices(std::span<const std::byte> datagram, NldevAnswer& answer);

// Kernels number the poll contexts of CQs in two ways: `direct_is_last` from 5.8 on (enum
// ib_poll_context in ib_verbs.h).
void ParseNldevResources(std::span<const std::byte> datagram, const NldevKind& kind,
                         bool direct_is_last, NldevAnswer& answer);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_NLDEV_MESSAGES_H_
