// `ab`: two sets of options of one measuring command, run in turns (A B B A A B …), and compared.
// Taking turns is what cancels the drift of a host that warms up or is used by others meanwhile.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cmd/commands.h"
#include "cmd/output.h"
#include "cmd/plan_command.h"
#include "core/compare/compare.h"
#include "core/plan/operation.h"
#include "core/record/record.h"

namespace verbscope {
namespace {

constexpr uint32_t kDefaultRuns = 10;
constexpr uint32_t kMaxRuns = 1000;

// As the user wrote them.
struct AbOptions {
  std::array<std::string, 2> sets;  // A, B
  uint32_t runs = kDefaultRuns;     // of each
  std::string margins;
  bool require_decision = false;
  OutputOptions output;
};

char Letter(size_t set) { return set == 0 ? 'A' : 'B'; }

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// One set, ready to run.
struct Side {
  ClientOptions client;
  Plan plan;
  std::vector<Record> records;
};

// The command's options: those of both sets, and output options wherever they stand.
Expected<Side> ParseSide(const std::string& command, std::vector<std::string> words,
                         const std::string& who, OutputOptions& output) {
  CLI::App app("", command);
  app.set_help_flag();
  PlanCommandOptions options;
  AddPlanCommandOptions(app, AddPlanOptions, options);
  AddOutputOptions(app, output);
  std::ranges::reverse(words);
  try {
    app.parse(words);
  } catch (const CLI::ParseError& problem) {
    return Fail(
        UsageError(fmt::format("{}: {}", who, problem.what()), {},
                   fmt::format("see verbscope {} --help; options of ab stand before the "
                               "command, those of both sets behind it, those of one in --a or "
                               "--b; ab takes no assertions, what it judges is B against A",
                               command)));
  }
  Expected<Plan> plan = MakePlan(options.plan, command);
  if (!plan) {
    plan.error().message.insert(0, who + ": ");
    return Fail(std::move(plan.error()));
  }
  return Side{.client = options.client, .plan = std::move(*plan), .records = {}};
}

class AbRun {
 public:
  AbRun(const AbOptions& options, std::array<Side, 2> sides, DeviceProvider& provider,
        Output& output, Record& record)
      : options_(options),
        sides_(std::move(sides)),
        provider_(provider),
        output_(output),
        record_(record) {}

  Status Execute() {
    record_.plan = sides_[0].plan;
    for (uint32_t turn = 0; turn < 2 * options_.runs; ++turn) {
      // A B, B A, A B, …
      const size_t set = (turn + turn / 2) % 2;
      output_.Progress(fmt::format("run {} of {}: {}", turn + 1, 2 * options_.runs, Letter(set)));
      if (Status status = RunOnce(set); !status) return status;
    }
    return {};
  }

  Status Conclude(const Margins& margins) {
    CompareOptions options;
    options.margins = margins;
    options.join_by_order = true;
    Expected<Comparison> comparison = Compare(sides_[0].records, sides_[1].records, options);
    if (!comparison) return Fail(std::move(comparison.error()));
    comparison->base_name = Name(0);
    comparison->new_name = Name(1);
    record_.comparison = std::move(*comparison);
    JudgeComparison(options_.require_decision, record_);
    return {};
  }

 private:
  std::string Name(size_t set) const {
    const std::string& text = options_.sets[set];
    return text.empty() ? fmt::format("{}: no options of its own", Letter(set))
                        : fmt::format("{}: {}", Letter(set), text);
  }

  Status RunOnce(size_t set) {
    Side& side = sides_[set];
    Record run;
    run.command = side.plan.command;
    run.local = record_.local;
    Status status = RunClient(side.client, side.plan, {}, provider_, output_, run);
    record_.local = run.local;
    record_.remote = run.remote;
    record_.loopback = run.loopback;
    record_.path_mtu_bytes = run.path_mtu_bytes;
    for (Result result : run.results) {
      result.set = set == 0 ? "a" : "b";
      result.run += static_cast<uint32_t>(side.records.size()) * side.plan.repeat;
      record_.results.push_back(std::move(result));
    }
    for (const CheckRow& check : run.checks) KeepCheck(check);
    if (status && run.error) status = verbscope::Fail(*run.error);
    if (status && run.exit_code != 0) status = verbscope::Fail(FailedRun(run));
    if (!status) NameRun(set, side.records.size(), status.error());
    if (set == 0 && run.plan) record_.plan = run.plan;  // with what the server lowered
    side.records.push_back(std::move(run));
    return status;
  }

  // Every run has the same checks: the first of each name, or the first that failed.
  void KeepCheck(const CheckRow& check) {
    const auto known = std::ranges::find(record_.checks, check.name, &CheckRow::name);
    if (known == record_.checks.end()) {
      record_.checks.push_back(check);
    } else if (known->status != "fail" && check.status == "fail") {
      *known = check;
    }
  }

  // Where it broke, and what is different about many runs with one server.
  void NameRun(size_t set, size_t run, Error& error) const {
    error.message.insert(0, fmt::format("run {} of set {}: ", run, Letter(set)));
    const bool first = set == 0 && run == 0;
    if (!first && error.next_step.empty() && error.error_class == ErrorClass::kSetup) {
      error.next_step = "start the server without --once: each run connects to it anew";
    }
  }

  static Error FailedRun(const Record& run) {
    Error error;
    error.error_class = run.exit_code == 3 ? ErrorClass::kVerification : ErrorClass::kInconclusive;
    error.message = fmt::format("a run of {} ended with verdict {}", run.command, run.verdict);
    error.next_step = "see its checks; nothing is compared that did not pass";
    return error;
  }

  const AbOptions& options_;
  std::array<Side, 2> sides_;
  DeviceProvider& provider_;
  Output& output_;
  Record& record_;
};

Expected<std::array<Side, 2>> ParseSides(const std::vector<std::string>& rest, AbOptions& options) {
  if (rest.empty()) {
    return Fail(UsageError("ab needs the command that it shall run", {},
                           "verbscope ab --a '--wait busy' --b '--wait event' send-lat HOST"));
  }
  const std::string& command = rest.front();
  if (FindOperation(command) == nullptr) {
    return Fail(UsageError(fmt::format("ab does not run {}", command), {},
                           "it runs the measuring commands, such as send-lat and write-bw; its own "
                           "options stand before the command"));
  }
  std::array<Side, 2> sides;
  for (const size_t set : {0u, 1u}) {
    std::vector<std::string> words(rest.begin() + 1, rest.end());
    for (std::string& word : Words(options.sets[set])) words.push_back(std::move(word));
    Expected<Side> side =
        ParseSide(command, std::move(words), fmt::format("{} with set {}", command, Letter(set)),
                  options.output);
    if (!side) return Fail(std::move(side.error()));
    sides[set] = std::move(*side);
  }
  return sides;
}

int RunCommand(AbOptions options, const std::vector<std::string>& rest, DeviceProvider& provider,
               const std::vector<std::string>& argv) {
  Record record;
  // Output options behind the command count too, so it is parsed before anything is said.
  Expected<std::array<Side, 2>> sides = ParseSides(rest, options);
  Output output(options.output, "ab", argv, record);
  if (!sides) return output.Fail(std::move(sides.error()));
  if (Status status = output.CheckDestinations(); !status) {
    return output.Fail(std::move(status.error()));
  }
  const Expected<Margins> margins = ParseMargins(Elements(options.margins));
  if (!margins) return output.Fail(margins.error());
  AbRun run(options, std::move(*sides), provider, output, record);
  Status status = run.Execute();
  if (status) status = run.Conclude(*margins);
  return status ? output.Finish() : output.Fail(std::move(status.error()));
}

}  // namespace

Command AddAb(CLI::App& app, DeviceProvider& provider) {
  const auto options = std::make_shared<AbOptions>();
  CLI::App* command = app.add_subcommand(
      "ab",
      "two sets of options of one command, run in turns and compared: ab [OPTIONS] --a SET "
      "--b SET COMMAND [HOST] [OPTIONS OF BOTH]");
  command->prefix_command();
  command->add_option("--a", options->sets[0], "options of set A, in one argument; the base")
      ->type_name("OPTIONS");
  command
      ->add_option("--b", options->sets[1], "options of set B, in one argument; judged against A")
      ->type_name("OPTIONS");
  command->add_option("--runs", options->runs, "runs of each set")
      ->type_name("N")
      ->check(CLI::Range(1u, kMaxRuns))
      ->capture_default_str();
  command
      ->add_option("--margin", options->margins,
                   "change in percent that is none (default: 3); METRIC=PERCENT for one metric")
      ->join(',')
      ->type_name("PERCENT");
  command->add_flag("--require-decision", options->require_decision,
                    "exit 4 while a gated metric is undecided");
  AddOutputOptions(*command, options->output);
  return {.app = command,
          .run = [options, command, &provider](const std::vector<std::string>& argv) {
            return RunCommand(*options, command->remaining(), provider, argv);
          }};
}

}  // namespace verbscope
