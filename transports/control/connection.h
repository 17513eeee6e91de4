// One end of a connected control socket: whole JSON frames in and out, every wait with a deadline.
//
// Owns the descriptor; move only. One thread may send while another receives (the two directions
// share nothing but the descriptor and an atomic flag); two threads must not do the same at once.
// SIGPIPE is never raised.
//
// Until MarkIdentified, when the handshake has shown that the peer is a verbscope, errors are of
// class kSetup (nothing has begun); from then on of class kRun (a run broke).
#ifndef VERBSCOPE_TRANSPORTS_CONTROL_CONNECTION_H_
#define VERBSCOPE_TRANSPORTS_CONTROL_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/control/address.h"
#include "transports/control/frame.h"

namespace verbscope {

// Why nothing more can be received.
enum class ConnectionEnd {
  kOpen,       // nothing has ended
  kClosed,     // end of file: the peer closed, or shut down its sending side
  kReset,      // the peer's kernel says there is no such connection any more
  kForeign,    // the first bytes are no verbscope frame: see foreign()
  kMalformed,  // a later frame is malformed
};

class Connection {
 public:
  // `fd`: a connected non-blocking stream socket, as Connect, Listener and MakePair give it.
  explicit Connection(FileDescriptor fd);

  // Sends one frame. At the deadline the error's errno_value is ETIMEDOUT; the rest of a frame that
  // has begun stays in line and goes out before the next one, so the stream keeps its framing.
  Status Send(const nlohmann::json& frame, Deadline deadline);
  // Sends one frame without waiting. False: earlier bytes still wait, and the frame was dropped.
  Expected<bool> TrySend(const nlohmann::json& frame);
  // Bytes as they are, without waiting and without saying whether they went: a farewell to a peer
  // that speaks something else.
  void SendText(std::string_view text);

  // The next frame. Errors: closed by the peer, reset, foreign or malformed bytes (end() tells
  // which), deadline (errno_value ETIMEDOUT), kInterrupted when `interrupt_fd` becomes readable.
  Expected<nlohmann::json> Receive(Deadline deadline, int interrupt_fd = -1);
  // The next frame if it is complete, after at most one read of the socket; nullopt: not yet.
  Expected<std::optional<nlohmann::json>> TryReceive();

  // No more will be sent (nor, with `both`, received). Wakes whoever waits in Send or Receive.
  void Shutdown(bool both);
  void MarkIdentified() { error_class_ = ErrorClass::kRun; }

  int fd() const { return fd_.get(); }
  const SocketAddress& local_address() const { return local_; }
  const SocketAddress& remote_address() const { return remote_; }
  ConnectionEnd end() const { return end_; }
  ForeignPeer foreign() const { return decoder_.foreign(); }
  uint64_t bytes_received() const { return bytes_received_; }
  size_t last_frame_bytes() const { return decoder_.last_frame_bytes(); }

 private:
  Error MakeError(std::string message, int errno_value) const;
  Status Flush();  // sends of outgoing_ what the socket takes now
  Error SendError(int errno_value);
  Error EndError(ConnectionEnd end, int errno_value);

  FileDescriptor fd_;
  SocketAddress local_;
  SocketAddress remote_;
  ErrorClass error_class_ = ErrorClass::kSetup;

  // Sending side.
  std::string outgoing_;
  // A failed send takes the socket's error away: the receiving side then sees a plain end of file.
  std::unique_ptr<std::atomic<bool>> reset_seen_ = std::make_unique<std::atomic<bool>>(false);

  // Receiving side.
  FrameDecoder decoder_;
  ConnectionEnd end_ = ConnectionEnd::kOpen;
  std::optional<Error> end_error_;
  uint64_t bytes_received_ = 0;
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_CONTROL_CONNECTION_H_
