// What an RDMA system does, behaviour by behaviour, and the command or check that shows each: the
// map from what one wants to know to what to run. Constant data; any thread.
#ifndef VERBSCOPE_CORE_CHECKS_BEHAVIOURS_H_
#define VERBSCOPE_CORE_CHECKS_BEHAVIOURS_H_

#include <span>
#include <string_view>

namespace verbscope {

struct Behaviour {
  std::string_view id;        // "B6": a group's letter, and its place there
  std::string_view text;      // half a sentence or more
  std::string_view shown_by;  // "check bad-wr, verb-cost"
};
std::span<const Behaviour> Behaviours();

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CHECKS_BEHAVIOURS_H_
