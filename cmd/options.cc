#include "cmd/options.h"

#include <fmt/core.h>

#include <utility>

namespace verbscope {

Error NameOption(Error error, const std::string& option, const std::string& value) {
  error.message = fmt::format("{} {}: {}", option, value, error.message);
  return error;
}

std::vector<std::string> Elements(const std::string& list) {
  std::vector<std::string> elements;
  for (size_t from = 0; from < list.size();) {
    const size_t end = std::min(list.find(',', from), list.size());
    elements.push_back(list.substr(from, end - from));
    from = end + 1;
  }
  return elements;
}

void AddOutputOptions(CLI::App& app, OutputOptions& options) {
  app.add_flag("--json", options.json, "the result as one JSON document on standard output");
  for (size_t i = 0; i < FileFormats().size(); ++i) {
    app.add_option(FileFormats()[i].option, options.files[i], FileFormats()[i].help)
        ->type_name("FILE")
        ->check([](const std::string& path) {
          return path.empty() ? std::string("an empty file name") : std::string();
        });
  }
  app.add_flag("--quiet", options.quiet, "no notices on standard error");
  app.add_flag("--verbose", options.verbose, "every block in full");
  app.add_flag("--no-color", options.no_color, "no colour on a terminal");
}

void AddDeviceOptions(CLI::App& app, LocalOptions& options, const std::string& default_device) {
  app.add_option("-d,--device", options.device,
                 fmt::format("RDMA device (default: {}; see `verbscope devices`)", default_device))
      ->type_name("NAME");
  app.add_option("-i,--ib-port", options.ib_port, "port (default: first active)")
      ->type_name("N")
      ->check(CLI::Range(1, 255));
  app.add_option("-x,--gid-index", options.gid_index,
                 "GID index (default: best pair of both tables)")
      ->type_name("N")
      ->check(CLI::Range(0, 65535));
  app.add_option("--cpu", options.cpus, "CPUs the measuring thread may use, such as 2 or 2-3")
      ->type_name("LIST");
}

void AddLocalOptions(CLI::App& app, LocalOptions& options) {
  AddDeviceOptions(app, options, "the one of the control address");
  CLI::Option* wait =
      app.add_option("--wait", options.wait,
                     "how this side waits: busy, busy:pause, event, solicited, hybrid:TIME")
          ->type_name("MODE");
  app.add_flag("-e,--events", options.events, "same as --wait event")->excludes(wait);
  app.add_option("--comp-vector", options.comp_vector, "completion vector of the receive CQ")
      ->type_name("N")
      ->check(CLI::Range(0, 65535));
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

}  // namespace verbscope
