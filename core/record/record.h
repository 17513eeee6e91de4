// What was seen. Plain data, complete: reporters read a Record and nothing else, they never measure
// and never ask. A Record is filled by one thread and then only read; copy it freely.
//
// An optional without value is something unknown, or with too few samples to state; it is null in
// JSON. Units are in the names. Doubles are finite.
#ifndef VERBSCOPE_CORE_RECORD_RECORD_H_
#define VERBSCOPE_CORE_RECORD_RECORD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"
#include "core/record/comparison.h"
#include "core/record/gate_row.h"
#include "core/record/point.h"
#include "core/record/preflight.h"
#include "transports/device.h"
#include "transports/resources.h"

namespace verbscope {

struct HistogramBucket {
  int64_t from_ns = 0;  // inclusive
  int64_t to_ns = 0;    // inclusive
  uint64_t count = 0;
  friend bool operator==(const HistogramBucket&, const HistogramBucket&) = default;
};

struct Interval95 {
  int64_t low_ns = 0;
  int64_t high_ns = 0;
  friend bool operator==(const Interval95&, const Interval95&) = default;
};

struct PercentileRow {
  std::string percent;  // "50", "99.9": the key in JSON
  std::optional<int64_t> value_ns;
  std::optional<Interval95> interval;  // two-sided 95 % by rank
  // As many independent samples would leave it as uncertain as these do, which come in bursts;
  // absent: too few blocks of time to tell, or no value.
  std::optional<uint64_t> effective_samples = {};
  friend bool operator==(const PercentileRow&, const PercentileRow&) = default;
};

// The samples of a stretch of time, in the order of time. A result has at most 64 of them.
struct LatencyBlock {
  double from_s = 0;
  double to_s = 0;
  std::string hdr_v2;
  friend bool operator==(const LatencyBlock&, const LatencyBlock&) = default;
};

struct LatencyMetrics {
  // "half_round_trip", "round_trip", "response_time", "call", "after_receive"
  std::string definition;
  // "recv_completion", "payload_poll", "send_completion", "return"
  std::string ended_by;
  uint64_t samples = 0;
  std::optional<int64_t> min_ns;
  std::optional<double> mean_ns;
  std::optional<double> stdev_ns;
  std::optional<int64_t> max_ns;
  std::vector<PercentileRow> percentiles;
  int significant_digits = 3;
  std::vector<HistogramBucket> buckets;   // non-empty ones, ascending
  std::string hdr_v2;                     // the same, for HdrHistogram tools
  std::vector<LatencyBlock> blocks = {};  // the same again, cut by time; empty: a single stretch
};

struct BandwidthMetrics {
  uint64_t bytes = 0;
  uint64_t messages = 0;
  double seconds = 0;  // first post to last completion
  std::optional<double> gbit_per_s;
  std::optional<double> msg_per_s;
};

struct LoadMetrics {
  std::optional<double> offered_per_s;  // null: closed loop
  std::optional<double> achieved_per_s;
  std::optional<uint64_t> late_sends;
};

struct CpuMetrics {
  double cpu_s = 0;                   // of the measuring threads, one or more
  std::optional<double> utilization;  // cpu_s over the measured time, 0 … 1 per thread
  std::optional<double> us_per_message;
  uint64_t voluntary_switches = 0;
  uint64_t involuntary_switches = 0;
  uint64_t events = 0;
  uint64_t empty_wakeups = 0;
  uint64_t lost_wakeups = 0;
  std::optional<double> completions_per_event;
  // Of the whole process, helper threads and, in a loopback run, the other side included.
  std::optional<double> process_cpu_s = {};
  // How long the measuring thread was ready to run and another had the CPU: the scheduler's part of
  // every wake-up.
  std::optional<double> run_delay_s = {};
  std::optional<int> core = {};         // CPU that the measuring thread was on at the end
  std::optional<int> vector_core = {};  // CPU that takes the completion vector's interrupts
};

// One request that met no receive until its retries were used up.
struct RnrAttempt {
  uint32_t rnr_retry = 0;
  int64_t predicted_ns = 0;                      // the least: so many waits of one timer
  std::optional<int64_t> time_to_error_ns = {};  // from the post; null: the error never came
  std::optional<uint64_t> naks = {};             // received; null: the device does not count
  friend bool operator==(const RnrAttempt&, const RnrAttempt&) = default;
};

// Receiver not ready, of the RNR timer point.timer_code.
struct RnrMetrics {
  int64_t nominal_ns = 0;                   // of one wait, by the specification: the least
  std::optional<int64_t> measured_ns = {};  // of one wait: time to the error over rnr_retry
  std::optional<double> ratio = {};         // measured_ns / nominal_ns
  std::vector<RnrAttempt> attempts = {};
};

// What calls of one verb cost their thread. Times include the clock's own, overhead_ns.
struct CostMetrics {
  uint64_t calls = 0;          // timed
  uint64_t per_call_work = 1;  // requests, completions or events that one call is for
  std::optional<double> ns_per_request = {};  // median of a call over per_call_work
  // Of the calling thread; null: not counted on this system.
  std::optional<bool> enters_kernel = {};
  std::optional<uint64_t> syscalls_per_call = {};  // median; null: not counted, or not to the end
  std::optional<uint64_t> syscalls_at_most = {};   // of one of the counted calls; null: likewise
  std::optional<double> overhead_ns = {};          // median of no call between both clock reads
  friend bool operator==(const CostMetrics&, const CostMetrics&) = default;
};

// Several completion queues, or several threads at one (command cq-scale).
struct ScaleMetrics {
  uint32_t threads = 1;
  uint32_t cqe = 1;    // entries of the smallest of the CQs: the device may give more than asked
  uint32_t cores = 1;  // CPUs on which the threads could run
  std::optional<double> speedup = {};             // message rate over that of one thread at one CQ
  std::optional<double> cpu_us_per_message = {};  // of all threads
  std::optional<double> completions_per_poll = {};  // of the polls that found one or more
  friend bool operator==(const ScaleMetrics&, const ScaleMetrics&) = default;
};

// A completion queue and more completions than it has room for, or just not more (cq-overrun).
struct OverrunMetrics {
  uint32_t cqe = 1;            // entries of the CQ
  uint64_t outstanding = 0;    // requests that were to complete into it
  uint64_t most_unpolled = 0;  // of them at one time: above cqe the CQ must overrun
  uint64_t delivered = 0;      // polled with SUCCESS
  uint64_t flushed = 0;        // polled with an error
  uint64_t lost = 0;           // never came
  std::string event = {};      // the first CQ_ERR of the device; empty: none
  std::string qp_state = {};
  std::optional<bool> cq_usable = {};  // a request after the overrun completed; null: not tried
  friend bool operator==(const OverrunMetrics&, const OverrunMetrics&) = default;
};

struct Metrics {
  std::optional<LatencyMetrics> latency;
  std::optional<LatencyMetrics> warmup;  // the warm-up's own latency, kept apart
  std::optional<BandwidthMetrics> bandwidth;
  std::optional<BandwidthMetrics> warmup_bandwidth;  // the warm-up's own, kept apart
  std::optional<LoadMetrics> load;
  std::optional<CpuMetrics> cpu;
  std::optional<RnrMetrics> rnr;
  std::optional<CostMetrics> cost;
  std::optional<ScaleMetrics> scale;
  std::optional<OverrunMetrics> overrun;
  std::map<std::string, int64_t> counters;  // device counters, change over the run
};

struct IntervalRow {
  double from_s = 0;
  double to_s = 0;
  uint64_t messages = 0;
  std::optional<int64_t> p50_ns;
  std::optional<int64_t> p99_ns;
  std::optional<int64_t> max_ns;
  std::optional<double> gbit_per_s;
};

struct Result {
  Point point;
  std::string side = "requester";  // or "responder"
  uint32_t run = 0;
  std::optional<std::string> set = {};  // command `ab` only: "a" or "b"
  bool complete = true;                 // false: the run broke, these are the samples until then
  Metrics metrics;
  std::vector<IntervalRow> intervals;
};

struct ClockRecord {
  std::string source;  // "tsc", "cntvct", "clock_gettime"
  bool invariant = false;
  std::optional<double> hz;
  std::optional<double> drift_ppm;
  std::optional<double> resolution_ns;
  std::optional<double> overhead_ns;
};

// What the host alone does to a thread that never rests: how long it did not run although it wanted
// to. No wait can be shorter than that; the tail of a latency that is not longer is the host's.
struct JitterFloor {
  double seconds = 0;  // watched for
  int64_t max_gap_ns = 0;
  double gaps_over_1us_per_s = 0;
  double gaps_over_10us_per_s = 0;
  double gaps_over_100us_per_s = 0;
  double lost_share = 0;  // of the time, in gaps over 1 us; 0 … 1
  friend bool operator==(const JitterFloor&, const JitterFloor&) = default;
};

struct GidRecord {
  int index = 0;
  std::string value;
  std::string type;
  std::string netdev;
};

struct DeviceRecord {
  std::string name;
  std::string kind;  // "hardware", "software"
  std::string provider;
  std::string firmware;
  std::string link_layer;
  int port = 1;
  std::string state;
  uint32_t active_mtu_bytes = 0;
  std::optional<GidRecord> gid;
  std::optional<int> numa_node;
  std::optional<std::string> link;       // soft device: "memory" or "udp"
  std::optional<std::string> icrc;       // soft device: how strongly packets are checked
  std::optional<uint32_t> inline_bytes;  // limit found by probing
};

// One side of the run: who, where, on what.
struct SideRecord {
  std::string role;  // "requester", "responder", "local"
  std::string host;
  std::string os;
  std::string kernel;
  std::string cpu;
  std::string governor = {};  // of the frequency of its CPUs: "performance"; empty: not shown
  std::vector<int> pinned_cpus = {};
  std::optional<DeviceRecord> device;
  std::optional<ClockRecord> clock;
  std::optional<JitterFloor> jitter_floor = {};
  // What its device counted over the whole session, set-up and warm-up included; empty: nothing is
  // known. In the document since it also explains a run that broke before it measured.
  std::map<std::string, int64_t> counters = {};
};

// A likely cause of what a run shows, most likely first in the record: a failure, or a sign of
// trouble in a run that passed. Made by core/causes from what both sides know.
struct CauseRow {
  std::string cause;
  std::string evidence = {};   // what speaks for it; empty: the error alone
  std::string next_step = {};  // empty: nothing to try
  std::string side = "both";   // where it lies or was seen: requester, responder, both or local
  friend bool operator==(const CauseRow&, const CauseRow&) = default;
};

// A device counter that moved during the session and whose rise is a sign of trouble.
struct CounterNote {
  std::string side;  // "requester", "responder"
  std::string name;
  int64_t change = 0;
  std::string meaning;  // in plain words, what the rise says
  friend bool operator==(const CounterNote&, const CounterNote&) = default;
};

// One of several questions that a check asks.
struct CheckPart {
  std::string name;
  std::string status = {};  // as of a check
  std::string expected = {};
  std::string observed = {};
  std::string why = {};
};

struct CheckRow {
  std::string name;
  std::string status = {};  // "pass", "fail", "deviation", "skip"
  std::string expected = {};
  std::string observed = {};
  std::string why = {};
  std::string source = {};
  std::vector<CheckPart> parts = {};  // of `check`; empty elsewhere
};

// What a check is for: of `check --list`.
struct CatalogRow {
  std::string name;
  std::string does = {};
  std::string expect = {};
  std::string source = {};
};

// What an RDMA system does, and the commands and checks that show it: likewise.
struct BehaviourRow {
  std::string id;
  std::string behaviour = {};
  std::vector<std::string> shown_by = {};  // "check fence", "send-lat"
};

// A difference between two ways of doing the same, from runs that took turns.
struct Difference {
  double value = 0;
  // 95 % by Student's t over the runs' differences; absent with a single run.
  std::optional<double> low = {};
  std::optional<double> high = {};
  friend bool operator==(const Difference&, const Difference&) = default;
};

// One way of waiting under one load, all runs together. CPU figures are those of the responder,
// whose CPU no pacer uses.
struct ModeRow {
  std::string load;  // "closed loop", "10,000/s", "80 % of busy: 640,000/s", "streaming"
  std::string mode;  // "busy", "event", "hybrid:20us", "event 16:8us"
  std::optional<double> offered_per_s = {};  // open loop
  std::optional<double> achieved_per_s = {};
  uint64_t samples = 0;
  std::optional<int64_t> p50_ns = {};
  std::optional<int64_t> p99_ns = {};
  std::optional<int64_t> p99_9_ns = {};
  std::optional<int64_t> max_ns = {};
  std::optional<double> utilization = {};     // of one CPU
  std::optional<double> us_per_message = {};  // CPU time
  std::optional<double> completions_per_event = {};
  uint64_t lost_wakeups = 0;
  // Against busy polling under the same load; absent for busy polling itself.
  std::optional<Difference> p50_more_ns = {};
  // Of what busy polling takes: at an offered rate of the time, else per message.
  std::optional<Difference> cpu_saved_percent = {};
};

// What event-vs-poll makes of its results.
struct ModeSummary {
  std::optional<double> busy_sustains_per_s = {};  // absent: not asked
  std::vector<ModeRow> rows = {};
  std::vector<std::string> unsuited = {};   // "solicited, streaming: why"
  std::vector<std::string> sentences = {};  // where modes cross
  std::vector<std::string> advice = {};     // which to use for what
};

// What this run used: path, MTU and addresses of the pair, for the text report.
struct Record {
  std::string tool_name = "verbscope";
  std::string tool_version;
  std::string tool_build;
  std::string command;
  std::vector<std::string> argv;
  std::string started_at;  // RFC 3339 UTC
  double wall_s = 0;
  std::string verdict = "error";  // "pass", "fail", "inconclusive", "error"
  int exit_code = 1;
  std::optional<Plan> plan;  // absent for commands without one: {"changes": []}
  SideRecord local;
  std::optional<SideRecord> remote;
  std::vector<Result> results;
  std::vector<CheckRow> checks;
  std::optional<ModeSummary> modes = {};  // command `event-vs-poll` only
  std::vector<GateRow> gates;
  std::vector<CatalogRow> catalog = {};       // `check --list` only
  std::vector<BehaviourRow> behaviours = {};  // likewise
  std::optional<Comparison> comparison = {};  // commands `compare` and `ab` only
  std::vector<std::string> notices;
  std::optional<Error> error;
  std::vector<CauseRow> causes = {};            // at most three, most likely first
  std::vector<CounterNote> counter_notes = {};  // a handful, those that say most first
  std::vector<DeviceSummary> devices;           // command `devices` only
  std::optional<std::vector<DeviceResources>> resources = {};  // `devices --resources` only
  std::vector<PreflightRow> preflight = {};                    // command `doctor` only
  uint32_t path_mtu_bytes = 0;                                 // 0: never connected
  bool loopback = false;                                       // both ends on one host
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_RECORD_H_
