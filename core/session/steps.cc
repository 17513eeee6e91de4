#include "core/session/steps.h"

#include <fmt/core.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "core/record/record_json.h"

namespace verbscope {
namespace {

Deadline StepDeadline(Deadline session) {
  return Deadline::Earlier(session, Deadline::After(kStepTime));
}

// What went wrong at the peer, in terms of this side's exit code.
Error Reclassed(Error error, Deadline session) {
  if (error.side == Side::kPeer) {
    if (error.error_class == ErrorClass::kInterrupted ||
        error.error_class == ErrorClass::kDeadline || error.error_class == ErrorClass::kInternal) {
      error.error_class = ErrorClass::kRun;
    }
  } else if (error.errno_value == ETIMEDOUT && session.Passed()) {
    error.error_class = ErrorClass::kDeadline;
  }
  return error;
}

}  // namespace

Status SendFrame(PeerLink& link, const nlohmann::json& frame, Deadline session) {
  Status status = link.Send(frame, StepDeadline(session));
  if (!status) return Fail(Reclassed(std::move(status.error()), session));
  return status;
}

Expected<nlohmann::json> ReceiveFrame(PeerLink& link, std::string_view type, Deadline session) {
  Expected<nlohmann::json> frame = link.Receive(type, StepDeadline(session));
  if (!frame) return Fail(Reclassed(std::move(frame.error()), session));
  return frame;
}

Status Barrier(PeerLink& link, std::string_view name, Deadline session) {
  const nlohmann::json frame = {{"type", "barrier"}, {"name", name}};
  if (Status status = SendFrame(link, frame, session); !status) return status;
  Expected<nlohmann::json> received = ReceiveFrame(link, "barrier", session);
  if (!received) return Fail(std::move(received.error()));
  const auto peer_name = received->find("name");
  if (peer_name != received->end() && *peer_name == name) return {};
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message = fmt::format("this side is at barrier \"{}\", the peer at another", name);
  error.cause = "two versions that do not understand each other";
  error.next_step = "run the same verbscope version on both hosts";
  return Fail(std::move(error));
}

Error WhyPeerLost(PeerLink& link) {
  const Deadline deadline = Deadline::After(std::chrono::seconds(1));
  return Reclassed(link.WhyLost(deadline), deadline);
}

Error InterruptedError() {
  Error error;
  error.error_class = ErrorClass::kInterrupted;
  error.message = "interrupted by a signal; what was measured until then is in the report";
  error.next_step = "run it again, with a shorter --duration if it took too long";
  return error;
}

Error OwnInterruptFirst(Error error, bool interrupted) {
  return interrupted ? InterruptedError() : std::move(error);
}

Error DeadlineError(const Plan& plan) {
  Error error;
  error.error_class = ErrorClass::kDeadline;
  error.message = fmt::format("the deadline of {} for the whole command has passed",
                              DurationText(EffectiveDeadlineNs(plan)));
  error.cause = "messages took longer than planned, or the peer is slow";
  error.next_step = "give --deadline a longer time, or measure less";
  return error;
}

void DrainCompletions(const Endpoint& endpoint, CompletionLog& log, Deadline deadline) {
  bool real = false;
  const auto drain = [&log, &real](ibv_cq* cq) {
    ibv_wc wc;
    while (ibv_poll_cq(cq, 1, &wc) > 0) {
      real = real || (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR);
      log.Add(wc);
    }
  };
  // The first real error may be in either queue and may come a little after the first flush.
  do {
    drain(endpoint.send_cq());
    drain(endpoint.recv_cq());
  } while (!real && !deadline.Passed());
}

std::map<std::string, int64_t> Farewell::PeerCounters() const {
  constexpr size_t kMostCounters = 1024;
  constexpr size_t kMostNameBytes = 128;
  std::map<std::string, int64_t> counters;
  const nlohmann::json evidence = link_.AbortEvidence();
  const auto object = evidence.find("counters");
  if (object == evidence.end() || !object->is_object() || object->size() > kMostCounters) return {};
  for (const auto& [name, change] : object->items()) {
    if (!change.is_number_integer()) continue;
    counters[Printable(name, kMostNameBytes)] = change.get<int64_t>();
  }
  return counters;
}

Error Farewell::Conclude(Error own, const std::map<std::string, int64_t>& counters) {
  constexpr std::chrono::milliseconds kLastWords(700);
  if (said_) return own;
  said_ = true;
  // Even a peer that told us first, or that broke the rules, is told what we make of it.
  link_.SendAbort(own,
                  counters.empty() ? nlohmann::json() : nlohmann::json{{"counters", counters}});
  if (own.side == Side::kPeer) return own;
  if (own.error_class == ErrorClass::kInterrupted) return own;
  // The peer answers with its own first error or just leaves.
  const Status answer = link_.Goodbye(Deadline::After(kLastWords));
  if (answer || answer.error().side != Side::kPeer) return own;
  return JoinSides(own, answer.error());
}

}  // namespace verbscope
