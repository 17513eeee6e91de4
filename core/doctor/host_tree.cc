#include "core/doctor/host_tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <system_error>

#include "core/base/text_file.h"

namespace verbscope {
namespace {

constexpr int kMostCpus = 8192;  // CONFIG_NR_CPUS of any distribution is at most that

// Parts of a text between any of `separators`, without the empty ones.
std::vector<std::string> Parts(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  while (true) {
    const size_t from = text.find_first_not_of(separators);
    if (from == text.npos) return parts;
    text.remove_prefix(from);
    const size_t end = std::min(text.find_first_of(separators), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::optional<int> WholeNumber(std::string_view text) {
  int value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> HostTree::Text(const std::string& path) const {
  // A pipe or device in a copied tree would block for ever.
  struct stat about = {};
  const std::string full = root_ + path;
  if (::stat(full.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  return ReadText(full);
}

std::optional<int> HostTree::Number(const std::string& path) const {
  const std::optional<std::string> text = Text(path);
  return text ? WholeNumber(*text) : std::nullopt;
}

std::vector<std::string> HostTree::List(const std::string& path) const {
  return ListFolder(root_ + path);
}

bool HostTree::Exists(const std::string& path) const {
  return ::access((root_ + path).c_str(), F_OK) == 0;
}

bool HostTree::Writable(const std::string& path) const {
  return ::access((root_ + path).c_str(), R_OK | W_OK) == 0;
}

std::string HostTree::Why(const std::string& path) const {
  if (::access((root_ + path).c_str(), R_OK) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? "no such file" : "permission denied";
  }
  const std::optional<std::string> text = Text(path);
  return text && text->empty() ? "empty" : "cannot be read";
}

std::vector<int> CpusOf(std::string_view list) {
  std::vector<int> cpus;
  for (const std::string& part : Parts(list, ", \t\n")) {
    const size_t dash = part.find('-');
    const std::optional<int> first = WholeNumber(std::string_view(part).substr(0, dash));
    const std::optional<int> last =
        dash == part.npos ? first : WholeNumber(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus) return {};
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<std::string> WordsOf(std::string_view text) { return Parts(text, " \t\r\n"); }

std::vector<std::string> LinesOf(std::string_view text) { return Parts(text, "\n"); }

std::optional<double> LeadingNumber(std::string_view text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace verbscope
