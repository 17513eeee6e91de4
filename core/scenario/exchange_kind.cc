// What kinds of exchanges have in common.
#include <algorithm>

#include "core/scenario/exchange.h"
#include "core/scenario/message_check.h"

namespace verbscope {

std::string FormText(ReceiveForm form) {
  switch (form) {
    case ReceiveForm::kNoSge:
      return "receive with no SGE";
    case ReceiveForm::kEmptySge:
      return "receive with one SGE of length 0";
    case ReceiveForm::kNullSge:
      return "receive with one SGE of length 0 at address 0";
    case ReceiveForm::kBuffer:
      break;
  }
  return "receive as long as the message";
}

uint64_t SlotsFor(uint64_t size_bytes) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 20;
  return std::clamp<uint64_t>(kMostBytes / SlotBytes(size_bytes), 4, 16);
}

}  // namespace verbscope
