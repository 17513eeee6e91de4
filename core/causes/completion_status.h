// What every completion status means: its name, one plain sentence, who noticed the fault, and the
// likely causes each with a check to make. A table of our own: ibv_wc_status_str is an exported
// function of libibverbs, and it says only the name in other words.
//
// Constant data; any thread.
#ifndef VERBSCOPE_CORE_CAUSES_COMPLETION_STATUS_H_
#define VERBSCOPE_CORE_CAUSES_COMPLETION_STATUS_H_

#include <infiniband/verbs.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace verbscope {

// Who noticed, as seen from the side that polled the completion.
enum class DetectedBy {
  kNobody,     // no fault
  kThisSide,   // the device here, on its own queue pair or memory
  kOtherSide,  // the peer's device, which said so in a NAK
  kSilence,    // the device here, because the expected answer never came
  kAftermath,  // nobody: the request was given up after another fault
};
std::string_view Text(DetectedBy detected_by);  // "the peer's device, by a NAK"

struct LikelyCause {
  std::string_view cause;  // half a sentence
  std::string_view check;  // what to look at or to run
};

struct CompletionStatusInfo {
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::string_view name;     // "RETRY_EXC_ERR"
  std::string_view meaning;  // one sentence without its full stop
  DetectedBy detected_by = DetectedBy::kNobody;
  std::array<LikelyCause, 3> causes = {};  // most likely first; unused ones are empty

  std::span<const LikelyCause> likely_causes() const;
};

inline constexpr size_t kCompletionStatuses = IBV_WC_TM_RNDV_INCOMPLETE + 1;

// Null for a number the table does not know, which a newer kernel may deliver.
const CompletionStatusInfo* FindCompletionStatus(ibv_wc_status status);
// By symbolic name, as it travels in an Error; null when unknown.
const CompletionStatusInfo* FindCompletionStatus(std::string_view name);
// Symbolic name, "STATUS_99" for an unknown number.
std::string NameOf(ibv_wc_status status);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CAUSES_COMPLETION_STATUS_H_
