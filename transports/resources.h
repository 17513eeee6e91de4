// The verbs objects that exist on this host, whoever made them: a row per context, PD, CQ, QP, MR
// and SRQ that the kernel knows of. Plain data, any thread.
//
// What the kernel does not say, or hides from a caller without privileges, is absent.
#ifndef VERBSCOPE_TRANSPORTS_RESOURCES_H_
#define VERBSCOPE_TRANSPORTS_RESOURCES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace verbscope {

struct ResourceRow {
  std::string kind;                 // "context", "pd", "cq", "qp", "mr", "srq"
  std::optional<uint32_t> id = {};  // the kernel's number of it; of a QP its QPN
  std::string owner = {};           // "user" or "kernel"
  std::optional<uint32_t> pid = {};
  std::string name = {};  // the process's command name, or the kernel module; empty: not known
  // Of which other object it is, by that one's id.
  std::optional<uint32_t> context = {};
  std::optional<uint32_t> pd = {};
  std::optional<uint32_t> port = {};          // QP
  std::string type = {};                      // QP: "RC", "UD", "GSI"
  std::string state = {};                     // QP: "RTS"
  std::optional<uint32_t> rqpn = {};          // QP: of the other end; connected types only
  std::optional<uint32_t> rq_psn = {};        // QP: next expected
  std::optional<uint32_t> sq_psn = {};        // QP: next to be sent
  std::optional<uint32_t> cqe = {};           // CQ: its depth in entries
  std::optional<uint64_t> users = {};         // CQ, PD: objects that use it
  std::string poll_context = {};              // kernel CQ: "direct", "softirq", "workqueue"
  std::optional<uint64_t> length_bytes = {};  // MR
  std::optional<uint32_t> rkey = {};          // MR: shown to the privileged only, as is lkey
  std::optional<uint32_t> lkey = {};
  friend bool operator==(const ResourceRow&, const ResourceRow&) = default;
};

struct DeviceResources {
  std::string device;
  std::vector<ResourceRow> rows = {};
  std::vector<std::string> unknown = {};  // kinds that this kernel does not list: "srq"
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_RESOURCES_H_
