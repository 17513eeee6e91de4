// `serve`: answers clients of any command, one at a time; the others wait in a queue and are told
// their place. Survives every client failure.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "cmd/commands.h"
#include "cmd/output.h"
#include "cmd/run_line.h"
#include "cmd/signals.h"
#include "cmd/version.h"
#include "core/selection/selection.h"
#include "core/session/session.h"
#include "transports/control/client_queue.h"
#include "transports/control/handshake.h"
#include "transports/control/socket.h"

namespace verbscope {
namespace {

struct ServeOptions {
  int port = kDefaultPort;
  std::string bind;
  std::string max_run = "10m";
  std::string max_memory = "1Gi";
  std::string queue_timeout = "10m";
  bool once = false;
  bool fixed_settings = false;
  LocalOptions local;
};

struct Serving {
  ResponderOptions responder;
  ClientQueueOptions queue;
};

Expected<Serving> Prepare(const ServeOptions& options) {
  Serving serving;
  Expected<LocalSettings> settings = MakeSettings(options.local);
  if (!settings) return Fail(std::move(settings.error()));
  serving.responder.settings = std::move(*settings);
  serving.responder.allow_peer_settings = !options.fixed_settings;
  Expected<int64_t> max_run = ParseDuration(options.max_run);
  if (!max_run) return Fail(NameOption(std::move(max_run.error()), "--max-run", options.max_run));
  serving.responder.limits.max_run_ns = *max_run;
  Expected<uint64_t> memory = ParseSize(options.max_memory);
  if (!memory) {
    return Fail(NameOption(std::move(memory.error()), "--max-memory", options.max_memory));
  }
  serving.responder.limits.max_memory_bytes = *memory;
  Expected<int64_t> wait = ParseDuration(options.queue_timeout);
  if (!wait) {
    return Fail(NameOption(std::move(wait.error()), "--queue-timeout", options.queue_timeout));
  }
  serving.queue.queue_timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(*wait));
  serving.queue.local = {.tool_version = kVersion};
  return serving;
}

class Server {
 public:
  Server(Serving serving, DeviceProvider& provider, Output& output, bool json)
      : serving_(std::move(serving)), provider_(provider), output_(output), json_(json) {}

  // Serves until interrupted, or one client. `record` is that of the last client.
  Status Serve(const ServeOptions& options, Record& record) {
    Expected<Listener> listener =
        Listener::Open({.bind_address = options.bind, .port = static_cast<uint16_t>(options.port)});
    if (!listener) return Fail(std::move(listener.error()));
    serving_.queue.on_rejected = [this](const std::string& peer, const Error& error) {
      output_.Say(fmt::format("{}: {}", peer, error.ToText()));
    };
    Expected<std::unique_ptr<ClientQueue>> queue =
        ClientQueue::Start(std::move(*listener), serving_.queue);
    if (!queue) return Fail(std::move(queue.error()));
    output_.Say(fmt::format("serving on {}", (*queue)->address().ToText()));
    for (;;) {
      Expected<AcceptedClient> client = (*queue)->Next(ProcessInterrupt().fd());
      if (!client) return Fail(std::move(client.error()));
      const std::string address = client->address;
      const bool served = ServeOne(std::move(*client), record);
      if (served) Print(RunLine(record, address));
      if (options.once && served) return {};
      if (ProcessInterrupt().raised()) return Fail(Interrupted());
    }
  }

 private:
  // False: the client went away before it was served.
  bool ServeOne(AcceptedClient client, Record& record) {
    if (Status hello = SendServerHello(client.connection, serving_.queue.local, client.hello,
                                       Deadline::After(kHelloTimeout));
        !hello) {
      output_.Say(fmt::format("{}: {}", client.address, hello.error().ToText()));
      return false;
    }
    ResponderOptions responder = serving_.responder;
    responder.control_path = MakeControlPath(client.connection.local_address().Host(),
                                             client.connection.remote_address().Host());
    const ControlPath& path = responder.control_path;
    // Everything of the last client goes; who we are stays.
    Record fresh;
    fresh.tool_version = record.tool_version;
    fresh.tool_build = record.tool_build;
    fresh.command = "serve";
    fresh.argv = record.argv;
    fresh.started_at = record.started_at;
    fresh.local = record.local;
    fresh.loopback = path.local_address == path.remote_address;
    record = std::move(fresh);
    const SessionContext context{
        .provider = provider_,
        .interrupt = ProcessInterrupt(),
        .notice = [this](const std::string& text) { output_.Notice(text); }};
    RunResponder(std::move(client.connection), context, responder, record);
    return true;
  }

  void Print(const std::string& line) const {
    // With --json standard output belongs to the document.
    if (json_) {
      output_.Say(line);
      return;
    }
    // A reader that has gone away does not end the server.
    const std::string text = line + "\n";
    (void)!::write(STDOUT_FILENO, text.data(), text.size());
  }

  static Error Interrupted() {
    Error error;
    error.error_class = ErrorClass::kInterrupted;
    error.message = "interrupted by a signal";
    return error;
  }

  Serving serving_;
  DeviceProvider& provider_;
  Output& output_;
  const bool json_;
};

void AddServeOptions(CLI::App& app, ServeOptions& options) {
  app.add_option("-p,--port", options.port, "control port (TCP)")
      ->type_name("N")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--bind", options.bind, "address to listen on (default: all, IPv4 and IPv6)")
      ->type_name("ADDR");
  app.add_flag("--once", options.once, "serve one client, then end with its exit code");
  app.add_option("--max-run", options.max_run, "longest run a client may ask for")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--max-memory", options.max_memory, "most memory a client's plan may take")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--queue-timeout", options.queue_timeout, "longest wait of a queued client")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_flag("--no-peer-settings", options.fixed_settings, "refuse clients that use --peer");
}

int RunServe(const ServeOptions& options, const OutputOptions& output_options,
             DeviceProvider& provider, const std::vector<std::string>& argv) {
  Record record;
  Output output(output_options, "serve", argv, record);
  const bool document = output_options.json || ResultFiles(output_options.files).any();
  if (document && !options.once) {
    Error error;
    error.error_class = ErrorClass::kUsage;
    error.message = "serve writes a document or a file only with --once: there is one per command";
    error.next_step = "add --once, or let the client write it";
    return output.Fail(std::move(error));
  }
  if (Status status = output.CheckDestinations(); !status) {
    return output.Fail(std::move(status.error()));
  }
  Expected<Serving> serving = Prepare(options);
  if (!serving) return output.Fail(std::move(serving.error()));
  const LocalSettings& settings = serving->responder.settings;
  Expected<std::vector<DeviceSummary>> devices = provider.ListFor(settings.device);
  if (!devices) return output.Fail(std::move(devices.error()));
  if (Status usable = RequireUsableDevice(*devices, settings, /*loopback=*/false); !usable) {
    return output.Fail(std::move(usable.error()));
  }
  Server server(std::move(*serving), provider, output, output_options.json);
  Status status = server.Serve(options, record);
  if (!status) {
    const bool idle = !record.error || record.error->error_class != ErrorClass::kInterrupted;
    const bool asked_to_end = status.error().error_class == ErrorClass::kInterrupted;
    // SIGINT and SIGTERM are how an idle server ends; they are a failure only for a run.
    if (asked_to_end && idle && !options.once) return 0;
    return output.Fail(std::move(status.error()), /*text=*/false);
  }
  record.command = "serve";
  return output.Finish(/*text=*/false);
}

}  // namespace

Command AddServe(CLI::App& app, DeviceProvider& provider) {
  const auto options = std::make_shared<ServeOptions>();
  const auto output_options = std::make_shared<OutputOptions>();
  CLI::App* command = app.add_subcommand("serve", "answer clients of any command");
  AddServeOptions(*command, *options);
  AddLocalOptions(*command, options->local);
  AddOutputOptions(*command, *output_options);
  return {.app = command,
          .run = [options, output_options, &provider](const std::vector<std::string>& argv) {
            return RunServe(*options, *output_options, provider, argv);
          }};
}

}  // namespace verbscope
