// The control interface of an RDMA device: the only place where verbs objects are made, changed or
// destroyed.
//
// Why it exists. Posting, polling and arming are inline functions of <infiniband/verbs.h> which
// call through pointers in public structs, so measuring loops use them directly and run the same
// machine code on every device. The control verbs are exported functions that only work on
// libibverbs' own contexts. They go through this interface, and only transports/ibverbs may call
// them.
//
// Ownership. Every object is an Owned<T>: it destroys itself through its Device, which must outlive
// it. Destroy in reverse order of creation; declare members in order of creation and C++ does it.
// Close() destroys early and reports; the destructor reports failures to the Device's
// TeardownReport instead, because nobody is left to receive an Expected.
//
// Threads. A Device may be used from several threads for different objects. One object is changed
// by one thread at a time. GetCqEvent blocks the calling thread only.
#ifndef VERBSCOPE_TRANSPORTS_DEVICE_H_
#define VERBSCOPE_TRANSPORTS_DEVICE_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "transports/resources.h"

namespace verbscope {

enum class DeviceKind { kHardware, kSoftware };
std::string_view Name(DeviceKind kind);  // "hardware", "software"

// What a device can do. All counts are the device's own limits, 0 = not supported.
struct DeviceLimits {
  uint32_t max_qp_wr = 0;
  uint32_t max_sge = 0;
  uint32_t max_cqe = 0;
  uint32_t max_qp = 0;
  uint32_t max_cq = 0;
  uint32_t max_mr = 0;
  uint32_t max_pd = 0;
  uint32_t max_srq = 0;
  uint64_t max_mr_bytes = 0;
  uint8_t max_rd_atomic_initiator = 0;  // READs and Atomics a QP may have outstanding
  uint8_t max_rd_atomic_responder = 0;  // those it may serve at once
  uint32_t comp_vectors = 0;
  bool atomics = false;
};

struct GidEntry {
  int index = 0;
  std::string value;   // 8 groups of 4 hex digits, as sysfs prints it
  std::string type;    // "IB", "RoCE v1" or "RoCE v2"
  std::string netdev;  // empty when not known
  ibv_gid raw = {};
};

enum class LinkLayer { kInfiniBand, kEthernet, kUnspecified };
std::string_view Name(LinkLayer layer);  // "InfiniBand", "Ethernet", "unspecified"

struct PortInfo {
  int number = 1;
  std::string state;    // "ACTIVE", "DOWN", "INIT", "ARMED"
  bool active = false;  // state == ACTIVE
  LinkLayer link_layer = LinkLayer::kUnspecified;
  uint32_t active_mtu_bytes = 0;
  uint32_t max_mtu_bytes = 0;
  uint64_t max_message_bytes = 0;
  double gbit_per_s = 0;  // signalling rate of the active width and speed; 0 unknown
  uint32_t lid = 0;
  uint32_t sm_lid = 0;
  std::vector<GidEntry> gids;  // non-zero entries only
};

struct DeviceInfo {
  std::string name;  // "mlx5_0", "rxe0"
  DeviceKind kind = DeviceKind::kHardware;
  std::string provider;  // "mlx5", "rxe", …; empty when not known
  std::string firmware;
  // Provider whose deviations a software device imitates on purpose ("rxe"); empty: none.
  std::string imitates;
  int numa_node = -1;  // -1 none or not known
  uint32_t vendor_id = 0;
  uint32_t vendor_part_id = 0;
  std::string link;  // how packets travel, for a software device ("memory"); empty for hardware
  std::string icrc;  // and how strongly they are checked on the way
  DeviceLimits limits;
  std::vector<PortInfo> ports;
};

// One row of the list of devices; a device that cannot be used says why.
struct DeviceSummary {
  std::string name;
  std::optional<DeviceInfo> info;
  std::optional<Error> error;  // set when info is not
};

class Device;

// Owner of one verbs object. Move only. Empty after Close() or a move.
template <class T>
class Owned {
 public:
  Owned() = default;
  Owned(Device* device, T* object) : device_(device), object_(object) {}
  Owned(Owned&& other) noexcept
      : device_(other.device_), object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      Drop();
      device_ = other.device_;
      object_ = std::exchange(other.object_, nullptr);
    }
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { Drop(); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

  // Destroys the object now. On failure (EBUSY: something still uses it) the object stays owned.
  Status Close();

 private:
  void Drop();

  Device* device_ = nullptr;
  T* object_ = nullptr;
};

using Pd = Owned<ibv_pd>;
using Mr = Owned<ibv_mr>;
using CompChannel = Owned<ibv_comp_channel>;
using Cq = Owned<ibv_cq>;
using Qp = Owned<ibv_qp>;
using Srq = Owned<ibv_srq>;

struct BufferOptions {
  size_t bytes = 0;    // 0 is allowed: an empty buffer that needs no registration
  int numa_node = -1;  // -1: wherever the allocating thread runs
  bool huge_pages = false;
};

// Memory that the device chose: shareable for the soft device, huge pages for a real one. Pages are
// touched at allocation, so the first message does not pay for them.
class Buffer {
 public:
  virtual ~Buffer() = default;
  std::span<std::byte> bytes() const { return bytes_; }

 protected:
  std::span<std::byte> bytes_;
};

struct CqOptions {
  uint32_t cqe = 1;                     // entries wanted; the device may give more, never less
  ibv_comp_channel* channel = nullptr;  // null: polled only
  int comp_vector = 0;
  void* context = nullptr;
  bool extended = false;  // with ibv_start_poll, where the device has it
};

struct SrqOptions {
  ibv_pd* pd = nullptr;
  uint32_t max_wr = 1;
  uint32_t max_sge = 1;
};

struct QpOptions {
  ibv_pd* pd = nullptr;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
  ibv_srq* srq = nullptr;   // null: a receive queue of its own
  bool signal_all = false;  // every send completes, whatever its flags
  uint32_t max_send_wr = 1;
  uint32_t max_recv_wr = 1;
  uint32_t max_send_sge = 1;
  uint32_t max_recv_sge = 1;
  uint32_t max_inline_bytes = 0;
  bool extended = false;  // with ibv_wr_*, where the device has it
};

// An asynchronous event of a device (ibv_get_async_event(3)).
struct AsyncEvent {
  std::string text;    // "QP_FATAL on QP 0x11"
  bool fatal = false;  // no traffic can be expected after it: errors, port down, device gone
  friend bool operator==(const AsyncEvent&, const AsyncEvent&) = default;
};
bool IsFatal(ibv_event_type type);
// "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"; "state N" for another.
std::string QpStateName(ibv_qp_state state);

struct CreatedQp {
  Qp qp;
  uint32_t max_inline_bytes = 0;  // what the device gave, at least what was asked
};

// A counter of a device: a value that grows until its width ends.
struct DeviceCounter {
  std::string name;
  uint64_t value = 0;
  friend bool operator==(const DeviceCounter&, const DeviceCounter&) = default;
};
// By how much it grew between two readings. Counters of 32 bits wrap (mlx5's are such): a value
// that fell, both below 2^32, went round once.
int64_t CounterChange(const DeviceCounter& before, const DeviceCounter& after);

// Packets that a device can be asked to lose, among those that it sends.
enum class LossyPacket : uint8_t {
  kRequest,       // SEND, WRITE, READ request, Atomic
  kReadResponse,  // data that a READ asked for
};

// How packets travel, as far as it is known by now: a software device may choose when it connects,
// and learns of the packet check from the packets that come.
struct LinkReport {
  std::string link;                  // as in DeviceInfo
  std::string icrc;                  // likewise
  std::vector<std::string> notices;  // what the user should know, whole sentences
};

// Collects what could not be torn down, in order. A Device has one; it is read at the end of a run.
class TeardownReport {
 public:
  virtual ~TeardownReport() = default;
  virtual void Add(Error error) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  // A fresh reading of one port and its GID table. kSetup when the port does not exist.
  virtual Expected<PortInfo> QueryPort(int port) = 0;

  virtual Expected<Pd> AllocatePd() = 0;
  virtual Expected<std::unique_ptr<Buffer>> AllocateBuffer(const BufferOptions& options) = 0;
  // `access` is a mask of ibv_access_flags. The memory stays the caller's and must outlive the MR.
  virtual Expected<Mr> RegisterMemory(ibv_pd* pd, std::span<std::byte> memory, int access) = 0;
  virtual Expected<CompChannel> CreateCompChannel() = 0;
  virtual Expected<Cq> CreateCq(const CqOptions& options) = 0;
  virtual Expected<CreatedQp> CreateQp(const QpOptions& options) = 0;
  // Wraps ibv_modify_qp. `what` names the transition for the error text ("INIT to RTR").
  virtual Status ModifyQp(ibv_qp* qp, ibv_qp_attr& attributes, int mask, std::string_view what) = 0;
  virtual Expected<ibv_qp_state> QueryQpState(ibv_qp* qp) = 0;

  // Shared receive queues, event moderation and the extended interfaces. A device without them
  // answers kSetup, or null.
  virtual Expected<Srq> CreateSrq(const SrqOptions& options);
  // One SRQ_LIMIT_REACHED event when fewer than `limit` receives are left (ibv_modify_srq(3)).
  virtual Status SetSrqLimit(ibv_srq* srq, uint32_t limit);
  // Events of an armed CQ are held back until `count` completions or `period_us`
  // (ibv_modify_cq(3)).
  virtual Status ModerateCq(ibv_cq* cq, uint16_t count, uint16_t period_us);
  virtual Status ResizeCq(ibv_cq* cq, uint32_t cqe);
  // The same object with ibv_wr_* and ibv_start_poll, or null. Real devices give what was made with
  // `extended` only.
  virtual ibv_qp_ex* Extended(ibv_qp* qp);
  virtual ibv_cq_ex* Extended(ibv_cq* cq);
  // The CPU that takes the interrupts of a completion vector; nothing where the host does not show
  // it, or where there are none.
  virtual std::optional<int> CoreOfVector(int /*comp_vector*/) { return std::nullopt; }
  // Whether a program's polling serves the peer's requests sooner: a software device that works in
  // the polls of its program. On others a side whose memory is read or written may sleep.
  virtual bool ServesInPolls() const { return false; }
  virtual LinkReport ReportLink() { return {info().link, info().icrc, {}}; }
  // What the device and this port have counted so far, in a fixed order; empty when they count
  // nothing. Real devices: since they came up, by whatever program; and the call waits, up to 100
  // ms, for as long as the kernel gives an older reading again.
  virtual std::vector<DeviceCounter> ReadCounters(int /*port*/) { return {}; }

  // The next `count` packets of this kind that this device sends get lost, from now on: for checks
  // of what a retransmission carries. kSetup where LosesOnDemand says no, as real devices do.
  virtual bool LosesOnDemand() const { return false; }
  virtual Status LoseNext(LossyPacket packets, uint32_t count);

  // Largest payload that ibv_post_send takes inline on an RC QP with one SGE, in bytes. Found by
  // creating QPs (no query reports it), few steps, cached. 0: no inline.
  virtual Expected<uint32_t> MaxInlineBytes() = 0;

  // Blocks in a read of the channel until an event came: the CQ of the event, or null when the read
  // was interrupted by a signal (EINTR) or, on a non-blocking channel, has nothing (EAGAIN). Each
  // event returned must be acknowledged by AckCqEvents before its CQ can be destroyed.
  virtual Expected<ibv_cq*> GetCqEvent(ibv_comp_channel* channel) = 0;
  virtual void AckCqEvents(ibv_cq* cq, unsigned count) = 0;
  // One asynchronous event, acknowledged; nullopt at the deadline. Waits on the context's async fd
  // with poll(2).
  virtual Expected<std::optional<AsyncEvent>> NextAsyncEvent(Deadline deadline) = 0;

  // What the peer's device of the same kind needs beside QPN, PSN, LID, GID and MTU. Opaque, at
  // most kMaxBlobBytes; empty for real devices.
  virtual std::vector<std::byte> PeerBlob(ibv_qp* qp) = 0;
  virtual Status AcceptPeerBlob(ibv_qp* qp, std::span<const std::byte> blob) = 0;
  static constexpr size_t kMaxBlobBytes = 4096;

  // Where failed destructions are reported; null (default) ignores them.
  void set_teardown_report(TeardownReport* report) { teardown_report_ = report; }

 protected:
  template <class T>
  friend class Owned;

  // Destroy one object. EBUSY and every other errno come back as an Error that names the object and
  // what still holds it; the object is then still alive.
  virtual Status Destroy(ibv_pd* pd) = 0;
  virtual Status Destroy(ibv_mr* mr) = 0;
  virtual Status Destroy(ibv_comp_channel* channel) = 0;
  virtual Status Destroy(ibv_cq* cq) = 0;
  virtual Status Destroy(ibv_qp* qp) = 0;
  virtual Status Destroy(ibv_srq* srq);

  TeardownReport* teardown_report_ = nullptr;
};

// How the peer is reached, for a device that has a choice of addresses.
struct PeerReach {
  bool same_host = true;           // the control connection does not leave this host
  std::string local_address = {};  // of the control connection: numeric, may carry a zone
};

// A family of devices: all of libibverbs' devices, later the soft device.
class DeviceProvider {
 public:
  virtual ~DeviceProvider() = default;
  // All devices of this kind, usable or not, in the system's order. Fails only when the listing
  // itself fails (no kernel support at all is an empty list).
  virtual Expected<std::vector<DeviceSummary>> List() = 0;
  // The same list for the choice of `device`, the value of --device: a device string with settings
  // ("soft:drop=1%") stands in it under just that name. kUsage when the string is not understood.
  virtual Expected<std::vector<DeviceSummary>> ListFor(const std::string& /*device*/) {
    return List();
  }
  // The verbs objects of every device of this kind that the kernel knows of, a row per device.
  // Fails when the kernel cannot be asked. A device that is all in this process has none to list.
  virtual Expected<std::vector<DeviceResources>> Resources() {
    return std::vector<DeviceResources>();
  }
  // kSetup when there is no such device, it cannot be opened, or it is refused (iWARP).
  virtual Expected<std::unique_ptr<Device>> Open(const std::string& name) = 0;
  // The same for a session with a peer.
  virtual Expected<std::unique_ptr<Device>> OpenFor(const std::string& name,
                                                    const PeerReach& /*reach*/) {
    return Open(name);
  }
};

template <class T>
Status Owned<T>::Close() {
  if (object_ == nullptr) return {};
  Status status = device_->Destroy(object_);
  if (status) object_ = nullptr;
  return status;
}

template <class T>
void Owned<T>::Drop() {
  Status status = Close();
  if (!status && device_->teardown_report_ != nullptr) {
    device_->teardown_report_->Add(std::move(status.error()));
  }
  object_ = nullptr;
}

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_DEVICE_H_
