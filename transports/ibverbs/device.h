// One real device, opened through libibverbs: implements transports/device.h, which has the
// contract of every function here.
//
// What it adds to the library: errors that name parameters, cause and next step; checks before the
// transition to RTR; the inline limit; a count of events taken and acknowledged per CQ; and a watch
// over destructions that would wait for ever.
//
// Owned by whoever opened it; must outlive all its objects. Threads as in the contract.
// The set-up half is in device.cc and device_objects.cc, the tear-down half in device_teardown.cc.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_DEVICE_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_DEVICE_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "transports/common/system_files.h"
#include "transports/device.h"
#include "transports/ibverbs/causes.h"
#include "transports/ibverbs/live_objects.h"
#include "transports/ibverbs/teardown_watchdog.h"
#include "transports/ibverbs/verbs_api.h"

namespace verbscope {

struct IbverbsOptions {
  SystemPaths paths;
  // How long a destruction may take, and what happens then.
  TeardownWatchdog::Options watchdog;
};

class IbverbsDevice final : public Device {
 public:
  // Opens and queries `device`, which must be from a list that is not yet freed. kSetup when it is
  // refused (iWARP), its device node cannot be opened, or a query that everything needs fails.
  static Expected<std::unique_ptr<IbverbsDevice>> Open(VerbsApi& verbs, ibv_device* device,
                                                       const IbverbsOptions& options);
  ~IbverbsDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Expected<PortInfo> QueryPort(int port) override;

  Expected<Pd> AllocatePd() override;
  Expected<std::unique_ptr<Buffer>> AllocateBuffer(const BufferOptions& options) override;
  Expected<Mr> RegisterMemory(ibv_pd* pd, std::span<std::byte> memory, int access) override;
  Expected<CompChannel> CreateCompChannel() override;
  Expected<Cq> CreateCq(const CqOptions& options) override;
  ibv_qp_ex* Extended(ibv_qp* qp) override;
  ibv_cq_ex* Extended(ibv_cq* cq) override;
  Status ModerateCq(ibv_cq* cq, uint16_t count, uint16_t period_us) override;
  Expected<Srq> CreateSrq(const SrqOptions& options) override;
  Status SetSrqLimit(ibv_srq* srq, uint32_t limit) override;
  Expected<CreatedQp> CreateQp(const QpOptions& options) override;
  Status ModifyQp(ibv_qp* qp, ibv_qp_attr& attributes, int mask, std::string_view what) override;
  Expected<ibv_qp_state> QueryQpState(ibv_qp* qp) override;
  Expected<uint32_t> MaxInlineBytes() override;
  std::optional<int> CoreOfVector(int comp_vector) override;
  std::vector<DeviceCounter> ReadCounters(int port) override;

  Expected<ibv_cq*> GetCqEvent(ibv_comp_channel* channel) override;
  void AckCqEvents(ibv_cq* cq, unsigned count) override;
  Expected<std::optional<AsyncEvent>> NextAsyncEvent(Deadline deadline) override;

  // A real device needs nothing from its peer, and ignores what a soft device offers.
  std::vector<std::byte> PeerBlob(ibv_qp* qp) override;
  Status AcceptPeerBlob(ibv_qp* qp, std::span<const std::byte> blob) override;

 protected:
  Status Destroy(ibv_pd* pd) override;
  Status Destroy(ibv_mr* mr) override;
  Status Destroy(ibv_comp_channel* channel) override;
  Status Destroy(ibv_cq* cq) override;
  Status Destroy(ibv_qp* qp) override;
  Status Destroy(ibv_srq* srq) override;

 private:
  IbverbsDevice(VerbsApi& verbs, const IbverbsOptions& options);

  Status Query(ibv_device* device);
  // The error of a verb on this device; `parameters` may be empty.
  Error Failed(VerbCall call, std::string_view parameters, int errno_value) const;
  // The same for a verb that pins about `need_bytes` for `what`, explained when it is ENOMEM.
  Error FailedToPin(VerbCall call, std::string_view parameters, int errno_value,
                    uint64_t need_bytes, std::string_view what) const;
  Status CheckRtr(ibv_qp* qp, const ibv_qp_attr& attributes);
  // Objects with the extended interfaces; null with errno where the device does not have them.
  ibv_cq* MakeExtendedCq(const CqOptions& options);
  ibv_qp* MakeExtendedQp(const QpOptions& options, ibv_qp_init_attr& attributes);
  // One QP with `options`, not yet owned or recorded.
  Expected<ibv_qp*> MakeQp(const QpOptions& options, ibv_qp_init_attr& attributes);
  Expected<uint32_t> TryInline(ibv_pd* pd, ibv_cq* cq, uint32_t bytes);
  Expected<uint32_t> ProbeInline();
  // Acknowledges what the program left owing and reports it: a bug of ours, but no reason to hang.
  void PayOwedEvents(ibv_cq* cq, EventCount& events);
  // Runs a destroying call under the watchdog and makes its Error.
  template <class T>
  Status Destroyed(T* object, VerbCall call, const std::string& state, int (VerbsApi::*verb)(T*));
  void Report(Error error);

  VerbsApi& verbs_;
  const SystemPaths paths_;
  ibv_context* context_ = nullptr;
  DeviceInfo info_;
  LiveObjects live_;
  TeardownWatchdog watchdog_;
  std::mutex extended_mutex_;
  // Made with the extended interfaces; guarded by extended_mutex_.
  std::set<ibv_cq*> extended_cqs_;
  std::set<ibv_qp*> extended_qps_;
  std::mutex inline_mutex_;
  std::optional<uint32_t> max_inline_bytes_;  // guarded by inline_mutex_
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_DEVICE_H_
