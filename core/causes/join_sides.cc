#include "core/causes/join_sides.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "core/causes/completion_status.h"

namespace verbscope {
namespace {

// How much an error knows of the root of a fault; higher is closer.
enum class Knowledge { kEcho, kFlush, kOther, kSilence, kNak, kOnTheSpot, kInterrupted };

Knowledge KnowledgeOf(const Error& error) {
  if (error.error_class == ErrorClass::kInterrupted) return Knowledge::kInterrupted;
  // Whoever names the other side as the one that saw it has seen nothing himself.
  if (error.side == Side::kPeer) return Knowledge::kEcho;
  if (error.status.empty()) return Knowledge::kOther;
  const CompletionStatusInfo* info = FindCompletionStatus(error.status);
  if (info == nullptr) return Knowledge::kOnTheSpot;  // a newer peer's status: as good as any
  switch (info->detected_by) {
    case DetectedBy::kNobody:
      return Knowledge::kOther;
    case DetectedBy::kThisSide:
      return Knowledge::kOnTheSpot;
    case DetectedBy::kOtherSide:
      return Knowledge::kNak;
    case DetectedBy::kSilence:
      return Knowledge::kSilence;
    case DetectedBy::kAftermath:
      return Knowledge::kFlush;
  }
  return Knowledge::kOther;
}

// Pairs of statuses by which one fault appears on both sides: the responder's own, and what its NAK
// becomes at the requester (InfiniBand specification, responder fault behaviour).
struct TwoFaces {
  std::string_view responder;
  std::string_view requester;
};
constexpr std::array<TwoFaces, 6> kOneFault = {{
    {"LOC_LEN_ERR", "REM_INV_REQ_ERR"},
    {"LOC_QP_OP_ERR", "REM_INV_REQ_ERR"},
    {"LOC_ACCESS_ERR", "REM_ACCESS_ERR"},
    {"LOC_PROT_ERR", "REM_ACCESS_ERR"},
    {"LOC_PROT_ERR", "REM_OP_ERR"},
    {"LOC_QP_OP_ERR", "REM_OP_ERR"},
}};

bool AreOneFault(const Error& a, const Error& b) {
  for (const TwoFaces& row : kOneFault) {
    if (a.status == row.responder && b.status == row.requester) return true;
    if (b.status == row.responder && a.status == row.requester) return true;
  }
  return false;
}

// True when the peer's error is the one to show. Of two equals the smaller text wins, whichever
// side asks, so that both sides name the same cause.
bool PeerKnowsMore(const Error& own, const Error& peer) {
  const Knowledge here = KnowledgeOf(own);
  const Knowledge there = KnowledgeOf(peer);
  if (here != there) return there > here;
  if (here == Knowledge::kEcho) return false;  // two echoes: neither knows the cause
  if (own.status != peer.status) return peer.status < own.status;
  return false;
}

std::string Addition(const Error& shown, const Error& other, bool other_is_peer) {
  const Knowledge knowledge = KnowledgeOf(other);
  if (knowledge == Knowledge::kEcho || knowledge == Knowledge::kFlush) return {};
  // After an interruption the other side breaks in one way or another: no news.
  if (KnowledgeOf(shown) == Knowledge::kInterrupted) return {};
  const std::string who = other_is_peer ? "the peer" : "this side";
  if (AreOneFault(shown, other)) return "; " + who + " saw the same fault as " + other.status;
  if (!other.status.empty() && other.status == shown.status) return "; " + who + " saw it too";
  return "; " + who + " reports" +
         (other.status.empty() ? ": " + other.message : " " + other.status);
}

}  // namespace

Error JoinSides(const Error& own, const Error& peer) {
  const bool show_peer = PeerKnowsMore(own, peer);
  const Error& other = show_peer ? own : peer;
  Error joined = show_peer ? peer : own;
  const std::string addition = Addition(joined, other, /*other_is_peer=*/!show_peer);
  if (show_peer) {
    joined.message = "the peer reports: " + joined.message;
    // Interrupted there is not interrupted here: the exit codes differ.
    if (joined.error_class == ErrorClass::kInterrupted) joined.error_class = ErrorClass::kRun;
    joined.side = Side::kPeer;
    // "The peer" in these texts is this side; say whose words they are.
    if (!joined.cause.empty()) joined.cause = "as the peer sees it, " + joined.cause;
    if (!joined.next_step.empty()) joined.next_step = "from the peer: " + joined.next_step;
  }
  joined.message += addition;
  if (joined.cause.empty()) joined.cause = other.cause;
  if (joined.next_step.empty()) joined.next_step = other.next_step;
  return joined;
}

}  // namespace verbscope
