// Who is meant by an event of a PortSharing's epoll set.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_IDS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_IDS_H_

#include <cstdint>

namespace verbscope::soft {

inline constexpr uint64_t kSharingListenerId = 1;
inline constexpr uint64_t kSharingTimerId = 2;
inline constexpr uint64_t kSharingKeeperId = 3;  // the connection to the keeper
inline constexpr uint64_t kSharingFirstConnectionId = 4;

// Serve's bound per connection and turn.
inline constexpr int kSharingRecordsAtOnce = 64;

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_IDS_H_
