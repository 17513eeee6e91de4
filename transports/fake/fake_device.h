// A device that exists only in this process, for unit tests of loops, waiting, endpoints and
// sessions. FakeFabric (fake_fabric.h) joins several of them and holds the test's hooks.
//
// What it is strict about, so that tests find what hardware would punish only now and then:
// required attribute masks of each QP transition, addresses and packet sequence numbers of both
// ends, keys and access flags, queue slots (freed only when a completion that covers them is
// polled), completion fields that verbs leaves undefined (filled with misleading values),
// acknowledging of events, order of destruction (EBUSY). Posting before RTS is EINVAL; posting in
// ERR flushes. What it does not have: time, retries, MTU segmentation, PD checks, SRQ, UD,
// ibv_wr_*, CQ_EX.
//
// Threads: as Device says; the settings and FailControlCall may be used from any thread too.
#ifndef VERBSCOPE_TRANSPORTS_FAKE_FAKE_DEVICE_H_
#define VERBSCOPE_TRANSPORTS_FAKE_FAKE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transports/device.h"
#include "transports/fake/fake_fabric.h"

namespace verbscope {

// Which control call fails. Control calls are all of Device's that return Expected or Status, but
// not Destroy, GetCqEvent and NextAsyncEvent.
struct FakeFault {
  int nth = 0;  // 1: the next one that counts; 0: none
  int errno_value = 0;
  std::string_view call;  // counts only this call ("ibv_modify_qp"); empty: all. A literal
};

struct FakeDeviceOptions {
  DeviceInfo info;  // presented as it is; limits are enforced
  uint32_t max_inline_bytes = 0;
  std::optional<Error> unusable;  // the device is listed with this error and cannot be opened
  FakeFault fault;                // armed when the device is opened
};

// A device as they mostly are: one active Ethernet port with MTU 1024, GID index 0 RoCE v1 and
// index 1 RoCE v2 of 10.0.0.`host`, generous limits, 236 bytes inline. `host` from 1 to 254 tells
// devices of one fabric apart.
FakeDeviceOptions DefaultFakeDevice(std::string name = "fake0", uint8_t host = 1);

class FakeDevice : public Device {
 public:
  FakeDevice(std::shared_ptr<FakeFabric> fabric, FakeDeviceOptions options);
  ~FakeDevice() override;
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  // Settings of a test. SetPort changes what QueryPort answers from now on, not info().
  void SetPort(const PortInfo& port);
  void FailControlCall(const FakeFault& fault);
  // The next Destroy fails with this errno; the object stays alive.
  void FailNextDestroy(int errno_value);
  // Control calls so far: the number of faults a sweep over all of them has to try.
  int control_calls() const;

  const DeviceInfo& info() const override { return options_.info; }
  Expected<PortInfo> QueryPort(int port) override;
  Expected<Pd> AllocatePd() override;
  Expected<std::unique_ptr<Buffer>> AllocateBuffer(const BufferOptions& options) override;
  Expected<Mr> RegisterMemory(ibv_pd* pd, std::span<std::byte> memory, int access) override;
  Expected<CompChannel> CreateCompChannel() override;
  Expected<Cq> CreateCq(const CqOptions& options) override;
  Expected<CreatedQp> CreateQp(const QpOptions& options) override;
  Status ModifyQp(ibv_qp* qp, ibv_qp_attr& attributes, int mask, std::string_view what) override;
  Expected<ibv_qp_state> QueryQpState(ibv_qp* qp) override;
  Expected<uint32_t> MaxInlineBytes() override;
  Expected<ibv_cq*> GetCqEvent(ibv_comp_channel* channel) override;
  void AckCqEvents(ibv_cq* cq, unsigned count) override;
  Expected<std::optional<AsyncEvent>> NextAsyncEvent(Deadline deadline) override;
  std::vector<std::byte> PeerBlob(ibv_qp* qp) override;  // the four letters "fake"
  Status AcceptPeerBlob(ibv_qp* qp, std::span<const std::byte> blob) override;

 protected:
  Status Destroy(ibv_pd* pd) override;
  Status Destroy(ibv_mr* mr) override;
  Status Destroy(ibv_comp_channel* channel) override;
  Status Destroy(ibv_cq* cq) override;
  Status Destroy(ibv_qp* qp) override;

 private:
  std::optional<Error> Injected(std::string_view call, std::string_view parameter);
  std::optional<Error> InjectedDestroy(std::string_view call);

  const std::shared_ptr<FakeFabric> fabric_;
  const FakeDeviceOptions options_;
  const std::shared_ptr<fake::Context> context_;  // the fabric keeps it too
  mutable std::mutex settings_mutex_;  // guards the rest; never held together with the fabric's
  std::vector<PortInfo> ports_;
  FakeFault fault_;
  int destroy_errno_ = 0;
  int control_calls_ = 0;
};

// Presents a fixed list of devices, as a host does. Owned by the test; Open makes FakeDevices.
class FakeProvider : public DeviceProvider {
 public:
  FakeProvider(std::shared_ptr<FakeFabric> fabric, std::vector<FakeDeviceOptions> devices)
      : fabric_(std::move(fabric)), devices_(std::move(devices)) {}

  // List fails with this error from now on.
  void FailList(Error error) { list_error_ = std::move(error); }

  Expected<std::vector<DeviceSummary>> List() override;
  Expected<std::unique_ptr<Device>> Open(const std::string& name) override;

 private:
  const std::shared_ptr<FakeFabric> fabric_;
  const std::vector<FakeDeviceOptions> devices_;
  std::optional<Error> list_error_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_FAKE_FAKE_DEVICE_H_
