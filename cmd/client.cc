#include "cmd/client.h"

#include <fmt/core.h>

#include <chrono>
#include <thread>
#include <utility>

#include "cmd/signals.h"
#include "cmd/version.h"
#include "core/plan/cq_plan.h"
#include "core/selection/control_path.h"
#include "core/selection/selection.h"
#include "core/session/session.h"
#include "transports/control/connection.h"
#include "transports/control/handshake.h"
#include "transports/control/socket.h"

namespace verbscope {
namespace {

using std::chrono::nanoseconds;

LocalHello Hello() { return {.tool_version = kVersion}; }

// The other end of a --loopback run, on a thread of its own.
class LoopbackServer {
 public:
  LoopbackServer(Connection connection, DeviceProvider& provider, const LocalSettings& settings)
      : thread_([this, connection = std::move(connection), &provider, settings]() mutable {
          Serve(std::move(connection), provider, settings);
        }) {}
  ~LoopbackServer() { thread_.join(); }
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

 private:
  void Serve(Connection connection, DeviceProvider& provider, const LocalSettings& settings) {
    // What goes wrong here reaches the client as an abort, and so its report.
    const Deadline deadline = Deadline::After(kHelloTimeout);
    if (!ServerHandshake(connection, Hello(), deadline, ProcessInterrupt().fd())) return;
    Record record;
    const SessionContext context{
        .provider = provider, .interrupt = ProcessInterrupt(), .notice = [](const std::string&) {}};
    ResponderOptions options{.settings = settings};
    options.control_path.loopback = true;
    RunResponder(std::move(connection), context, options, record);
  }

  std::thread thread_;
};

// With two or more CPUs the sides take one each; with one they share it, as asked.
void SplitCpus(LocalSettings& requester, LocalSettings& responder) {
  if (requester.cpus.size() < 2) return;
  responder.cpus = {requester.cpus[1]};
  requester.cpus = {requester.cpus[0]};
}

Status RunOver(Connection connection, const SessionContext& context,
               const RequesterOptions& requester, Output& output, Record& record) {
  ClientHandshakeOptions handshake;
  handshake.local = Hello();
  handshake.interrupt_fd = context.interrupt.fd();
  handshake.deadline = requester.deadline;
  handshake.on_queued = [&output](int position) {
    output.Say(fmt::format("the server is busy; place {} in its queue", position));
  };
  Expected<PeerHello> hello = ClientHandshake(connection, handshake);
  if (!hello) {
    // In --loopback the other end hears of the interrupt first; what it then says is only an echo.
    if (context.interrupt.raised()) {
      hello.error().error_class = ErrorClass::kInterrupted;
    } else if (requester.deadline.Passed()) {
      hello.error().error_class = ErrorClass::kDeadline;
    }
    return Fail(std::move(hello.error()));
  }
  RunRequester(std::move(connection), context, requester, record);
  return {};
}

Status RunLoopback(const SessionContext& context, RequesterOptions requester, Output& output,
                   Record& record) {
  Expected<std::pair<FileDescriptor, FileDescriptor>> pair = MakePair();
  if (!pair) return Fail(std::move(pair.error()));
  record.loopback = true;
  requester.control_path.loopback = true;
  LocalSettings responder = requester.settings;
  // The threads of cq-scale are all of one side; the other side's work is its device's.
  if (requester.plan.command != kCqScale) SplitCpus(requester.settings, responder);
  LoopbackServer server(Connection(std::move(pair->second)), context.provider, responder);
  return RunOver(Connection(std::move(pair->first)), context, requester, output, record);
}

Status RunRemote(const PeerOptions& peer, const SessionContext& context, RequesterOptions requester,
                 Output& output, Record& record) {
  Expected<int64_t> timeout = ParseDuration(peer.connect_timeout);
  if (!timeout) {
    return Fail(NameOption(std::move(timeout.error()), "--connect-timeout", peer.connect_timeout));
  }
  Expected<FileDescriptor> socket = Connect(
      {.host = peer.host,
       .port = static_cast<uint16_t>(peer.port),
       .bind_address = peer.bind,
       .deadline = Deadline::Earlier(Deadline::After(nanoseconds(*timeout)), requester.deadline),
       .interrupt_fd = context.interrupt.fd()});
  if (!socket) {
    if (requester.deadline.Passed()) socket.error().error_class = ErrorClass::kDeadline;
    return Fail(std::move(socket.error()));
  }
  Connection connection(std::move(*socket));
  requester.control_path =
      MakeControlPath(connection.local_address().Host(), connection.remote_address().Host());
  const ControlPath& path = requester.control_path;
  record.loopback = path.local_address == path.remote_address;
  return RunOver(std::move(connection), context, requester, output, record);
}

}  // namespace

Status RunClient(const ClientOptions& options, const Plan& plan, const Gates& gates,
                 DeviceProvider& provider, Output& output, Record& record) {
  const PeerOptions& peer = options.peer;
  if (peer.host.empty() && !peer.loopback) {
    return Fail(UsageError(
        fmt::format("{} needs a peer: a HOST that runs `verbscope serve`, or --loopback",
                    plan.command),
        {},
        fmt::format("verbscope {} HOST, or verbscope {} --loopback", plan.command, plan.command)));
  }
  if (!peer.host.empty() && peer.loopback) {
    return Fail(UsageError("HOST and --loopback exclude each other", {}, "give one of them"));
  }
  RequesterOptions requester;
  requester.plan = plan;
  requester.gates = gates;
  requester.deadline = Deadline::After(nanoseconds(EffectiveDeadlineNs(plan)));
  Expected<LocalSettings> settings = MakeSettings(options.local);
  if (!settings) return Fail(std::move(settings.error()));
  requester.settings = std::move(*settings);
  if (!peer.peer.empty()) {
    Expected<PeerSettings> asked = ParsePeerSettings(peer.peer);
    if (!asked) return Fail(NameOption(std::move(asked.error()), "--peer", peer.peer));
    requester.peer = std::move(*asked);
  }
  if (Status status = CheckWait(plan, /*requester=*/true, requester.settings.wait); !status) {
    return status;
  }
  if (requester.peer.wait) {
    Status status = CheckWait(plan, /*requester=*/false, *requester.peer.wait);
    if (!status) return Fail(NameOption(std::move(status.error()), "--peer", peer.peer));
  }
  // What is wrong on this host is said before the peer is bothered.
  Expected<std::vector<DeviceSummary>> devices = provider.ListFor(requester.settings.device);
  if (!devices) return Fail(std::move(devices.error()));
  if (Status status = RequireUsableDevice(*devices, requester.settings, peer.loopback); !status) {
    return status;
  }
  for (const std::string& notice : PlanNotices(plan)) output.Notice(notice);
  const SessionContext context{
      .provider = provider,
      .interrupt = ProcessInterrupt(),
      .notice = [&output](const std::string& text) { output.Notice(text); },
      .progress = [&output](const std::string& text) { output.Progress(text); }};
  return peer.loopback ? RunLoopback(context, std::move(requester), output, record)
                       : RunRemote(peer, context, std::move(requester), output, record);
}

}  // namespace verbscope
