// What the text files of a Linux system say about it: pure functions of their content, so that any
// system can be tested on any other. Any thread.
#ifndef VERBSCOPE_CORE_HOST_SYSTEM_TEXT_H_
#define VERBSCOPE_CORE_HOST_SYSTEM_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace verbscope {

// PRETTY_NAME of an os-release file, without its quotes; empty when there is none.
std::string PrettyNameOf(std::string_view os_release);

// A label for the processor from /proc/cpuinfo: the model name where the architecture gives one,
// else the implementer and part numbers ("Arm part 0xd0c"); empty when the file says neither.
std::string CpuModelOf(std::string_view cpuinfo);

// A size row of /proc/self/status such as "VmHWM:   1234 kB", in bytes.
std::optional<uint64_t> StatusBytes(std::string_view status, std::string_view key);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_HOST_SYSTEM_TEXT_H_
