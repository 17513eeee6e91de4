#include "cmd/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace verbscope {
namespace {

constexpr int64_t kQuickDurationNs = 200'000'000;
constexpr int64_t kQuickWarmupNs = 50'000'000;

bool AllDigits(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

// A number of messages has no unit; a time has one.
Status ParseWarmup(const std::string& text, Plan& plan) {
  if (AllDigits(text)) {
    Expected<uint64_t> messages = ParseSize(text);
    if (!messages) return Fail(NameOption(std::move(messages.error()), "--warmup", text));
    plan.warmup_iterations = *messages;
    plan.warmup_ns = 0;
    return {};
  }
  Expected<int64_t> time = ParseDuration(text);
  if (!time) return Fail(NameOption(std::move(time.error()), "--warmup", text));
  plan.warmup_ns = *time;
  return {};
}

Status ParseTimes(const PlanOptions& options, Plan& plan) {
  if (options.quick) {
    plan.duration_ns = kQuickDurationNs;
    plan.warmup_ns = kQuickWarmupNs;
  }
  struct Row {
    const char* option;
    const std::string& text;
    int64_t& target;
  };
  for (const Row& row : {Row{"--duration", options.duration, plan.duration_ns},
                         Row{"--interval", options.interval, plan.interval_ns},
                         Row{"--deadline", options.deadline, plan.deadline_ns}}) {
    if (row.text.empty()) continue;
    Expected<int64_t> time = ParseDuration(row.text);
    if (!time) return Fail(NameOption(std::move(time.error()), row.option, row.text));
    row.target = *time;
  }
  if (!options.warmup.empty()) return ParseWarmup(options.warmup, plan);
  return {};
}

Error Usage(std::string message, std::string next_step) {
  Error error;
  error.error_class = ErrorClass::kUsage;
  error.message = std::move(message);
  error.next_step = std::move(next_step);
  return error;
}

}  // namespace

Error NameOption(Error error, const std::string& option, const std::string& value) {
  error.message = fmt::format("{} {}: {}", option, value, error.message);
  return error;
}

void AddOutputOptions(CLI::App& app, OutputOptions& options) {
  app.add_flag("--json", options.json, "the result as one JSON document on standard output");
  app.add_option("--json-file", options.json_file, "the same document into a file")
      ->type_name("FILE")
      ->check([](const std::string& path) {
        return path.empty() ? std::string("an empty file name") : std::string();
      });
  app.add_flag("--quiet", options.quiet, "no notices on standard error");
  app.add_flag("--verbose", options.verbose, "every block in full");
  app.add_flag("--no-color", options.no_color, "no colour on a terminal");
}

void AddLocalOptions(CLI::App& app, LocalOptions& options) {
  app.add_option("-d,--device", options.device,
                 "RDMA device (default: the one of the control address; see `verbscope devices`)")
      ->type_name("NAME");
  app.add_option("-i,--ib-port", options.ib_port, "port (default: first active)")
      ->type_name("N")
      ->check(CLI::Range(1, 255));
  app.add_option("-x,--gid-index", options.gid_index,
                 "GID index (default: best pair of both tables)")
      ->type_name("N")
      ->check(CLI::Range(0, 65535));
  CLI::Option* wait =
      app.add_option("--wait", options.wait,
                     "how this side waits: busy, busy:pause, event, solicited, hybrid:TIME")
          ->type_name("MODE");
  app.add_flag("-e,--events", options.events, "same as --wait event")->excludes(wait);
  app.add_option("--comp-vector", options.comp_vector, "completion vector of the receive CQ")
      ->type_name("N")
      ->check(CLI::Range(0, 65535));
  app.add_option("--cpu", options.cpus, "CPUs the measuring thread may use, such as 2 or 2-3")
      ->type_name("LIST");
  app.add_option("--numa", options.numa_node, "NUMA node of the buffers")
      ->type_name("N")
      ->check(CLI::Range(0, 1023));
  app.add_flag("--hugepages", options.huge_pages, "buffers in huge pages");
}

Expected<LocalSettings> MakeSettings(const LocalOptions& options) {
  LocalSettings settings;
  settings.device = options.device;
  settings.ib_port = options.ib_port;
  settings.gid_index = options.gid_index;
  settings.comp_vector = options.comp_vector;
  settings.numa_node = options.numa_node.value_or(-1);
  settings.huge_pages = options.huge_pages;
  if (options.events) settings.wait.kind = WaitKind::kEvent;
  if (!options.wait.empty()) {
    Expected<WaitMode> wait = ParseWaitMode(options.wait);
    if (!wait) return Fail(NameOption(std::move(wait.error()), "--wait", options.wait));
    settings.wait = *wait;
  }
  if (!options.cpus.empty()) {
    Expected<std::vector<int>> cpus = ParseCpuList(options.cpus);
    if (!cpus) return Fail(NameOption(std::move(cpus.error()), "--cpu", options.cpus));
    settings.cpus = std::move(*cpus);
  }
  return settings;
}

void AddPeerOptions(CLI::App& app, PeerOptions& options) {
  app.add_option("HOST", options.host, "host that runs `verbscope serve`");
  app.add_flag("--loopback", options.loopback, "both ends in this process");
  app.add_option("-p,--port", options.port, "control port (TCP)")
      ->type_name("N")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--bind", options.bind, "address to connect from")->type_name("ADDR");
  app.add_option("--connect-timeout", options.connect_timeout,
                 "how long to wait for the server to come up")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--peer", options.peer,
                 "settings of the other side: device, ib-port, gid-index, cpu, numa, wait, "
                 "comp-vector")
      ->type_name("KEY=VALUE,…");
}

void AddPlanOptions(CLI::App& app, PlanOptions& o) {
  app.add_option("-s,--size", o.sizes,
                 "message bytes: N, A:B, all or all+-1; suffixes K M G Ki Mi Gi are powers of 1024")
      ->type_name("SIZE")
      ->capture_default_str();
  CLI::Option* duration =
      app.add_option("-D,--duration", o.duration, "measured time (default: 2s)")->type_name("TIME");
  app.add_option("-n,--iterations", o.iterations, "measured messages instead of a time")
      ->type_name("N")
      ->excludes(duration);
  app.add_option("--warmup", o.warmup, "warm-up, a time or a number of messages (default: 200ms)")
      ->type_name("TIME|N");
  app.add_option("-q,--qps", o.qps, "queue pairs")->type_name("N")->capture_default_str();
  app.add_option("-t,--tx-depth", o.tx_depth, "messages in flight")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("-r,--rx-depth", o.rx_depth, "receives posted ahead")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("-l,--post-list", o.post_list, "requests per post")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--signal-every", o.signal_every, "signal one send in N")
      ->type_name("N|auto")
      ->capture_default_str();
  app.add_option("-I,--inline", o.inline_mode, "auto, off or a limit in bytes")
      ->type_name("MODE")
      ->capture_default_str();
  app.add_option("-m,--mtu", o.mtu_bytes, "path MTU (default: the smaller of both ports)")
      ->type_name("BYTES");
  app.add_option("--timeout", o.timeout_code, "ACK timeout code, 4.096 us * 2^CODE")
      ->type_name("CODE")
      ->capture_default_str();
  app.add_option("--retry", o.retry_count, "transport retries")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--rnr-timer", o.rnr_timer_code, "RNR NAK timer code; 12 is 0.64 ms")
      ->type_name("CODE")
      ->capture_default_str();
  app.add_option("--rnr-retry", o.rnr_retry, "RNR retries; 7 is without limit")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--rd-atomic", o.rd_atomic, "READs and Atomics in flight (default: the device's)")
      ->type_name("N");
  app.add_option("--sl", o.service_level, "service level")->type_name("N")->capture_default_str();
  app.add_option("--traffic-class", o.traffic_class, "traffic class of the global route")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--flow-label", o.flow_label, "flow label of the global route")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--pkey-index", o.pkey_index, "P_Key index")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--hop-limit", o.hop_limit, "hop limit of the global route")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--repeat", o.repeat, "runs, each with fresh queue pairs")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--interval", o.interval, "length of a row of the time series")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--deadline", o.deadline,
                 "limit of the whole command (default: planned time + 30s)")
      ->type_name("TIME");
  app.add_flag("--quick", o.quick, "200 ms measured, 50 ms warm-up: a check that all works");
}

Expected<Plan> MakePlan(const PlanOptions& options, const std::string& command) {
  Plan plan;
  plan.command = command;
  Expected<std::vector<uint64_t>> sizes = ParseSizes(options.sizes);
  if (!sizes) return Fail(NameOption(std::move(sizes.error()), "--size", options.sizes));
  plan.sizes_bytes = std::move(*sizes);
  if (Status status = ParseTimes(options, plan); !status) return Fail(std::move(status.error()));
  if (!options.iterations.empty()) {
    Expected<uint64_t> iterations = ParseSize(options.iterations);
    if (!iterations) {
      return Fail(NameOption(std::move(iterations.error()), "--iterations", options.iterations));
    }
    plan.iterations = *iterations;
  }
  if (options.signal_every != "auto") {
    Expected<uint64_t> every = ParseSize(options.signal_every);
    if (!every || *every == 0 || *every > kMaxSignalEvery) {
      return Fail(Usage(fmt::format("--signal-every {} is not auto or a number from 1 to {}",
                                    options.signal_every, kMaxSignalEvery),
                        "leave it out to signal as rarely as is safe"));
    }
    plan.signal_every = static_cast<uint32_t>(*every);
  }
  Expected<InlineMode> inline_mode = ParseInlineMode(options.inline_mode);
  if (!inline_mode) {
    return Fail(NameOption(std::move(inline_mode.error()), "--inline", options.inline_mode));
  }
  plan.inline_mode = *inline_mode;
  plan.qps = options.qps;
  plan.tx_depth = options.tx_depth;
  plan.rx_depth = options.rx_depth;
  plan.post_list = options.post_list;
  plan.mtu_bytes = options.mtu_bytes;
  plan.timeout_code = options.timeout_code;
  plan.retry_count = options.retry_count;
  plan.rnr_timer_code = options.rnr_timer_code;
  plan.rnr_retry = options.rnr_retry;
  plan.rd_atomic = options.rd_atomic;
  plan.service_level = options.service_level;
  plan.traffic_class = options.traffic_class;
  plan.flow_label = options.flow_label;
  plan.pkey_index = options.pkey_index;
  plan.hop_limit = options.hop_limit;
  plan.repeat = options.repeat;
  if (plan.deadline_ns != 0 && plan.deadline_ns < PlannedNs(plan)) {
    return Fail(Usage(fmt::format("--deadline {} is shorter than the plan itself, {}",
                                  DurationText(plan.deadline_ns), DurationText(PlannedNs(plan))),
                      "give a longer --deadline or a shorter --duration"));
  }
  Status status = Validate(plan);
  if (status) status = CheckCombination(plan);
  if (!status) {
    Error error = std::move(status.error());
    if (error.next_step.empty()) error.next_step = fmt::format("verbscope {} --help", command);
    return Fail(std::move(error));
  }
  return plan;
}

}  // namespace verbscope
