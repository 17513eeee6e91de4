// The path MTU of a connection: the smaller of both ports, which an option may only lower. A larger
// one would pass the connection set-up and then lose every message above the smaller port's MTU.
#ifndef VERBSCOPE_CORE_SELECTION_PATH_MTU_H_
#define VERBSCOPE_CORE_SELECTION_PATH_MTU_H_

#include <cstdint>

#include "core/base/error.h"

namespace verbscope {

// All in bytes. `local_active` and `remote_active` are the active MTUs of the ports, `asked` is
// --mtu, 0 for the smaller of both. Each must be 256, 512, 1024, 2048 or 4096 (the
// MTU codes 1 to 5 of the InfiniBand specification). kSetup, naming the values of both ports.
Expected<uint32_t> ChoosePathMtu(uint32_t local_active, uint32_t remote_active, uint32_t asked);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SELECTION_PATH_MTU_H_
