// The files of a host: this one's, or a copy of another's under a folder of its own.
//
// Every row of the preflight is read through one HostTree, so a hand-made tree and a tree from a
// support archive are judged by the same code as this host. A value object; any thread.
#ifndef VERBSCOPE_CORE_DOCTOR_HOST_TREE_H_
#define VERBSCOPE_CORE_DOCTOR_HOST_TREE_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace verbscope {

class HostTree {
 public:
  // `root` stands for "/"; empty: this host's own.
  explicit HostTree(std::string root = {}) : root_(std::move(root)) {}

  // All paths are those of the host that is read ("/sys/class/net/eth0/mtu").

  // Text of a regular file less trailing white space and zero bytes; nullopt when it cannot be
  // read.
  std::optional<std::string> Text(const std::string& path) const;
  // The same as a decimal number, nullopt when it is none.
  std::optional<int> Number(const std::string& path) const;
  // Names in a folder, sorted; empty when it cannot be read.
  std::vector<std::string> List(const std::string& path) const;
  bool Exists(const std::string& path) const;
  // Whether this process may read and write it.
  bool Writable(const std::string& path) const;
  // Why Text has no value: "no such file", "permission denied", "empty", "cannot be read".
  std::string Why(const std::string& path) const;

 private:
  std::string root_;
};

// "0-3,8" as a list, ascending as written; empty for a text that is none. At most 8192 CPUs.
std::vector<int> CpusOf(std::string_view list);
// The words of a text between white space.
std::vector<std::string> WordsOf(std::string_view text);
// Its lines, without the empty ones.
std::vector<std::string> LinesOf(std::string_view text);
// The number that a text begins with; nullopt when it begins with none.
std::optional<double> LeadingNumber(std::string_view text);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_DOCTOR_HOST_TREE_H_
