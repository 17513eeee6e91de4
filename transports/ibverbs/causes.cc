#include "transports/ibverbs/causes.h"

#include <array>
#include <cerrno>
#include <string>

namespace verbscope {
namespace {

struct Row {
  std::optional<VerbCall> call;  // nullopt: any call
  int errno_value;
  Cause cause;
};

// Sources: the errno values that the kernel's uverbs layer and its drivers return for these
// commands, and what users found behind them (RTR over RoCE above all).
constexpr std::array kRows = {
    // The list.
    Row{VerbCall::kGetDeviceList,
        EPERM,
        {"this process may not ask the kernel for its RDMA devices",
         "run as root, or outside the restricted container"}},

    // Opening /dev/infiniband/uverbsN.
    Row{VerbCall::kOpenDevice,
        EACCES,
        {"this user may not read and write the device node",
         "run as root, or let a udev rule give the user's group access (GROUP=, MODE=\"0660\")"}},
    Row{VerbCall::kOpenDevice,
        EPERM,
        {"the container's device rules forbid the device node, or the device belongs to another "
         "network namespace",
         "give the container the device (--device /dev/infiniband, or the device plugin's "
         "resource); see the mode with `rdma system`"}},
    Row{VerbCall::kOpenDevice,
        ENOENT,
        {"the device node is missing here: a container without its device nodes, or ib_uverbs is "
         "not loaded",
         "give the container /dev/infiniband, or load the module with `modprobe ib_uverbs`"}},
    Row{VerbCall::kOpenDevice,
        ENXIO,
        {"the device was removed after it was listed", "list the devices again"}},
    Row{VerbCall::kOpenDevice,
        ENOMEM,
        {"the device has no room for another user (out of doorbell pages or kernel memory)",
         "close other RDMA programs on this device"}},
    Row{VerbCall::kOpenDevice,
        ENOSYS,
        {"libibverbs has no driver that fits this kernel's driver",
         "install the provider package that matches the kernel (ibverbs-providers)"}},

    // Ports.
    Row{VerbCall::kQueryPort,
        EINVAL,
        {"the device has no port of this number", "choose one of its ports with --ib-port"}},

    Row{VerbCall::kAllocPd,
        ENOMEM,
        {"the device has no free protection domain, or the kernel no memory",
         "close other RDMA programs on this device"}},

    // Memory.
    Row{VerbCall::kRegMr,
        ENOMEM,
        {"the kernel could not pin the memory, or the device has no free memory region",
         "register less memory, or close other RDMA programs on this device"}},
    Row{VerbCall::kRegMr,
        EFAULT,
        {"the memory is not mapped, is read-only, or cannot be pinned (a device or file mapping)",
         "register anonymous memory of this process"}},
    Row{VerbCall::kRegMr,
        EINVAL,
        {"the device does not take this combination of access flags (remote write and remote "
         "atomic need local write) or this length",
         "compare the length with max_mr_bytes of `verbscope devices`"}},
    Row{VerbCall::kRegMr,
        EOPNOTSUPP,
        {"the device does not support one of the access flags", "leave optional access flags out"}},
    Row{VerbCall::kRegMr,
        EPERM,
        {"this process may not pin memory: its limit of locked memory is 0 and it has no "
         "CAP_IPC_LOCK",
         "raise the limit (`ulimit -l unlimited`) or give the process CAP_IPC_LOCK"}},

    // Channel, CQ, QP.
    Row{VerbCall::kCreateCq,
        EINVAL,
        {"more entries than the device's max_cqe, or a completion vector that it does not have",
         "compare with the limits that `verbscope devices` shows"}},
    Row{VerbCall::kCreateCq,
        ENOMEM,
        {"no memory for the queue, or the device has no free CQ",
         "ask for fewer entries, or close other RDMA programs on this device"}},
    Row{VerbCall::kModifyCq,
        EOPNOTSUPP,
        {"the device does not hold events back (no moderation)", "leave --moderation out"}},
    Row{VerbCall::kModifyCq,
        EINVAL,
        {"a count or period above what the device holds events back for",
         "give a smaller --moderation"}},
    Row{VerbCall::kCreateSrq,
        EINVAL,
        {"a depth or SGE count above the device's limit",
         "compare with the limits that `verbscope devices` shows"}},
    Row{VerbCall::kCreateSrq,
        ENOMEM,
        {"no memory for the queue, or the device has no free SRQ",
         "ask for fewer entries, or close other RDMA programs on this device"}},
    Row{VerbCall::kModifySrq,
        EINVAL,
        {"a limit above the depth of the queue", "give a smaller limit"}},
    Row{VerbCall::kCreateQp,
        EINVAL,
        {"a queue depth, SGE count or inline size above the device's limit; the verb does not say "
         "which",
         "lower --inline, --tx-depth or --rx-depth; limits are in `verbscope devices`"}},
    Row{VerbCall::kCreateQp,
        ENOMEM,
        {"the queues do not fit: too deep with this inline size, no memory, or no free QP",
         "lower --tx-depth, --rx-depth or --inline, or close other RDMA programs"}},
    Row{VerbCall::kCreateQp,
        EOPNOTSUPP,
        {"the device has no reliable connected queue pairs", "choose another device"}},

    // INIT to RTR resolves the path: neighbour, route, GID.
    Row{VerbCall::kModifyQpToRtr,
        EINVAL,
        {"the device refuses an address attribute: GIDs of different families or types on the two "
         "sides, an unroutable GID, or a path MTU above the port's",
         "choose matching GIDs with --gid-index on both sides (`verbscope devices` lists them) or "
         "lower --mtu"}},
    Row{VerbCall::kModifyQpToRtr,
        ETIMEDOUT,
        {"the peer's address was not resolved: no neighbour answered ARP or neighbour discovery "
         "for its GID",
         "ping the address in the peer's GID from this port's netdev; check VLAN, subnet and that "
         "the peer's link is up"}},
    Row{VerbCall::kModifyQpToRtr,
        EHOSTUNREACH,
        {"the peer's host cannot be reached: no neighbour has the address of its GID",
         "ping the address in the peer's GID; check that both sides are in the same network"}},
    Row{VerbCall::kModifyQpToRtr,
        ENETUNREACH,
        {"this host has no route to the address in the peer's GID",
         "choose GIDs of the same subnet with --gid-index, or add the route"}},
    Row{VerbCall::kModifyQpToRtr,
        ENODEV,
        {"the local GID belongs to a network device of another network namespace, or its network "
         "device is gone",
         "choose a GID whose netdev is in this namespace with --gid-index"}},
    Row{VerbCall::kModifyQpToRtr,
        ENXIO,
        {"the local GID belongs to a network device of another network namespace, or its network "
         "device is gone",
         "choose a GID whose netdev is in this namespace with --gid-index"}},
    Row{VerbCall::kModifyQpToRtr,
        EADDRNOTAVAIL,
        {"the address of the local GID is no longer on its network device",
         "choose another --gid-index, or give the interface its address back"}},
    Row{VerbCall::kModifyQpToRtr,
        ENOENT,
        {"the GID table entry is empty: its address was removed after it was read",
         "choose another --gid-index"}},
    Row{VerbCall::kModifyQpToRtr,
        ENOMEM,
        {"the device or kernel has no memory for the connection (address handle or READ "
         "resources)",
         "lower --rd-atomic or --qps"}},
    Row{VerbCall::kModifyQp,
        EINVAL,
        {"the QP is not in the state that this transition starts from, or an attribute is outside "
         "the device's range",
         "compare the attributes with the limits that `verbscope devices` shows"}},
    Row{VerbCall::kModifyQp,
        ENOMEM,
        {"the device has no resources for these attributes (READ and Atomic depth)",
         "lower --rd-atomic or --qps"}},

    // Events.
    Row{VerbCall::kGetCqEvent,
        EIO,
        {"the device was reset or removed while its events were awaited",
         "see the kernel log, then start again"}},

    // Tear-down. Holders are named in the message, where they are known.
    Row{VerbCall::kDeallocPd,
        EBUSY,
        {"memory regions or QPs of this protection domain still exist",
         "destroy them first; this is a bug of verbscope"}},
    Row{VerbCall::kDeregMr,
        EBUSY,
        {"a memory window is still bound to it", "destroy the window first"}},
    Row{VerbCall::kDestroySrq,
        EBUSY,
        {"QPs still take their receives from it",
         "destroy them first; this is a bug of verbscope"}},
    Row{VerbCall::kDestroyCompChannel,
        EBUSY,
        {"CQs still report to this channel", "destroy them first; this is a bug of verbscope"}},
    Row{VerbCall::kDestroyCq,
        EBUSY,
        {"QPs still complete into this CQ", "destroy them first; this is a bug of verbscope"}},
    Row{VerbCall::kDestroyQp,
        EBUSY,
        {"the QP is still attached to a multicast group or a flow",
         "detach it first; this is a bug of verbscope"}},

    // Any call. Rows of a call above say more; these see to it that no errno of the set-up verbs is
    // left without a word.
    Row{std::nullopt,
        EINVAL,
        {"the device or its driver refuses an argument, and does not say which",
         "compare what was asked with the limits that `verbscope devices` shows; compare the "
         "versions of rdma-core and of the kernel driver"}},
    Row{std::nullopt,
        ETIMEDOUT,
        {"the firmware of the device did not answer a command in time",
         "see the kernel log (dmesg); the device may need a reset"}},
    Row{std::nullopt,
        EBUSY,
        {"the device is being reset, or what the call needs is in use",
         "wait a moment and try again; see the kernel log (dmesg)"}},
    Row{std::nullopt,
        EFAULT,
        {"the kernel could not read or write memory of this process: the provider library and the "
         "kernel driver do not fit each other",
         "install versions of rdma-core and of the kernel driver that belong together"}},
    Row{std::nullopt,
        EAGAIN,
        {"the container's limit of RDMA objects (rdma cgroup) is reached, or the device is out of "
         "resources",
         "compare rdma.current with rdma.max in the container's cgroup"}},
    Row{std::nullopt,
        EMFILE,
        {"this process has too many open files", "raise the limit (`ulimit -n`)"}},
    Row{std::nullopt, ENFILE, {"the host has too many open files", "raise fs.file-max"}},
    Row{std::nullopt,
        ENOSPC,
        {"the device has no free object of this kind",
         "close other RDMA programs on this device, or use fewer objects"}},
    Row{std::nullopt, ENOMEM, {"kernel or device is out of memory", "close other programs"}},
    Row{std::nullopt,
        EIO,
        {"the device was reset or removed (driver unloaded, firmware error, unplugged)",
         "see the kernel log, then start again"}},
    Row{std::nullopt,
        ENODEV,
        {"the device was removed (driver unloaded, firmware error, unplugged)",
         "see the kernel log, then list the devices again"}},
    Row{std::nullopt,
        EPERM,
        {"this process may not do that (user, capabilities or container rules)",
         "run as root, or outside the restricted container"}},
    Row{std::nullopt,
        EACCES,
        {"this process may not do that (user, capabilities or container rules)",
         "run as root, or outside the restricted container"}},
    Row{std::nullopt,
        ENOSYS,
        {"this kernel or driver does not have the call", "use a newer kernel or driver"}},
    Row{std::nullopt,
        EOPNOTSUPP,
        {"this device or driver does not have the feature", "choose another device"}},
};

constexpr std::array<std::string_view, 24> kNames = {
    "ibv_get_device_list",
    "ibv_open_device",
    "ibv_query_device",
    "ibv_query_port",
    "ibv_alloc_pd",
    "ibv_reg_mr",
    "ibv_create_comp_channel",
    "ibv_create_cq",
    "ibv_modify_cq",
    "ibv_create_srq",
    "ibv_modify_srq",
    "ibv_create_qp",
    "ibv_modify_qp",
    "ibv_modify_qp",
    "ibv_query_qp",
    "ibv_get_cq_event",
    "ibv_get_async_event",
    "ibv_dealloc_pd",
    "ibv_dereg_mr",
    "ibv_destroy_comp_channel",
    "ibv_destroy_cq",
    "ibv_destroy_qp",
    "ibv_destroy_srq",
    "ibv_close_device",
};
static_assert(kNames.size() == static_cast<size_t>(VerbCall::kCloseDevice) + 1);

ErrorClass ClassOf(VerbCall call, int errno_value) {
  switch (call) {
    case VerbCall::kDeallocPd:
    case VerbCall::kDeregMr:
    case VerbCall::kDestroyCompChannel:
    case VerbCall::kDestroyCq:
    case VerbCall::kDestroyQp:
    case VerbCall::kDestroySrq:
    case VerbCall::kCloseDevice:
      return errno_value == EBUSY ? ErrorClass::kInternal : ErrorClass::kRun;
    case VerbCall::kQueryQp:
    case VerbCall::kGetCqEvent:
    case VerbCall::kGetAsyncEvent:
      return ErrorClass::kRun;
    default:
      return ErrorClass::kSetup;
  }
}

}  // namespace

std::string_view FunctionName(VerbCall call) { return kNames[static_cast<size_t>(call)]; }

std::optional<Cause> FindCause(VerbCall call, int errno_value) {
  // EOPNOTSUPP and ENOTSUP are one number on Linux, so one row serves both.
  std::optional<Cause> general;
  for (const Row& row : kRows) {
    if (row.errno_value != errno_value) continue;
    if (row.call == call) return row.cause;
    if (!row.call) general = row.cause;
  }
  return general;
}

Error VerbError(VerbCall call, std::string_view parameters, int errno_value) {
  Error error = CallError(ClassOf(call, errno_value), FunctionName(call), parameters, errno_value);
  if (const std::optional<Cause> cause = FindCause(call, errno_value)) {
    error.cause = std::string(cause->cause);
    error.next_step = std::string(cause->next_step);
  }
  return error;
}

}  // namespace verbscope
