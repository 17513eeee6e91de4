// How much memory this process may still take without harm to its host, so that no measurement
// makes a machine swap or a container die. Pure function but for ReadFreeMemory; any thread.
#ifndef VERBSCOPE_CORE_COST_FREE_MEMORY_H_
#define VERBSCOPE_CORE_COST_FREE_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace verbscope {

// From the texts of /proc/meminfo and of the cgroup's memory.max and memory.current, each empty
// when there is none. nullopt: not known.
std::optional<uint64_t> FreeMemoryBytes(std::string_view meminfo, std::string_view cgroup_max,
                                        std::string_view cgroup_current);

std::optional<uint64_t> ReadFreeMemoryBytes();

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COST_FREE_MEMORY_H_
