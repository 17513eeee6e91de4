// What hooks of the device decide, for options and engine alike: what becomes of a completion, and
// of the data of a message. See options/hook_options.h.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_HOOK_VERDICTS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_HOOK_VERDICTS_H_

#include <cstdint>

namespace verbscope::soft {

// Which queue the completed request was in; the opcode of a failed completion does not tell.
enum class CompletionKind : uint8_t { kSend, kReceive };

enum class CompletionFate : uint8_t {
  kDeliver,
  kDrop,        // the program never sees it; its queue slots are free as if it had
  kHoldBehind,  // comes behind the next one of its CQ
};

// What becomes of the last packet of a message. It is acknowledged or completed all the same.
struct DataVerdict {
  bool flip_bit = false;    // one bit is wrong
  bool skip_last = false;   // it is not stored
  bool write_past = false;  // the byte behind it is overwritten

  friend bool operator==(const DataVerdict&, const DataVerdict&) = default;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_HOOK_VERDICTS_H_
