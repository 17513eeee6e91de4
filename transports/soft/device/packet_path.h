// What stands between engine and link: nothing in normal use, the fault policy and the capture when
// they are asked for. Decided once, when the device is opened.
//
//   engine → losses → faults → capture → link → capture → faults → engine
//
// Losses on demand (Lose) come in when they are asked for.
//
// Owned by the core; used with the device's lock held, except Open.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_PACKET_PATH_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_PACKET_PATH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "transports/soft/device/device_link.h"
#include "transports/soft/engine/counters.h"
#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/capture.h"
#include "transports/soft/link/capture_file.h"
#include "transports/soft/link/fault_policy.h"
#include "transports/soft/link/fault_receiver.h"
#include "transports/soft/link/fault_sink.h"
#include "transports/soft/link/loss_sink.h"
#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

// A capture file that is open in this process. Two devices of one process that name the same file
// (both ends of a run in one process) write it once: the first sees every packet between them.
class CaptureClaim {
 public:
  // Null when another device of this process writes the file already.
  static std::unique_ptr<CaptureClaim> Take(const std::string& path);
  ~CaptureClaim();
  CaptureClaim(const CaptureClaim&) = delete;
  CaptureClaim& operator=(const CaptureClaim&) = delete;

 private:
  explicit CaptureClaim(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

class PacketPath {
 public:
  // `clock`: what Tick is told. Fails when the capture file cannot be made.
  static Expected<std::unique_ptr<PacketPath>> Open(const SoftOptions& options, DeviceLink& link,
                                                    uint64_t (*clock)());

  // Where the engine sends, and where the link delivers once the engine is known. `counters`: of
  // what is lost on the way in.
  PacketSink& sink() { return loss_sink_ != nullptr ? *loss_sink_ : *sink_; }
  // After the link has turned to what it has of UDP or memory: sink is another.
  void UseLink() {
    if (capture_sink_ == nullptr && fault_sink_ == nullptr) sink_ = &link_.sink();
    if (loss_sink_ != nullptr) loss_sink_->SetNext(*sink_);
  }
  // The next `count` packets of this class that are sent get lost; sink is another after the first
  // call.
  void Lose(FaultClass packets, uint32_t count) {
    if (loss_sink_ == nullptr) loss_sink_ = std::make_unique<LossSink>(*sink_);
    loss_sink_->Lose(packets, count);
  }
  void SetEngine(PacketReceiver& engine, Counters& counters);
  PacketReceiver& receiver() { return *receiver_; }

  // Whether Tick does anything at all.
  bool timed() const { return policy_ != nullptr || file_ != nullptr; }
  void Tick(uint64_t now_ns);
  std::optional<uint64_t> NextTimer() const;
  FaultCounts faults() const { return policy_ != nullptr ? policy_->counts() : FaultCounts{}; }

 private:
  explicit PacketPath(DeviceLink& link) : link_(link), sink_(&link.sink()) {}

  DeviceLink& link_;
  PacketSink* sink_;
  PacketReceiver* receiver_ = nullptr;
  std::unique_ptr<CaptureClaim> claim_;
  std::unique_ptr<CaptureFile> file_;
  std::unique_ptr<CaptureSink> capture_sink_;
  std::unique_ptr<FaultPolicy> policy_;
  std::unique_ptr<FaultSink> fault_sink_;
  std::unique_ptr<LossSink> loss_sink_;
  std::unique_ptr<FaultReceiver> fault_receiver_;
  std::unique_ptr<CaptureReceiver> capture_receiver_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_PACKET_PATH_H_
