#include "core/host/system_text.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <utility>

namespace verbscope {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// The value of the first line "KEY SEPARATOR VALUE", trimmed; empty when there is none.
std::string_view ValueOf(std::string_view text, std::string_view key, char separator) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t at = line.find(separator);
    if (at == std::string_view::npos || Trim(line.substr(0, at)) != key) continue;
    return Trim(line.substr(at + 1));
  }
  return {};
}

// Implementer codes of the main id register (Arm architecture reference manual, MIDR_EL1).
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kImplementers = {{
    {"0x41", "Arm"},
    {"0x43", "Cavium"},
    {"0x46", "Fujitsu"},
    {"0x48", "HiSilicon"},
    {"0x4e", "NVIDIA"},
    {"0x51", "Qualcomm"},
    {"0x61", "Apple"},
    {"0xc0", "Ampere"},
}};

}  // namespace

std::string PrettyNameOf(std::string_view os_release) {
  const std::string_view value = ValueOf(os_release, "PRETTY_NAME", '=');
  const bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
                      value.back() == value.front();
  if (!quoted) return std::string(value);
  // Quoted as in a shell: a backslash makes the next character literal.
  std::string name;
  for (size_t i = 1; i + 1 < value.size(); ++i) {
    if (value[i] == '\\' && value.front() == '"' && i + 2 < value.size()) ++i;
    name += value[i];
  }
  return name;
}

std::string CpuModelOf(std::string_view cpuinfo) {
  // x86 and some Arm kernels; MIPS; POWER; RISC-V.
  for (const std::string_view key : {"model name", "cpu model", "cpu", "uarch"}) {
    const std::string_view value = ValueOf(cpuinfo, key, ':');
    if (!value.empty()) return std::string(value);
  }
  const std::string_view implementer = ValueOf(cpuinfo, "CPU implementer", ':');
  const std::string_view part = ValueOf(cpuinfo, "CPU part", ':');
  if (implementer.empty() || part.empty()) return {};
  for (const auto& [code, name] : kImplementers) {
    if (code == implementer) return fmt::format("{} part {}", name, part);
  }
  return fmt::format("implementer {} part {}", implementer, part);
}

std::optional<uint64_t> StatusBytes(std::string_view status, std::string_view key) {
  const std::string_view value = ValueOf(status, key, ':');
  uint64_t kibibytes = 0;
  const char* end = value.data() + value.size();
  const auto [last, error] = std::from_chars(value.data(), end, kibibytes);
  constexpr uint64_t kBytes = 1024;
  if (error != std::errc() || std::string_view(last, static_cast<size_t>(end - last)) != " kB" ||
      kibibytes > UINT64_MAX / kBytes) {
    return std::nullopt;
  }
  return kibibytes * kBytes;
}

}  // namespace verbscope
