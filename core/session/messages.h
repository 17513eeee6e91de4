// The frames of a session as data, JSON both ways. What comes from the peer is checked for type and
// range here and nowhere else; a bad frame is a kRun error that names the member.
#ifndef VERBSCOPE_CORE_SESSION_MESSAGES_H_
#define VERBSCOPE_CORE_SESSION_MESSAGES_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/endpoint/endpoint.h"
#include "core/plan/plan.h"
#include "core/record/record.h"
#include "transports/device.h"

namespace verbscope {

// Client's first frame after hello.
struct PlanMessage {
  Plan plan;
  PeerSettings peer;
};

// The server's agreement: the plan it will run, and what the client needs to choose the path.
struct PlanOkMessage {
  Plan plan;
  PortInfo port;
  std::optional<int> gid_index;  // fixed on the server's side
  std::string netdev;            // owner of the server's control address
};

// The client's choice of the path, confirmed by the server's own SetupMessage.
struct SetupMessage {
  PortInfo port;
  GidEntry gid;       // of the sender
  GidEntry peer_gid;  // of the receiver, as the sender understood it
  uint32_t path_mtu_bytes = 0;
  WaitMode wait;  // of the sender
  SideRecord side;
};

nlohmann::json ToJson(const PlanMessage& message);
Expected<PlanMessage> PlanMessageFromJson(const nlohmann::json& json);
nlohmann::json ToJson(const PlanOkMessage& message);
Expected<PlanOkMessage> PlanOkMessageFromJson(const nlohmann::json& json);
// `type` is "setup" or "setup_ok".
nlohmann::json ToJson(const SetupMessage& message, const std::string& type);
Expected<SetupMessage> SetupMessageFromJson(const nlohmann::json& json);
nlohmann::json ToJson(const EndpointInfo& info);
Expected<EndpointInfo> EndpointInfoFromJson(const nlohmann::json& json);

// The verdict of a finished run. The client's has what came of its assertions, without the results
// of each: they are in the other side's record already.
nlohmann::json VerdictMessage(const Record& record);
// The assertions of such a frame into `record.gates`.
Status TakeGates(const nlohmann::json& frame, Record& record);

// An integer member within [low, high], or an error that names it.
Expected<uint64_t> Unsigned(const nlohmann::json& json, const char* member, uint64_t low,
                            uint64_t high);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_MESSAGES_H_
