// Text that came from outside, made safe for a terminal and bounded.
//
// A peer chooses its version string and its error texts; printed as they are they could move the
// cursor, hide a line or fill the screen. Pure function, any thread.
#ifndef VERBSCOPE_TRANSPORTS_CONTROL_SANITIZE_H_
#define VERBSCOPE_TRANSPORTS_CONTROL_SANITIZE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace verbscope {

// `text` as valid UTF-8 of at most `max_bytes`, cut between characters. Newline and tab become a
// space; other control characters (C0, DEL, C1) and the invisible ones that reorder a line are
// dropped; a byte that is no UTF-8 becomes '?'.
std::string Sanitize(std::string_view text, size_t max_bytes);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_CONTROL_SANITIZE_H_
