// Who is meant by an event of a link's epoll set. Numbers of connections are never used twice, so
// an event that comes too late finds nobody.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_EPOLL_IDS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_EPOLL_IDS_H_

#include <cstdint>

namespace verbscope::soft {

inline constexpr uint64_t kListenerId = 1;
inline constexpr uint64_t kBellId = 2;  // any bell
inline constexpr uint64_t kFirstConnectionId = 3;

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_EPOLL_IDS_H_
