// Numbers of things, as people read them. Pure functions, any thread.
#ifndef VERBSCOPE_CORE_RECORD_COUNT_TEXT_H_
#define VERBSCOPE_CORE_RECORD_COUNT_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace verbscope {

// "45,678".
std::string CountText(uint64_t count);
// "1 QP", "2 QPs".
std::string Plural(uint64_t count, std::string_view noun);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_COUNT_TEXT_H_
