// Option groups shared by commands. Texts are taken as the user wrote them and turned into plan and
// settings by one function, so that every command refuses the same things in the same words.
//
// Filled by CLI11 while it parses, then read; one thread.
#ifndef VERBSCOPE_CMD_OPTIONS_H_
#define VERBSCOPE_CMD_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmd/result_files.h"
#include "core/base/error.h"
#include "core/plan/plan.h"

namespace verbscope {

inline constexpr uint16_t kDefaultPort = 18600;

// --json, a file for each format, --quiet, --verbose, --no-color: every command.
struct OutputOptions {
  bool json = false;
  FilePaths files = FilePaths(FileFormats().size());
  bool quiet = false;
  bool verbose = false;
  bool no_color = false;
};
void AddOutputOptions(CLI::App& app, OutputOptions& options);

// Settings of this side: device, port, GID, waiting, CPU.
struct LocalOptions {
  std::string device;
  std::optional<int> ib_port;
  std::optional<int> gid_index;
  std::string wait;
  bool events = false;
  int comp_vector = 0;
  std::string cpus;
  std::optional<int> numa_node;
  bool huge_pages = false;
};
void AddLocalOptions(CLI::App& app, LocalOptions& options);
// The part of them that a command without a peer has: device, port, GID, CPU. `default_device` is
// for the help.
void AddDeviceOptions(CLI::App& app, LocalOptions& options, const std::string& default_device);
Expected<LocalSettings> MakeSettings(const LocalOptions& options);

// Where the peer is, and how to reach it.
struct PeerOptions {
  std::string host;
  bool loopback = false;
  int port = kDefaultPort;
  std::string bind;
  std::string connect_timeout = "10s";
  std::string peer;  // --peer key=value,…
};
void AddPeerOptions(CLI::App& app, PeerOptions& options);

// What to run.
struct PlanOptions {
  std::string sizes;  // empty: the command's default
  std::string duration;
  std::string iterations;
  std::string warmup;
  std::optional<uint32_t> qps;       // absent: the command's default
  std::optional<uint32_t> tx_depth;  // absent: the command's default
  std::optional<uint32_t> rx_depth;
  uint32_t post_list = 1;
  std::string signal_every = "auto";
  std::string inline_mode = "auto";
  uint32_t mtu_bytes = 0;
  uint32_t timeout_code = 14;
  uint32_t retry_count = 6;
  uint32_t rnr_timer_code = 12;
  uint32_t rnr_retry = 6;
  uint32_t rd_atomic = 0;
  uint32_t service_level = 0;
  uint32_t traffic_class = 0;
  uint32_t flow_label = 0;
  uint32_t pkey_index = 0;
  uint32_t hop_limit = 64;
  std::optional<uint32_t> repeat;  // absent: the command's default
  std::string interval = "100ms";
  std::string deadline;
  bool quick = false;
  std::optional<std::string> timer_codes;  // rnr-test only
  std::vector<std::string> checks;         // check only
  // event-vs-poll only
  std::optional<std::string> modes;
  std::optional<std::string> rates;
  std::optional<std::string> moderation;
  std::optional<std::string> p99_limit;
  std::optional<std::string> cqs;        // cq-scale only
  std::optional<std::string> cq_depths;  // likewise
  bool imm = false;
  bool bidirectional = false;
  bool verify = false;
  std::string atomic_op;
  std::string rate;
  std::string arrival;
};
void AddPlanOptions(CLI::App& app, PlanOptions& options);
// The part of them that every command with a peer has: RC attributes, path, deadline.
void AddPathOptions(CLI::App& app, PlanOptions& options);
// Those of a command of steps (core/plan/step_commands.h): size, iterations, path.
void AddStepOptions(CLI::App& app, PlanOptions& options, const std::string& iterations_help);
// Those of event-vs-poll: what is compared, under which loads.
void AddModeOptions(CLI::App& app, PlanOptions& options);
// And what they say, with the defaults of that command. The rest of `plan` is filled already.
Status ParseModeOptions(const PlanOptions& options, Plan& plan);
// Those of a command of steps that measures for a time: size, duration, queues, path.
void AddTimedStepOptions(CLI::App& app, PlanOptions& options);
// Parsed and validated; kUsage with the option's name otherwise.
Expected<Plan> MakePlan(const PlanOptions& options, const std::string& command);

// The elements of "a,b,c"; none of an empty text.
std::vector<std::string> Elements(const std::string& list);

// Puts "--option value: " in front of the message of a failed parse.
Error NameOption(Error error, const std::string& option, const std::string& value);
// What `parse` makes of a text that was given, into `field`, which stays as it is without one.
template <class T, class Parse>
Status TakeOption(const std::optional<std::string>& text, const char* option, Parse parse,
                  T& field) {
  if (!text) return {};
  auto parsed = parse(*text);
  if (!parsed) return Fail(NameOption(std::move(parsed.error()), option, *text));
  field = std::move(*parsed);
  return {};
}

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_OPTIONS_H_
