// QP states, attributes and asynchronous events as text for error messages. Pure functions.
#ifndef VERBSCOPE_TRANSPORTS_COMMON_QP_TEXT_H_
#define VERBSCOPE_TRANSPORTS_COMMON_QP_TEXT_H_

#include <infiniband/verbs.h>

#include <string>
#include <string_view>

#include "transports/device.h"

namespace verbscope {

// The attributes that `mask` selects, with the names and units of ibv_qp_attr:
// "qp_state RTR, path_mtu 4096, dest_qp_num 0x12, …". Others are left out, as the call ignores
// them.
std::string DescribeQpAttributes(const ibv_qp_attr& attributes, int mask);

// "QP_FATAL on QP 0x11", "PORT_ERR on port 1", "DEVICE_FATAL on rxe0": event type without its
// prefix, and the element that it names. Reads the element, so call it before acknowledging.
std::string DescribeAsyncEvent(const ibv_async_event& event, std::string_view device);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_COMMON_QP_TEXT_H_
