// The preflight of a host: what RDMA depends on and can be read without privileges, each property
// with what it should be, and for a bad one the symptom and the fix.
//
// Reads small files only: no device is opened, nothing is changed. Any thread. The two-sided
// checks of a pair of hosts build on the rows of both and do not belong here.
#ifndef VERBSCOPE_CORE_DOCTOR_DOCTOR_H_
#define VERBSCOPE_CORE_DOCTOR_DOCTOR_H_

#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/doctor/host_tree.h"
#include "core/record/preflight.h"

namespace verbscope {

struct PreflightRequest {
  std::string device = {};       // empty: all; "soft…": the built-in one, which needs none
  std::optional<int> port = {};  // of every device looked at; absent: all ports
};

// Rows in the order of what others depend on: the host's limits, then devices and ports, then what
// only costs time. kSetup when there is no such device or port.
Expected<std::vector<PreflightRow>> Preflight(const HostTree& tree,
                                              const PreflightRequest& request);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_DOCTOR_DOCTOR_H_
