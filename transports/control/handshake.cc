#include "transports/control/handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "transports/control/error_json.h"
#include "transports/control/sanitize.h"

namespace verbscope {
namespace {

using nlohmann::json;

constexpr std::string_view kMagic = "verbscope";
constexpr std::string_view kFarewell =
    "verbscope: this port speaks the verbscope control protocol; connect with `verbscope COMMAND "
    "HOST`\n";
constexpr size_t kMaxTextBytes = 64;
constexpr size_t kMaxCapabilities = 64;
constexpr int kMaxProtocol = 1'000'000;  // anything above is garbage

const json* Member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

std::string Text(const json* value) {
  if (value == nullptr || !value->is_string()) return {};
  return Sanitize(value->get_ref<const std::string&>(), kMaxTextBytes);
}

// 1 … kMaxProtocol, or 0 for anything else.
int Version(const json* value) {
  if (value == nullptr || !value->is_number_integer()) return 0;
  if (value->is_number_unsigned() && value->get<uint64_t>() > kMaxProtocol) return 0;
  const auto number = value->get<int64_t>();
  return number >= 1 && number <= kMaxProtocol ? static_cast<int>(number) : 0;
}

std::string TypeOf(const json& frame) { return Text(Member(frame, "type")); }

std::string Missing(std::string_view member) {
  return fmt::format("the peer's hello has no valid \"{}\"", member);
}

// All of a hello but the chosen version.
Expected<PeerHello> ReadHello(const json& frame) {
  if (TypeOf(frame) != "hello") {
    return Fail(
        SetupError(fmt::format("protocol: expected \"hello\" first, got \"{}\"", TypeOf(frame))));
  }
  if (Text(Member(frame, "magic")) != kMagic) return Fail(SetupError(Missing("magic")));
  PeerHello hello;
  if (const json* protocol = Member(frame, "protocol"); protocol != nullptr) {
    hello.protocol_min = Version(Member(*protocol, "min"));
    hello.protocol_max = Version(Member(*protocol, "max"));
    hello.protocol = Version(Member(*protocol, "chosen"));
  }
  if (hello.protocol_min == 0 || hello.protocol_max < hello.protocol_min) {
    return Fail(SetupError(Missing("protocol")));
  }
  if (const json* tool = Member(frame, "tool"); tool != nullptr) {
    hello.tool_name = Text(Member(*tool, "name"));
    hello.tool_version = Text(Member(*tool, "version"));
  }
  if (hello.tool_name.empty() || hello.tool_version.empty()) {
    return Fail(SetupError(Missing("tool")));
  }
  const json* capabilities = Member(frame, "capabilities");
  if (capabilities == nullptr || !capabilities->is_array()) return hello;
  for (const json& capability : *capabilities) {
    if (hello.capabilities.size() == kMaxCapabilities) break;
    if (capability.is_string()) hello.capabilities.push_back(Text(&capability));
  }
  return hello;
}

json MakeHello(const LocalHello& local, std::optional<int> chosen) {
  json protocol = {{"min", local.protocol_min}, {"max", local.protocol_max}};
  if (chosen) protocol["chosen"] = *chosen;
  return {{"type", "hello"},
          {"magic", kMagic},
          {"protocol", std::move(protocol)},
          {"tool", {{"name", kMagic}, {"version", local.tool_version}}},
          {"capabilities", local.capabilities}};
}

std::string Range(int min, int max) {
  return min == max ? fmt::format("version {}", min) : fmt::format("versions {} to {}", min, max);
}

Error NoCommonVersion(const LocalHello& local, const PeerHello& client) {
  return SetupError(
      fmt::format("no common control protocol: the client ({} {}) speaks {}, the server "
                  "(verbscope {}) {}",
                  client.tool_name, client.tool_version,
                  Range(client.protocol_min, client.protocol_max), local.tool_version,
                  Range(local.protocol_min, local.protocol_max)),
      "the two sides are of different releases", "install the same version on both");
}

// The client's words for a connection that ended or stayed silent before the server's hello.
Error NoHello(const Connection& connection, Error error, const ClientHandshakeOptions& options) {
  if (error.error_class == ErrorClass::kInterrupted) return error;
  const std::string server = connection.remote_address().ToText();
  const bool silent = connection.bytes_received() == 0;
  if (error.errno_value == ETIMEDOUT && silent) {
    return SetupError(
        fmt::format("server {} accepted the connection but said nothing for {:.3g} s", server,
                    std::chrono::duration<double>(options.hello_timeout).count()),
        "it is a stopped process, or speaks another protocol",
        "check what listens on that port: ss -tlnp");
  }
  if (error.errno_value == ETIMEDOUT) {
    error.cause = "the server stopped in the middle of a word, or speaks another protocol";
  } else if (connection.end() == ConnectionEnd::kForeign) {
    error.next_step = "start `verbscope serve` there, or give its port with --port";
  } else if (connection.end() != ConnectionEnd::kOpen && silent) {
    error.cause =
        "the server stopped, or speaks another protocol (perftest servers close like this)";
    error.next_step = "check that `verbscope serve` runs there, and its port";
  }
  return error;
}

Error Refusal(const Connection& connection, const json& frame) {
  const json* object = Member(frame, "error");
  Error error = ErrorFromWire(object == nullptr ? json() : *object);
  error.error_class = ErrorClass::kSetup;
  error.side = Side::kPeer;
  error.message =
      fmt::format("server {} refused: {}", connection.remote_address().ToText(), error.message);
  return error;
}

Expected<PeerHello> ReadServerHello(const json& frame, const LocalHello& local) {
  auto hello = ReadHello(frame);
  if (!hello) return hello;
  if (hello->protocol < local.protocol_min || hello->protocol > local.protocol_max) {
    return Fail(SetupError(fmt::format(
        "the server ({} {}) chose protocol version {}, this client (verbscope {}) speaks {}",
        hello->tool_name, hello->tool_version, hello->protocol, local.tool_version,
        Range(local.protocol_min, local.protocol_max))));
  }
  return hello;
}

}  // namespace

bool PeerHello::Has(std::string_view capability) const {
  return std::find(capabilities.begin(), capabilities.end(), capability) != capabilities.end();
}

Expected<PeerHello> ClientHandshake(Connection& connection, const ClientHandshakeOptions& options) {
  Deadline deadline = Deadline::Earlier(options.deadline, Deadline::After(options.hello_timeout));
  const Status said = connection.Send(MakeHello(options.local, std::nullopt), deadline);
  // A server that refuses at once may have closed already; its reason is still to be read.
  if (!said && said.error().error_class == ErrorClass::kInternal) return Fail(said.error());
  while (true) {
    auto frame = connection.Receive(deadline, options.interrupt_fd);
    if (!frame) return Fail(NoHello(connection, frame.error(), options));
    const std::string type = TypeOf(*frame);
    if (type == "refuse") return Fail(Refusal(connection, *frame));
    if (type == "queued") {
      deadline = Deadline::Earlier(options.deadline, Deadline::After(options.hello_timeout));
      const int position = Version(Member(*frame, "position"));
      if (options.on_queued) options.on_queued(position);
      continue;
    }
    auto hello = ReadServerHello(*frame, options.local);
    if (hello) connection.MarkIdentified();
    return hello;
  }
}

Expected<PeerHello> ReadClientHello(const json& frame, const LocalHello& local) {
  auto hello = ReadHello(frame);
  if (!hello) return hello;
  hello->protocol = std::min(hello->protocol_max, local.protocol_max);
  if (hello->protocol < std::max(hello->protocol_min, local.protocol_min)) {
    return Fail(NoCommonVersion(local, *hello));
  }
  return hello;
}

Status SendServerHello(Connection& connection, const LocalHello& local, const PeerHello& client,
                       Deadline deadline) {
  Status sent = connection.Send(MakeHello(local, client.protocol), deadline);
  if (sent) connection.MarkIdentified();
  return sent;
}

void Reject(Connection& connection, const Error& error) {
  // A verbscope client speaks first: whoever has said nothing is none.
  if (connection.foreign() != ForeignPeer::kNone || connection.bytes_received() == 0) {
    connection.SendText(kFarewell);
  } else {
    [[maybe_unused]] const auto sent =
        connection.TrySend({{"type", "refuse"}, {"error", ErrorToWire(error)}});
  }
  connection.Shutdown(/*both=*/false);
}

Expected<PeerHello> ServerHandshake(Connection& connection, const LocalHello& local,
                                    Deadline deadline, int interrupt_fd) {
  auto frame = connection.Receive(deadline, interrupt_fd);
  if (!frame) {
    Reject(connection, frame.error());
    return Fail(frame.error());
  }
  auto hello = ReadClientHello(*frame, local);
  if (!hello) {
    Reject(connection, hello.error());
    return hello;
  }
  if (const Status sent = SendServerHello(connection, local, *hello, deadline); !sent) {
    return Fail(sent.error());
  }
  return hello;
}

}  // namespace verbscope
