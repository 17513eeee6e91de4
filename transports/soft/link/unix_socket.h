// The few things a memory link does with Unix sockets: abstract names, SEQPACKET records with file
// descriptors, the user at the other end. Nothing waits but ConnectAbstract.
//
// Pure functions on descriptors; any thread.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_UNIX_SOCKET_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_UNIX_SOCKET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/link/rendezvous_messages.h"

namespace verbscope::soft {

// `name`: without the leading zero byte.
Expected<FileDescriptor> ListenAbstract(std::string_view name);
// Waits only while the listener's queue is full. The queue takes a connection before anybody
// accepts it, so one can connect to oneself.
Expected<FileDescriptor> ConnectAbstract(std::string_view name, Deadline deadline);
// Empty when there is nobody to accept.
FileDescriptor AcceptOne(int listener);
// The same. Without descriptors the connection is refused by means of `spare`, which is given up
// for a moment, and not left in the queue: it would make the listener readable for ever.
FileDescriptor AcceptOrRefuse(int listener, FileDescriptor& spare);

// The effective user who connected, or who listened. Nothing: not a Unix connection.
std::optional<uint32_t> PeerUser(int socket);

// One record, never waits and raises no signal. False with errno set if it cannot be sent now.
bool SendRecord(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

struct Record {
  enum class Kind : uint8_t {
    kNone,  // nothing there now
    kData,
    kEnd,  // the peer has gone, or the record cannot be one of ours (cut off)
  };
  Kind kind = Kind::kNone;
  size_t size = 0;
  std::array<std::byte, kMaxMessageBytes> bytes = {};
  std::vector<FileDescriptor> fds;

  std::span<const std::byte> data() const { return {bytes.data(), size}; }
};
Record ReceiveRecord(int socket);

// Whether `fd` is an eventfd: writing 1 to it does not wait unless its owner has filled it.
bool IsEventFd(int fd);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_UNIX_SOCKET_H_
