#include "transports/ibverbs/completion_vector.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

namespace verbscope {
namespace {

// Whether a driver's name for an interrupt says "completion vector N": "mlx5_comp3@pci:0000:…".
bool NamesVector(std::string_view name, int vector) {
  const std::string wanted = fmt::format("comp{}", vector);
  const size_t found = name.rfind(wanted);
  if (found == std::string_view::npos) return false;
  const std::string_view rest = name.substr(found + wanted.size());
  return rest.empty() || rest.front() == '@';
}

// The lines of /proc/interrupts are "NUMBER: count … count  chip  hwirq  NAME".
std::optional<std::string> FindInterrupt(std::string_view interrupts,
                                         const std::vector<std::string>& of_device, int vector) {
  while (!interrupts.empty()) {
    const size_t end = std::min(interrupts.find('\n'), interrupts.size());
    std::string_view line = interrupts.substr(0, end);
    interrupts.remove_prefix(std::min(end + 1, interrupts.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string number(line.substr(0, colon));
    if (std::ranges::find(of_device, number) == of_device.end()) continue;
    const size_t name = line.find_last_of(' ');
    if (name != std::string_view::npos && NamesVector(line.substr(name + 1), vector)) {
      return number;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> CompletionVectorCore(const SystemPaths& paths, std::string_view device,
                                        int vector) {
  const std::vector<std::string> of_device = ListFolder(paths.Ibdev(device) + "/device/msi_irqs");
  const std::optional<std::string> interrupts = ReadText(paths.proc + "/interrupts");
  if (of_device.empty() || !interrupts) return std::nullopt;
  const std::optional<std::string> number = FindInterrupt(*interrupts, of_device, vector);
  if (!number) return std::nullopt;
  const std::string folder = fmt::format("{}/irq/{}", paths.proc, *number);
  const std::optional<int> effective = ReadInt(folder + "/effective_affinity_list");
  return effective ? effective : ReadInt(folder + "/smp_affinity_list");
}

}  // namespace verbscope
