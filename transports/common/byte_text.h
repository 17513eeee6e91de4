// Sizes in bytes as text for messages. Pure; any thread.
#ifndef VERBSCOPE_TRANSPORTS_COMMON_BYTE_TEXT_H_
#define VERBSCOPE_TRANSPORTS_COMMON_BYTE_TEXT_H_

#include <cstdint>
#include <string>

namespace verbscope {

// "64 KiB", "1.5 MiB", "100 bytes".
std::string FormatBytes(uint64_t bytes);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_COMMON_BYTE_TEXT_H_
