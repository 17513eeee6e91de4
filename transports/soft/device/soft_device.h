// The software RDMA device: RoCEv2 RC in user space, for every machine. Implements
// transports/device.h, which has the contract of every function here; limits, failures and timing
// are as the SoftOptions say.
//
// Owned by whoever opened it; must outlive all its objects. Threads as in the contract: control
// calls may come from several threads, the data path takes the device's spin lock by itself.
//
// Files: soft_device.cc opening, memory, port; soft_queues.cc CQs, QPs, SRQs, channels;
// soft_connect.cc states and peers; soft_events.cc events; soft_teardown.cc destruction. The data
// path is data_path.cc, progress is core.cc and helper.cc.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_SOFT_DEVICE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_SOFT_DEVICE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "transports/device.h"
#include "transports/soft/device/core.h"
#include "transports/soft/device/helper.h"
#include "transports/soft/device/object_table.h"
#include "transports/soft/device/objects.h"
#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

class SoftDevice final : public Device {
 public:
  // Fails with kSetup when the system has no room (descriptors, threads) or a hook says so.
  static Expected<std::unique_ptr<SoftDevice>> Open(const SoftOptions& options,
                                                    std::string_view firmware);
  ~SoftDevice() override;
  SoftDevice(const SoftDevice&) = delete;
  SoftDevice& operator=(const SoftDevice&) = delete;

  const DeviceInfo& info() const override { return info_; }
  Expected<PortInfo> QueryPort(int port) override;
  Expected<Pd> AllocatePd() override;
  Expected<std::unique_ptr<Buffer>> AllocateBuffer(const BufferOptions& options) override;
  Expected<Mr> RegisterMemory(ibv_pd* pd, std::span<std::byte> memory, int access) override;
  Expected<CompChannel> CreateCompChannel() override;
  Expected<Cq> CreateCq(const CqOptions& options) override;
  Expected<CreatedQp> CreateQp(const verbscope::QpOptions& options) override;
  Expected<Srq> CreateSrq(const SrqOptions& options) override;
  Status SetSrqLimit(ibv_srq* srq, uint32_t limit) override;
  Status ModerateCq(ibv_cq* cq, uint16_t count, uint16_t period_us) override;
  Status ResizeCq(ibv_cq* cq, uint32_t cqe) override;
  ibv_qp_ex* Extended(ibv_qp* qp) override { return &Of(qp); }
  ibv_cq_ex* Extended(ibv_cq* cq) override { return &Of(cq); }
  Status ModifyQp(ibv_qp* qp, ibv_qp_attr& attributes, int mask, std::string_view what) override;
  Expected<ibv_qp_state> QueryQpState(ibv_qp* qp) override;
  Expected<uint32_t> MaxInlineBytes() override;
  Expected<ibv_cq*> GetCqEvent(ibv_comp_channel* channel) override;
  void AckCqEvents(ibv_cq* cq, unsigned count) override;
  Expected<std::optional<AsyncEvent>> NextAsyncEvent(Deadline deadline) override;
  std::vector<std::byte> PeerBlob(ibv_qp* qp) override;
  Status AcceptPeerBlob(ibv_qp* qp, std::span<const std::byte> blob) override;
  std::vector<DeviceCounter> ReadCounters(int port) override;
  bool ServesInPolls() const override { return true; }
  bool LosesOnDemand() const override { return true; }
  Status LoseNext(LossyPacket packets, uint32_t count) override;
  LinkReport ReportLink() override;

 protected:
  Status Destroy(ibv_pd* pd) override;
  Status Destroy(ibv_mr* mr) override;
  Status Destroy(ibv_comp_channel* channel) override;
  Status Destroy(ibv_cq* cq) override;
  Status Destroy(ibv_qp* qp) override;
  Status Destroy(ibv_srq* srq) override;

 private:
  SoftDevice(const SoftOptions& options, std::string_view firmware);

  // The errno that a hook wants this call to fail with, as an Error.
  Status Hooked(std::string_view call, std::string_view parameter);
  uint32_t NewHandle() { return next_handle_++; }
  bool Has(Defect defect) const { return options_.defects.Has(defect); }
  // What the engine compares: with Defect::kNoPd all are the same.
  uint32_t PdNumber(const ibv_pd& pd) const { return Has(Defect::kNoPd) ? 0 : pd.handle; }
  // The rights that a region of `access` gives to peers and to its program.
  uint32_t GrantedAccess(std::span<std::byte> memory, int access) const;
  const GidSlot* FindGid(int index) const;
  // A path from the QP to the peer it was told of.
  Status ConnectPath(SoftQp& qp, const ibv_ah_attr& path, uint32_t peer_qpn);
  // Mutex held. A CQ that nothing uses goes.
  void Remove(SoftCq& cq);
  // Mutex held. What was abandoned and has lost its last user goes.
  void RemoveAbandoned();

  const SoftOptions options_;
  std::vector<GidSlot> gids_;
  DeviceInfo info_;
  std::unique_ptr<SoftCore> core_;
  std::unique_ptr<Helper> helper_;

  mutable std::mutex mutex_;  // guards the tables; taken before the core's lock
  uint32_t next_handle_ = 1;
  uint64_t registered_bytes_ = 0;
  ObjectTable<SoftPd> pds_;
  ObjectTable<SoftMr> mrs_;
  ObjectTable<SoftChannel> channels_;
  ObjectTable<SoftCq> cqs_;
  ObjectTable<SoftSrq> srqs_;
  ObjectTable<SoftQp> qps_;
  // Destroyed while they were in use, as far as the program knows (Defect::kBusyDestroy).
  std::vector<SoftPd*> abandoned_pds_;
  std::vector<SoftChannel*> abandoned_channels_;
  std::vector<SoftCq*> abandoned_cqs_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_SOFT_DEVICE_H_
