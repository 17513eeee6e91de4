// Promises that the soft device is asked to break: a closed set of named defects, so that a check
// of verbs semantics can be shown to find each of them. None by default.
//
// Plain values, copied when the device is opened; any thread. The engine asks a defect where it is
// at a decision anyway: one load and one test. Under every defect the device stays safe for memory:
// it touches nothing that the honest device would not be allowed to touch.
//
//   if (env.Has(Defect::kNoFence)) …
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_DEFECTS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_DEFECTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace verbscope::soft {

enum class Defect : uint8_t {
  kNoRights,
  kNoFence,
  kCopyAtPost,
  kInlineByReference,
  kAnyTransition,
  kWrongBadWr,
  kSignalAll,
  kSolicitedWakesNot,
  kStaysArmed,
  kNoFlush,
  kNoAsync,
  kNoSrqLimit,
  kLazyAtomic,
  kEmptyKey,
  kRnrGivesUpNever,
  kNoPd,
  kNoBounds,
  kBusyDestroy,
  kUnackedDestroy,
  kOverstatedLimits,
  kSilentOverrun,
  kEarlyCompletion,
  kOverInline,
  kNoImmReceive,
  kWriteTakesReceive,
  kWrongStatus,
  kForeignEvent,
};

struct DefectRow {
  Defect defect;
  std::string_view name;    // as options spell it
  std::string_view breaks;  // the promise
};

// In order of Defect.
inline constexpr auto kDefects = std::to_array<DefectRow>({
    {Defect::kNoRights, "no-rights", "a peer needs the rights of the MR and of the QP"},
    {Defect::kNoFence, "no-fence", "a fenced request waits for the READs and atomics before it"},
    {Defect::kCopyAtPost, "copy-at-post", "a repetition sends what the buffer holds then"},
    {Defect::kInlineByReference, "inline-by-reference", "inline data is taken by the post"},
    {Defect::kAnyTransition, "any-transition", "a QP takes only the transitions of its state"},
    {Defect::kWrongBadWr, "wrong-bad-wr", "bad_wr is the first request that was not posted"},
    {Defect::kSignalAll, "signal-all", "an unsignalled request that succeeds has no completion"},
    {Defect::kSolicitedWakesNot, "solicited-wakes-not",
     "a CQ armed for solicited completions sleeps through others"},
    {Defect::kStaysArmed, "stays-armed", "an arm is good for one event"},
    {Defect::kNoFlush, "no-flush", "each outstanding request of a QP in ERR has a completion"},
    {Defect::kNoAsync, "no-async", "asynchronous events are reported"},
    {Defect::kNoSrqLimit, "no-srq-limit", "an SRQ below its limit raises an event"},
    {Defect::kLazyAtomic, "lazy-atomic", "an atomic stores its result"},
    {Defect::kEmptyKey, "empty-key", "an access of no bytes checks no key"},
    {Defect::kRnrGivesUpNever, "rnr-gives-up-never", "rnr_retry below 7 is a number of retries"},
    {Defect::kNoPd, "no-pd", "an MR serves its own protection domain only"},
    {Defect::kNoBounds, "no-bounds", "a peer's access ends with the MR"},
    {Defect::kBusyDestroy, "busy-destroy", "a PD, CQ or channel in use cannot be destroyed"},
    {Defect::kUnackedDestroy, "unacked-destroy", "a CQ waits for its events to be acknowledged"},
    {Defect::kOverstatedLimits, "overstated-limits", "a queue of the reported limit can be made"},
    {Defect::kSilentOverrun, "silent-overrun", "a CQ that overruns goes into error"},
    {Defect::kEarlyCompletion, "early-completion", "a success means that the peer has answered"},
    {Defect::kOverInline, "over-inline", "inline data beyond the limit is refused"},
    {Defect::kNoImmReceive, "no-imm-receive", "a WRITE with immediate takes a receive"},
    {Defect::kWriteTakesReceive, "write-takes-receive", "a plain WRITE takes no receive"},
    {Defect::kWrongStatus, "wrong-status", "a receive that is too short ends with LOC_LEN_ERR"},
    {Defect::kForeignEvent, "foreign-event", "a completion event names the CQ it is of"},
});
static_assert([] {
  for (size_t i = 0; i < kDefects.size(); ++i) {
    if (static_cast<size_t>(kDefects[i].defect) != i) return false;
  }
  return kDefects.back().defect == Defect::kForeignEvent && kDefects.size() <= 32;
}());

// Any number of them.
class Defects {
 public:
  constexpr Defects() = default;
  constexpr Defects(std::initializer_list<Defect> defects) {
    for (const Defect defect : defects) Add(defect);
  }

  constexpr bool Has(Defect defect) const { return (bits_ & BitOf(defect)) != 0; }
  constexpr void Add(Defect defect) { bits_ |= BitOf(defect); }
  friend constexpr bool operator==(const Defects&, const Defects&) = default;

 private:
  static constexpr uint32_t BitOf(Defect defect) {
    return uint32_t{1} << static_cast<uint32_t>(defect);
  }
  uint32_t bits_ = 0;
};

// nullopt: no such name.
constexpr std::optional<Defect> DefectOf(std::string_view name) {
  for (const DefectRow& row : kDefects) {
    if (row.name == name) return row.defect;
  }
  return std::nullopt;
}

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_DEFECTS_H_
