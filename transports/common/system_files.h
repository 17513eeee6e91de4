// Where the kernel's own files lie, and small readers for them. The roots can be moved, so tests
// read a hand-made tree instead of this host's.
//
// Plain values and pure reads; any thread. Nothing here is an error: a file that is missing or
// cannot be read is a value that is not known.
#ifndef VERBSCOPE_TRANSPORTS_COMMON_SYSTEM_FILES_H_
#define VERBSCOPE_TRANSPORTS_COMMON_SYSTEM_FILES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

struct SystemPaths {
  std::string sysfs = "/sys";
  std::string dev = "/dev";
  std::string proc = "/proc";

  // sysfs folder of one RDMA device.
  std::string Ibdev(std::string_view name) const;
  // sysfs folder of one of its ports, counted from 1.
  std::string Port(std::string_view name, int port) const;
  // The character device through which libibverbs talks to the kernel ("uverbs0").
  std::string UverbsNode(std::string_view uverbs_name) const;
};

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

#endif  // VERBSCOPE_TRANSPORTS_COMMON_SYSTEM_FILES_H_
