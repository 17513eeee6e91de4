// The hello exchange: are both ends verbscope, and which protocol version do they share?
//
//   client → {"type":"hello","magic":"verbscope","protocol":{"min":1,"max":1},
//             "tool":{"name":"verbscope","version":"0.1.0"},"capabilities":["…"]}
//   server → {"type":"queued","position":2}            any number, while other clients are served
//   server → the same hello with "protocol":{…,"chosen":1}, the highest version both speak
//   or       {"type":"refuse","error":{…}}             see error_json.h
//
// Unknown members and capabilities are ignored, so that newer versions may add some; a missing
// required one (all but capabilities) refuses the peer. Each side bounds and cleans what it keeps
// of the other's text. All errors here are of class kSetup.
//
// Free functions; the Connection belongs to the calling thread.
#ifndef VERBSCOPE_TRANSPORTS_CONTROL_HANDSHAKE_H_
#define VERBSCOPE_TRANSPORTS_CONTROL_HANDSHAKE_H_

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "transports/control/connection.h"

namespace verbscope {

inline constexpr int kProtocolMin = 1;
inline constexpr int kProtocolMax = 1;
inline constexpr std::chrono::milliseconds kHelloTimeout{4000};

// What this side says of itself.
struct LocalHello {
  int protocol_min = kProtocolMin;
  int protocol_max = kProtocolMax;
  std::string tool_version = {};
  std::vector<std::string> capabilities = {};
};

// What the other side said of itself; safe to print.
struct PeerHello {
  int protocol_min = 0;
  int protocol_max = 0;
  int protocol = 0;  // the version both use from now on
  std::string tool_name;
  std::string tool_version;
  std::vector<std::string> capabilities;

  bool Has(std::string_view capability) const;
};

struct ClientHandshakeOptions {
  LocalHello local;
  // For the server's first word after the connect, and again after each "queued".
  std::chrono::milliseconds hello_timeout = kHelloTimeout;
  int interrupt_fd = -1;
  Deadline deadline = Deadline::After(std::chrono::hours(24));  // of all, queueing included
  std::function<void(int position)> on_queued;  // 1: next; called in the caller's thread
};

// Client side: says hello and waits for the server's, for ever while "queued" keeps coming (the
// server bounds the queue). On success the connection is marked as identified.
Expected<PeerHello> ClientHandshake(Connection& connection, const ClientHandshakeOptions& options);

// Server side, for one client: waits for its hello, answers, or rejects it.
Expected<PeerHello> ServerHandshake(Connection& connection, const LocalHello& local,
                                    Deadline deadline, int interrupt_fd = -1);

// The steps of ServerHandshake, for a server that awaits many clients at once (ClientQueue).

// Checks a client's first frame and picks the version.
Expected<PeerHello> ReadClientHello(const nlohmann::json& frame, const LocalHello& local);
// Answers a valid hello: from now on the client is being served.
Status SendServerHello(Connection& connection, const LocalHello& local, const PeerHello& client,
                       Deadline deadline);
// Tells a peer why it is turned away and that nothing more will come; does not wait. A verbscope
// gets a "refuse" frame; whoever spoke something else, or nothing, gets one line of text.
void Reject(Connection& connection, const Error& error);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_CONTROL_HANDSHAKE_H_
