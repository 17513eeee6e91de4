// What to run. Plain data: the client fills it from its options, validates it once, sends it to the
// server, and it ends inside the report. Nothing here is a pointer to anything; copy it freely.
//
// The client decides and the server agrees: the server may lower a value to what it can bear, and
// says so in `changes`. Nothing that could harm the server's host is in a Plan: no file names, no
// device strings. What concerns one side only (device, CPU, way of waiting) is LocalSettings.
#ifndef VERBSCOPE_CORE_PLAN_PLAN_H_
#define VERBSCOPE_CORE_PLAN_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace verbscope {

// How a completion is awaited on one side. `solicited` is event mode armed for solicited messages
// only; `hybrid` spins for spin_ns before it arms and sleeps.
enum class WaitKind { kBusy, kBusyPause, kEvent, kSolicited, kHybrid };
struct WaitMode {
  WaitKind kind = WaitKind::kBusy;
  int64_t spin_ns = 0;  // hybrid only, 1 … kMaxSpinNs
  bool uses_events() const { return kind >= WaitKind::kEvent; }
  friend bool operator==(const WaitMode&, const WaitMode&) = default;
};
// "busy", "busy:pause", "event", "solicited", "hybrid:20us" and back.
std::string ToText(WaitMode wait);
Expected<WaitMode> ParseWaitMode(std::string_view text);

// Quantities as users write them; each function refuses anything it does not know, naming it.
// "64", "4K", "1Mi", "2g": all suffixes are powers of 1024.
Expected<uint64_t> ParseSize(std::string_view text);
// "10s", "500ms", "20us", "100ns", "2m", "1h"; a bare number is seconds. Fractions are allowed as
// far as they come to whole nanoseconds. In ns, 0 to about 292 years.
Expected<int64_t> ParseDuration(std::string_view text);
// "2s", "500ms", "1.5s": the shortest exact form, with the larger unit where two are equally short.
std::string DurationText(int64_t ns);
// One size, "A:B" (A, then doubling, then B; from 0 the next is 1), "all" (1, 2, 4 … 8Mi), "all+-1"
// (each of those with its two neighbours; 0 is not among them, since not every operation can wait
// for it: it is asked for by name). Ascending, without duplicates, none above kMaxMessageBytes.
Expected<std::vector<uint64_t>> ParseSizes(std::string_view text);

// Holding events back: one for every `count` completions, or `period_us` after the first of them,
// whichever is first (ibv_modify_cq(3)).
struct Moderation {
  uint16_t count = 1;      // 1 … 65535
  uint16_t period_us = 1;  // 1 … 65535
  friend bool operator==(const Moderation&, const Moderation&) = default;
};
std::string ToText(Moderation moderation);  // "16:8us"
Expected<Moderation> ParseModeration(std::string_view text);

enum class InlineKind { kAuto, kOff, kBytes };
struct InlineMode {
  InlineKind kind = InlineKind::kAuto;
  uint32_t bytes = 0;  // kBytes only: refused above the device's limit
  friend bool operator==(const InlineMode&, const InlineMode&) = default;
};
std::string ToText(InlineMode mode);  // "auto", "off", "64"
Expected<InlineMode> ParseInlineMode(std::string_view text);

// What an Atomic does to the 8 bytes at its target.
enum class AtomicOp { kFetchAdd, kCompareSwap };
std::string ToText(AtomicOp op);  // "fetch-add", "compare-swap"
Expected<AtomicOp> ParseAtomicOp(std::string_view text);

// When the messages of an open loop are meant to go: evenly, or with exponential gaps.
enum class Arrival { kFixed, kPoisson };
std::string ToText(Arrival arrival);  // "fixed", "poisson"
Expected<Arrival> ParseArrival(std::string_view text);

// A value that was not used as asked, and why.
struct PlanChange {
  std::string field;
  std::string asked;
  std::string used;
  std::string why;
  friend bool operator==(const PlanChange&, const PlanChange&) = default;
};

struct Plan {
  // A command of two sides, by its name on the command line.
  std::string command = "send-lat";
  // One result per size and run, in this order; distinct, 1 … kMaxSizes of them.
  std::vector<uint64_t> sizes_bytes = {64};

  // Length of the measured part: iterations when given, else duration_ns.
  std::optional<uint64_t> iterations;   // 1 … kMaxIterations
  int64_t duration_ns = 2'000'000'000;  // 1 … kMaxDurationNs
  // Length of the warm-up, likewise; 0 iterations or 0 ns is none.
  std::optional<uint64_t> warmup_iterations;
  int64_t warmup_ns = 200'000'000;

  uint32_t qps = 1;         // 1 … kMaxQps
  uint32_t tx_depth = 1;    // messages in flight per QP, 1 … kMaxDepth
  uint32_t rx_depth = 512;  // receives posted ahead per QP, 1 … kMaxDepth
  uint32_t post_list = 1;   // requests per call of post, 1 … tx_depth
  // One signalled send in so many, 1 … kMaxSignalEvery; 0: chosen by the loop. The send queue is
  // made large enough for two periods.
  uint32_t signal_every = 0;
  InlineMode inline_mode;
  bool imm = false;            // SEND and WRITE carry immediate data
  bool bidirectional = false;  // both sides send at once; bandwidth only
  bool verify = false;         // payloads are filled with a pattern and checked
  AtomicOp atomic_op = AtomicOp::kFetchAdd;
  // Messages per second of an open loop, whose latency counts from the intended send time;
  // 0: closed loop, else kMinRate … kMaxRate.
  double rate_per_s = 0;
  Arrival arrival = Arrival::kFixed;
  bool quick = false;  // commands of several steps choose the shorter ones
  // rnr-test only: the RNR timers it measures, distinct codes 0 … 31; empty: rnr_plan.h chooses.
  std::vector<uint32_t> timer_codes;
  std::vector<std::string> checks;  // check only; empty: all
  // event-vs-poll only (mode_plan.h): the ways of waiting it compares, the loads, each a rate or a
  // share of the rate that busy polling sustains, and moderations of event mode. Distinct, at most
  // kMaxModes and kMaxLoads of them. The plan of one of its points holds at most one of each.
  std::vector<WaitMode> modes;
  std::vector<double> rates_per_s;          // kMinRate … kMaxRate
  std::vector<double> busy_shares_percent;  // 1 … 100
  std::vector<Moderation> moderations;
  int64_t p99_limit_ns = 0;  // which mode is the cheapest within this p99; 0: not asked
  // cq-scale only: numbers of CQs, and entries of one; distinct, see cq_plan.h. Empty: its choice.
  std::vector<uint32_t> cqs;
  std::vector<uint32_t> cq_depths;
  uint32_t mtu_bytes = 0;  // 256, 512 … 4096; 0: the smaller of both ports

  // RC attributes, as codes of the InfiniBand specification.
  uint32_t timeout_code = 14;    // 1 … 31: 4.096 us * 2^code; 0 (no limit) in rnr-test only
  uint32_t retry_count = 6;      // 0 … 7
  uint32_t rnr_timer_code = 12;  // 0 … 31; 12 is 0.64 ms
  uint32_t rnr_retry = 6;        // 0 … 7; 7 is without limit
  uint32_t rd_atomic = 0;        // 1 … 255; 0: the device's limit

  uint32_t service_level = 0;  // 0 … 15
  uint32_t traffic_class = 0;  // 0 … 255
  uint32_t flow_label = 0;     // 0 … 2^20-1
  uint32_t pkey_index = 0;     // 0 … 65535
  uint32_t hop_limit = 64;     // 1 … 255

  // A result that does not decide its assertions is measured on, up to so long in all; 0: never.
  int64_t extend_to_ns = 0;           // 0 … kMaxDurationNs
  uint32_t repeat = 1;                // fresh QPs and connection each, 1 … kMaxRepeat
  int64_t interval_ns = 100'000'000;  // time series, kMinIntervalNs … kMaxDurationNs
  // Of the whole command, 0 … kMaxDurationNs; 0: everything asked for plus kDeadlineGraceNs.
  int64_t deadline_ns = 0;

  std::vector<PlanChange> changes;

  friend bool operator==(const Plan&, const Plan&) = default;
};

inline constexpr uint64_t kMaxIterations = 1'000'000'000'000;
// InfiniBand Architecture Specification vol. 1, 9.7.1: an RC message is at most 2^31 bytes.
inline constexpr uint64_t kMaxMessageBytes = uint64_t{1} << 31;
inline constexpr size_t kMaxSizes = 256;
// What one frame of the control channel holds of their numbers and blobs.
inline constexpr uint32_t kMaxQps = 1024;
inline constexpr uint32_t kMaxDepth = 65536;
inline constexpr uint32_t kMaxSignalEvery = 16384;
// Sizes times repeats of one plan: each result stays in memory until the report, some 50 KiB.
inline constexpr uint64_t kMaxResults = 2000;
inline constexpr size_t kMaxModes = 16;
inline constexpr size_t kMaxLoads = 16;
inline constexpr double kMinRate = 0.01;
inline constexpr double kMaxRate = 1e9;
inline constexpr uint32_t kMaxInlineBytes = 65536;
inline constexpr uint32_t kMaxRepeat = 10'000;
inline constexpr int64_t kMaxDurationNs = int64_t{30} * 24 * 3600 * 1'000'000'000;  // 30 days
inline constexpr int64_t kMaxSpinNs = 1'000'000'000;
inline constexpr int64_t kMinIntervalNs = 1'000'000;
inline constexpr int64_t kDeadlineGraceNs = 30'000'000'000;
// Rows of one result's time series; a longer run gets a longer interval, so that a result stays
// below one frame of the control channel.
inline constexpr int64_t kMaxIntervals = 4096;
inline constexpr size_t kMaxChanges = 64;
inline constexpr size_t kMaxChangeTextBytes = 512;  // of each text of a PlanChange

// Whether the command can run with what its options ask for; kUsage, naming the options. Needs a
// valid plan of a command of operation.h.
Status CheckCombination(const Plan& plan);

// Whether a side of the command can wait so; kUsage otherwise. `requester`: the side that carries
// the plan.
Status CheckWait(const Plan& plan, bool requester, WaitMode wait);

// Checks every range above. kUsage, naming the field, the value and the range.
Status Validate(const Plan& plan);

// Expected run time of the whole plan in ns, warm-ups and repeats included, as far as it is known
// from durations (iterations count as unknown: 0). The default deadline adds 30 s to it.
int64_t PlannedNs(const Plan& plan);
int64_t EffectiveDeadlineNs(const Plan& plan);

// Upper bound of what one side allocates for the plan, in bytes: per QP one send and one receive
// buffer of the largest message (all slots of a queue share it), and its queues. A step of
// core/scenario takes at most kStepBufferMessages messages with a page each around them, or
// kStepBufferBytes where that is more. It saturates.
uint64_t EstimatedMemoryBytes(const Plan& plan);

inline constexpr uint64_t kStepBufferMessages = 16;
inline constexpr uint64_t kStepBufferBytes = uint64_t{4} << 20;

// What a server bears. It is applied before anything is allocated.
struct ServerLimits {
  int64_t max_run_ns = 600'000'000'000;           // --max-run
  uint64_t max_memory_bytes = uint64_t{1} << 30;  // --max-memory: buffers and queues of one run
  uint64_t max_message_bytes = kMaxMessageBytes;  // of the port
  uint32_t max_qp_wr = 16384;                     // of the device
};
// Lowers depths to the device's limit, the deadline to max_run_ns plus kDeadlineGraceNs, and raises
// the interval to at most kMaxIntervals rows (each a PlanChange); refuses, as kSetup with the limit
// named, what cannot be lowered without changing what is measured (size, duration, memory, unknown
// command). What comes back passes Validate.
Expected<Plan> Bound(const Plan& asked, const ServerLimits& limits);

// What a user should know of the plan before it runs, whole sentences: what is slow or starves on
// purpose or by an unlucky choice. Needs a plan that CheckCombination accepts.
std::vector<std::string> PlanNotices(const Plan& plan);

// Settings of one side. They never travel, except those a client asks of the server by --peer.
struct LocalSettings {
  std::string device;  // empty: chosen
  std::optional<int> ib_port;
  std::optional<int> gid_index;
  WaitMode wait;
  int comp_vector = 0;
  std::vector<int> cpus;  // empty: not pinned
  int numa_node = -1;     // -1: not asked for
  bool huge_pages = false;
};

// What a client asks of the other side (--peer key=value,…). The device is a bare name: 1 to 64 of
// [A-Za-z0-9_.-], so that it can be neither a path nor a device string with options.
struct PeerSettings {
  std::optional<std::string> device;
  std::optional<int> ib_port;
  std::optional<int> gid_index;
  std::optional<std::vector<int>> cpus;
  std::optional<int> numa_node;
  std::optional<WaitMode> wait;
  std::optional<int> comp_vector;
  friend bool operator==(const PeerSettings&, const PeerSettings&) = default;
};
// "device=mlx5_0,cpu=3-5,wait=event". A list of CPUs inside uses '+': "cpu=1+3".
Expected<PeerSettings> ParsePeerSettings(std::string_view text);
Status Validate(const PeerSettings& settings);
// "0-3,8" as taskset takes it; each number 0 … 4095. In the order given, without duplicates.
Expected<std::vector<int>> ParseCpuList(std::string_view text, char separator = ',');
// `settings` with everything replaced that was asked for.
LocalSettings Apply(LocalSettings settings, const PeerSettings& asked);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_PLAN_PLAN_H_
