// What `event-vs-poll` runs, and in which order: ways of waiting times loads times repeats, each
// of which is a plan of send-lat or send-bw. One place for the session that runs them, for the
// plan that must know the time before the run, and for the summary.
//
// Pure functions of the plan; any thread.
#ifndef VERBSCOPE_CORE_PLAN_MODE_PLAN_H_
#define VERBSCOPE_CORE_PLAN_MODE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"

namespace verbscope {

inline constexpr std::string_view kEventVsPoll = "event-vs-poll";

// What is compared: a way of waiting, on both sides alike.
struct Mode {
  WaitMode wait;
  std::optional<Moderation> moderation;  // of event mode
  friend bool operator==(const Mode&, const Mode&) = default;
};
std::string ToText(const Mode& mode);  // "hybrid:20us", "event 16:8us"
// "busy" is the reference that others are compared with.
bool IsReference(const Mode& mode);

enum class LoadKind {
  kClosed,  // one message at a time: a ping-pong
  kOpen,    // at times of its own: rate_per_s, or a share of what busy polling sustains
  kStream,  // as many as pass
};
struct Load {
  LoadKind kind = LoadKind::kClosed;
  double rate_per_s = 0;          // kOpen; 0: not known before busy polling was measured
  double busy_share_percent = 0;  // kOpen
  friend bool operator==(const Load&, const Load&) = default;
};

// "busy,event,hybrid:20us": distinct ways of waiting. kUsage otherwise.
Expected<std::vector<WaitMode>> ParseModes(std::string_view text);
// "1000,10K,80%" into rates and shares of the busy rate. kUsage otherwise.
Status ParseLoads(std::string_view text, Plan& plan);
// "16:8us,64:32us".
Expected<std::vector<Moderation>> ParseModerations(std::string_view text);
// A rate in messages per second; K and M are thousands and millions.
Expected<double> ParseRatePerS(std::string_view text);

// Those of the plan, or of a plan that asks for none: busy, event, hybrid:20us; 1,000/s, 10,000/s
// and 80 % of what busy polling sustains.
void SetDefaultModes(Plan& plan);
void SetDefaultLoads(Plan& plan);

// In the order of the tables: closed loop, rates ascending, shares ascending, streaming.
std::vector<Load> LoadsOf(const Plan& plan);
// In the order given, then event mode with each moderation.
std::vector<Mode> ModesOf(const Plan& plan);

struct ModePoint {
  uint32_t run = 0;
  size_t load = 0;  // of LoadsOf
  size_t mode = 0;  // of ModesOf
};
// Modes lie side by side within a load and take turns from repeat to repeat (A B C, C B A, …), so
// that what drifts meanwhile touches all of them alike.
std::vector<ModePoint> ModePointsOf(const Plan& plan);

// The plan of one point. `load.rate_per_s` must be known of an open load.
Plan PlanOfPoint(const Plan& plan, const Load& load, const Mode& mode);
// What measures the rate that busy polling sustains: an open loop that is offered more.
Plan PlanOfBusyRate(const Plan& plan);

// Why a mode cannot carry a load; nothing: it can.
std::optional<Error> Unsuited(const Plan& plan, const Load& load, const Mode& mode);

// Whether the options of the command go together; kUsage.
Status CheckModeOptions(const Plan& plan);

// Of the whole command, in ns: phases, connections and what is measured before. It saturates.
int64_t EventVsPollPlannedNs(const Plan& plan);
// How long each side watches for gaps of its own host.
int64_t JitterWatchNs(const Plan& plan);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_PLAN_MODE_PLAN_H_
