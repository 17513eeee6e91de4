// Version of the tool, as hello frames and documents carry it.
#ifndef VERBSCOPE_CMD_VERSION_H_
#define VERBSCOPE_CMD_VERSION_H_

namespace verbscope {

inline constexpr char kVersion[] = "0.1.0";

// How this binary was built; results of another build are no baseline.
#if defined(__SANITIZE_THREAD__)
inline constexpr char kBuild[] = "tsan";
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr char kBuild[] = "asan";
#elif defined(__OPTIMIZE__)
inline constexpr char kBuild[] = "opt";
#else
inline constexpr char kBuild[] = "debug";
#endif

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_VERSION_H_
