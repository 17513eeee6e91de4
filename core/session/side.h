// One side's world for a run: the opened device, its port, the calibrated clock, and the record
// of all that. Made once per run on its thread.
#ifndef VERBSCOPE_CORE_SESSION_SIDE_H_
#define VERBSCOPE_CORE_SESSION_SIDE_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/clock/clock.h"
#include "core/endpoint/connect.h"
#include "core/plan/plan.h"
#include "core/record/record.h"
#include "core/selection/control_path.h"
#include "core/session/context.h"
#include "core/session/device_counters.h"
#include "transports/device.h"

namespace verbscope {

// What a device could not tear down, kept for the report. Any thread may add.
class TeardownNotes : public TeardownReport {
 public:
  void Add(Error error) override;
  std::vector<std::string> Take();

 private:
  std::mutex mutex_;
  std::vector<std::string> notes_;
};

struct SideState {
  std::unique_ptr<TeardownNotes> teardown = std::make_unique<TeardownNotes>();  // outlives device
  LocalSettings settings = {};
  std::unique_ptr<Device> device = {};
  PortInfo port = {};
  Clock clock;
  GidEntry gid = {};         // chosen for the pair
  bool global_route = true;  // packets carry a GRH
  uint32_t path_mtu_bytes = 0;
  WaitMode peer_wait = {};
  bool same_host = false;   // both ends use this host's CPUs
  bool shares_cpu = false;  // both ends poll on this host, on too few CPUs
  SideRecord record = {};
  std::unique_ptr<DeviceCounters> counters = {};  // since the work of the session began

  PathOptions Path() const {
    return {
        .port = port, .gid = gid, .global_route = global_route, .path_mtu_bytes = path_mtu_bytes};
  }
};

// Pins the thread, chooses and opens the device, calibrates the clock. kSetup on failure; `record`
// holds what is known of the host in any case.
Expected<SideState> OpenSide(const SessionContext& context, const LocalSettings& settings,
                             const ControlPath& path, const std::string& role, SideRecord& record);

// Fills the parts of side.record that are known only when the pair is chosen, or at the end.
void DescribePath(SideState& side);
// Sets shares_cpu once both ways of waiting are known; a sentence for the report, or empty.
// `one_sleeps`: one end takes no part in the phases.
std::string ShareCpus(SideState& side, bool same_host, bool one_sleeps);
// At the end: how packets travelled, the clock's drift, what could not be torn down.
void FinishSide(SideState& side, const SessionContext& context);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_SIDE_H_
