// Small readers for the kernel's text files.
//
// Pure reads; any thread. Nothing here is an error: a file that is missing or cannot be read is a
// value that is not known.
#ifndef VERBSCOPE_CORE_BASE_TEXT_FILE_H_
#define VERBSCOPE_CORE_BASE_TEXT_FILE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

// Whole text of a file less trailing white space and zero bytes; nullopt when it cannot be read.
// Reading can fail although the file exists: sysfs answers EINVAL for an empty GID slot.
std::optional<std::string> ReadText(const std::string& path);

// The whole text as a decimal number; nullopt when it cannot be read or is none.
std::optional<int> ReadInt(const std::string& path);

// Text after "KEY" + `separator` on the first line that starts so, white space trimmed; nullopt
// when there is no such line. For /proc/meminfo (':') and uevent files ('=').
std::optional<std::string> ValueOfKey(std::string_view text, std::string_view key, char separator);

// Names in a folder, sorted, without hidden ones; empty when the folder cannot be read.
std::vector<std::string> ListFolder(const std::string& path);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_BASE_TEXT_FILE_H_
