// Private to core/gates; a pure function, any thread.
#ifndef VERBSCOPE_CORE_GATES_TRIMMED_H_
#define VERBSCOPE_CORE_GATES_TRIMMED_H_

#include <string_view>

namespace verbscope {

// Without blanks at the ends.
inline std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_GATES_TRIMMED_H_
