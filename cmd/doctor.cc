#include "core/doctor/doctor.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmd/commands.h"
#include "cmd/output.h"
#include "core/record/outcome.h"
#include "core/record/record.h"

namespace verbscope {
namespace {

// As the user wrote them.
struct DoctorOptions {
  std::string device;
  std::optional<int> ib_port;
  std::string root;
  OutputOptions output;
};

void AddDoctorOptions(CLI::App& app, DoctorOptions& options) {
  app.add_option("-d,--device", options.device, "look at this RDMA device only (default: all)")
      ->type_name("NAME");
  app.add_option("-i,--ib-port", options.ib_port, "and at this port only (default: all)")
      ->type_name("N")
      ->check(CLI::Range(1, 255));
  app.add_option("--root", options.root,
                 "read a copy of another host's files: a folder with its sys and proc, such as an "
                 "unpacked sosreport")
      ->type_name("DIR");
  AddOutputOptions(app, options.output);
}

Status CheckRoot(const std::string& root) {
  std::error_code unknown;
  if (root.empty() || std::filesystem::is_directory(root, unknown)) return {};
  return Fail(UsageError("--root " + root + ": there is no such folder", "",
                         "name the folder that holds sys and proc"));
}

int RunCommand(const DoctorOptions& options, const std::vector<std::string>& argv) {
  Record record;
  Output output(options.output, "doctor", argv, record);
  if (Status status = output.CheckDestinations(); !status) {
    return output.Fail(std::move(status.error()));
  }
  if (Status status = CheckRoot(options.root); !status) {
    return output.Fail(std::move(status.error()));
  }
  Expected<std::vector<PreflightRow>> rows =
      Preflight(HostTree(options.root), {.device = options.device, .port = options.ib_port});
  if (!rows) return output.Fail(std::move(rows.error()));
  record.preflight = std::move(*rows);
  const bool failed = std::ranges::count(record.preflight, "fail", &PreflightRow::status) > 0;
  SetOutcome(failed ? "fail" : "pass", record);
  if (!options.root.empty()) {
    output.Notice("the files of " + options.root + " were read, not those of this host");
  }
  return output.Finish();
}

}  // namespace

Command AddDoctor(CLI::App& app) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "preflight of this host: limits, ports, PCIe, CPUs, network, with the fixes");
  AddDoctorOptions(*command, *options);
  return {.app = command, .run = [options](const std::vector<std::string>& argv) {
            return RunCommand(*options, argv);
          }};
}

}  // namespace verbscope
