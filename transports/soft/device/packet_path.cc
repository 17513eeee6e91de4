#include "transports/soft/device/packet_path.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace verbscope::soft {
namespace {

// Paths of the capture files open in this process.
struct OpenCaptures {
  std::mutex mutex;
  std::set<std::string> paths;
};

OpenCaptures& Captures() {
  static OpenCaptures captures;
  return captures;
}

}  // namespace

std::unique_ptr<CaptureClaim> CaptureClaim::Take(const std::string& path) {
  const std::lock_guard lock(Captures().mutex);
  if (!Captures().paths.insert(path).second) return nullptr;
  return std::unique_ptr<CaptureClaim>(new CaptureClaim(path));
}

CaptureClaim::~CaptureClaim() {
  const std::lock_guard lock(Captures().mutex);
  Captures().paths.erase(path_);
}

Expected<std::unique_ptr<PacketPath>> PacketPath::Open(const SoftOptions& options, DeviceLink& link,
                                                       uint64_t (*clock)()) {
  std::unique_ptr<PacketPath> path(new PacketPath(link));
  RawPacketSink* raw = &link;
  if (!options.pcap_path.empty()) path->claim_ = CaptureClaim::Take(options.pcap_path);
  if (path->claim_ != nullptr) {
    Expected<std::unique_ptr<CaptureFile>> file = CaptureFile::Open(options.pcap_path);
    if (!file) return Fail(std::move(file.error()));
    path->file_ = std::move(*file);
    path->capture_sink_ = std::make_unique<CaptureSink>(*path->file_, link, link, link);
    path->sink_ = path->capture_sink_.get();
    raw = path->capture_sink_.get();
  }
  if (options.fault.Active()) {
    path->policy_ = std::make_unique<FaultPolicy>(options.fault);
    path->policy_->SetClock(clock);
    path->fault_sink_ = std::make_unique<FaultSink>(
        *path->policy_, path->capture_sink_ != nullptr ? *path->sink_ : link, *raw, link);
    path->sink_ = path->fault_sink_.get();
  }
  return path;
}

void PacketPath::SetEngine(PacketReceiver& engine, Counters& counters) {
  receiver_ = &engine;
  if (policy_ != nullptr) {
    fault_receiver_ = std::make_unique<FaultReceiver>(*policy_, engine, counters);
    receiver_ = fault_receiver_.get();
  }
  if (file_ != nullptr) {
    capture_receiver_ = std::make_unique<CaptureReceiver>(*file_, *receiver_, link_);
    receiver_ = capture_receiver_.get();
  }
}

void PacketPath::Tick(uint64_t now_ns) {
  if (fault_sink_ != nullptr) fault_sink_->Tick(now_ns);
  if (fault_receiver_ != nullptr) fault_receiver_->Tick(now_ns);
  if (file_ != nullptr) file_->Tick();
}

std::optional<uint64_t> PacketPath::NextTimer() const {
  if (policy_ == nullptr) return std::nullopt;
  const std::optional<uint64_t> out = fault_sink_->NextRelease();
  const std::optional<uint64_t> in = fault_receiver_->NextRelease();
  if (out && in) return std::min(*out, *in);
  return out ? out : in;
}

}  // namespace verbscope::soft
