// The rule books of the engine, apart from it so that options can name them without it.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_PROFILE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_PROFILE_H_

#include <cstdint>
#include <string_view>

namespace verbscope::soft {

// Which rule book decides where devices differ.
enum class Profile : uint8_t {
  kIbta,   // what the specification says and good NICs do
  kRxe61,  // Linux 6.1's rxe, measured, for comparisons
};

// As options and reports spell it.
inline std::string_view Name(Profile profile) {
  return profile == Profile::kRxe61 ? "rxe-6.1" : "ibta";
}

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_PROFILE_H_
