// verbscope: measures and diagnoses RDMA. This file only finds the command and turns what the
// option parser says into the exit codes and the document of every other failure.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <vector>

#include "cmd/commands.h"
#include "cmd/host_devices.h"
#include "cmd/output.h"
#include "cmd/signals.h"
#include "cmd/version.h"
#include "core/record/record.h"

namespace verbscope {
namespace {

// Asked for by a command line that could not be parsed: standard output must still be one document.
OutputOptions OutputOf(const std::vector<std::string>& argv) {
  OutputOptions options;
  for (size_t i = 1; i < argv.size(); ++i) {
    if (argv[i] == "--json") options.json = true;
    if (argv[i] == "--quiet") options.quiet = true;
    for (size_t format = 0; format < FileFormats().size(); ++format) {
      const std::string option = FileFormats()[format].option;
      if (argv[i].starts_with(option + "=")) {
        options.files[format] = argv[i].substr(option.size() + 1);
      }
      if (argv[i] == option && i + 1 < argv.size()) options.files[format] = argv[i + 1];
    }
  }
  return options;
}

int UsageFailure(const CLI::App& app, const CLI::ParseError& problem,
                 const std::vector<std::string>& argv) {
  std::string command;
  for (const CLI::App* used : app.get_subcommands()) command = used->get_name();
  Record record;
  Output output(OutputOf(argv), command, argv, record);
  Error error;
  error.error_class = ErrorClass::kUsage;
  error.message = problem.what();
  error.next_step = command.empty() ? "verbscope --help" : "verbscope " + command + " --help";
  return output.Fail(std::move(error));
}

int UnknownCommand(const std::vector<Command>& commands, const std::vector<std::string>& argv) {
  Record record;
  Output output(OutputOf(argv), "", argv, record);
  Error error;
  error.error_class = ErrorClass::kUsage;
  error.message = "there is no command " + argv[1];
  error.cause = "the commands are:";
  for (const Command& command : commands) error.cause += " " + command.app->get_name();
  error.next_step = "verbscope --help";
  return output.Fail(std::move(error));
}

// A closed standard stream would be given to the next socket or file, and what is printed would go
// to a stranger. Standard output is not opened for writing: a result that cannot be printed is no
// success.
void OpenStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // open gives the lowest free descriptor, which is this one.
    (void)!::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int Main(const std::vector<std::string>& argv) {
  CLI::App app("Measures and diagnoses RDMA: latency, completion modes, verbs semantics.",
               "verbscope");
  app.set_version_flag("--version", fmt::format("verbscope {}", kVersion));
  app.require_subcommand(1);
  app.fallthrough(false);
  // A destroy call that never returns has lost its thread: the process cannot end in any other way.
  IbverbsOptions ibverbs;
  ibverbs.watchdog.on_stuck = [](const std::string& line) {
    WriteStandardError("error: " + line);
    ::_exit(ExitCode(ErrorClass::kDeadline));
  };
  HostDevices provider(ibverbs, kVersion);
  std::vector<Command> commands = AddMeasuringCommands(app, provider);
  commands.push_back(AddImm(app, provider));
  commands.push_back(AddZeroLenRecv(app, provider));
  commands.push_back(AddRnrTest(app, provider));
  commands.push_back(AddEventVsPoll(app, provider));
  commands.push_back(AddVerbCost(app, provider));
  commands.push_back(AddCqScale(app, provider));
  commands.push_back(AddCheck(app, provider));
  commands.push_back(AddCqOverrun(app, provider));
  commands.push_back(AddCompare(app));
  commands.push_back(AddServe(app, provider));
  commands.push_back(AddDevices(app, provider));
  commands.push_back(AddDoctor(app));
  commands.push_back(AddReport(app));
  commands.push_back(AddAb(app, provider));
  const bool known = argv.size() < 2 || argv[1].starts_with("-") ||
                     std::any_of(commands.begin(), commands.end(), [&](const Command& command) {
                       return command.app->get_name() == argv[1];
                     });
  if (!known) return UnknownCommand(commands, argv);
  std::vector<std::string> reversed(argv.rbegin(), argv.rend() - 1);
  try {
    app.parse(reversed);
  } catch (const CLI::Success& done) {  // --help, --version
    return app.exit(done);
  } catch (const CLI::ParseError& problem) {
    return UsageFailure(app, problem, argv);
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run(argv);
  }
  return ExitCode(ErrorClass::kInternal);
}

}  // namespace
}  // namespace verbscope

int main(int argc, char** argv) {
  verbscope::OpenStandardStreams();
  verbscope::ProcessInterrupt();  // from here on a signal leaves a document behind
  try {
    return verbscope::Main(std::vector<std::string>(argv, argv + argc));
  } catch (const std::exception& bug) {
    // Nothing of ours throws; the standard library may, for want of memory.
    verbscope::WriteStandardError(std::string("error: ") + bug.what());
    return verbscope::ExitCode(verbscope::ErrorClass::kInternal);
  }
}
