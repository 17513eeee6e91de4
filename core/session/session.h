// The two roles of a run. The requester (client) carries the plan, the responder (server) agrees or
// refuses; then both do the same steps on their own side:
//
//   hello (transports/control)
//   plan ->            <- plan_ok (bounded plan, port, GID table)  or abort (refused)
//   setup ->           <- setup_ok                 GID pair, path MTU, way of waiting of each side
//   for every repeat and size:
//     endpoint <->     QPN, PSN, LID, GID, rkey, address, blob
//     barrier "ready"  both QPs in RTS, receives posted
//     warm-up, then measured phase: the requester ends each with "done"; barrier after each
//     result <->       one frame each
//   (of a command of steps every scenario of core/scenario instead, with frames of its own)
//   side <->           what ran where, with the clock's drift
//   verdict <->, goodbye
//
// Either side may send "abort" with its Error at any step. During the run the control thread of
// PeerLink watches the connection; a dead or silent peer ends the run within 5 s with a partial
// record. After a failure both sides exchange their first real error.
//
// A session runs on the calling thread, which is also the measuring thread; it blocks until the run
// is over. Nothing here writes to standard output.
#ifndef VERBSCOPE_CORE_SESSION_SESSION_H_
#define VERBSCOPE_CORE_SESSION_SESSION_H_

#include <chrono>

#include "core/base/deadline.h"
#include "core/gates/judge.h"
#include "core/plan/plan.h"
#include "core/record/record.h"
#include "core/selection/control_path.h"
#include "core/session/context.h"
#include "transports/control/connection.h"

namespace verbscope {

struct RequesterOptions {
  Plan plan;
  LocalSettings settings;
  PeerSettings peer;
  ControlPath control_path;
  Gates gates = {};  // judged here; the responder hears what came of them
  // Of the whole command, connecting and queueing included.
  Deadline deadline = Deadline::After(std::chrono::hours(24));
};

struct ResponderOptions {
  LocalSettings settings = {};
  ServerLimits limits = {};
  ControlPath control_path = {};
  bool allow_peer_settings = true;  // whether a client may choose device, CPU, … of this side
};

// Both take a connection whose hello is done and fill `record` (plan, local, remote, results,
// notices, error, verdict, exit_code), also when they fail.
void RunRequester(Connection connection, const SessionContext& context,
                  const RequesterOptions& options, Record& record);
void RunResponder(Connection connection, const SessionContext& context,
                  const ResponderOptions& options, Record& record);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_SESSION_H_
