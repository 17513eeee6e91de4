// The client's way through any command with a peer: connect, hello, session, report; or, with
// --loopback, both ends in this process over a socket pair, through the same session code.
#ifndef VERBSCOPE_CMD_CLIENT_H_
#define VERBSCOPE_CMD_CLIENT_H_

#include "cmd/options.h"
#include "cmd/output.h"
#include "core/gates/judge.h"
#include "core/plan/plan.h"
#include "core/record/record.h"
#include "transports/device.h"

namespace verbscope {

struct ClientOptions {
  PeerOptions peer;
  LocalOptions local;
};

// Runs the plan and fills the record. Returns when the run is over; the caller calls
// output.Finish().
Status RunClient(const ClientOptions& options, const Plan& plan, const Gates& gates,
                 DeviceProvider& provider, Output& output, Record& record);

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_CLIENT_H_
