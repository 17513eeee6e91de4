#include "transports/control/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "transports/control/poll_fd.h"

namespace verbscope {
namespace {

using nlohmann::json;

constexpr size_t kReadBytes = 65536;

double SecondsSince(Deadline::Clock::time_point start) {
  return std::chrono::duration<double>(Deadline::Clock::now() - start).count();
}

}  // namespace

Connection::Connection(FileDescriptor fd)
    : fd_(std::move(fd)),
      local_(SocketAddress::LocalOf(fd_.get())),
      remote_(SocketAddress::RemoteOf(fd_.get())) {}

Error Connection::MakeError(std::string message, int errno_value) const {
  Error error;
  error.error_class = error_class_;
  error.message = std::move(message);
  error.errno_value = errno_value;
  return error;
}

Error Connection::SendError(int errno_value) {
  if (errno_value == ECONNRESET) {
    reset_seen_->store(true, std::memory_order_relaxed);
    return MakeError(fmt::format("peer {} reset the connection", remote_.ToText()), errno_value);
  }
  if (errno_value == EPIPE) {
    return MakeError(fmt::format("peer {} closed the connection", remote_.ToText()), errno_value);
  }
  return CallError(error_class_, "send", remote_.ToText(), errno_value);
}

Status Connection::Flush() {
  while (!outgoing_.empty()) {
    const ssize_t sent = ::send(fd_.get(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    if (sent < 0) return Fail(SendError(errno));
    outgoing_.erase(0, static_cast<size_t>(sent));
  }
  return {};
}

Status Connection::Send(const json& frame, Deadline deadline) {
  auto bytes = EncodeFrame(frame);
  if (!bytes) return Fail(bytes.error());
  const auto start = Deadline::Clock::now();
  bool queued = false;
  while (true) {
    if (auto flushed = Flush(); !flushed) return flushed;
    if (outgoing_.empty()) {
      if (queued) return {};
      outgoing_ = std::move(*bytes);
      queued = true;
      continue;
    }
    if (WaitFd(fd_.get(), POLLOUT, deadline, -1) != WaitResult::kReady) {
      return Fail(MakeError(
          fmt::format("peer {} took no data for {:.1f} s while \"{}\" was sent", remote_.ToText(),
                      SecondsSince(start), frame["type"].get_ref<const std::string&>()),
          ETIMEDOUT));
    }
  }
}

Expected<bool> Connection::TrySend(const json& frame) {
  if (auto flushed = Flush(); !flushed) return Fail(flushed.error());
  if (!outgoing_.empty()) return false;
  auto bytes = EncodeFrame(frame);
  if (!bytes) return Fail(bytes.error());
  outgoing_ = std::move(*bytes);
  if (auto flushed = Flush(); !flushed) return Fail(flushed.error());
  return true;
}

void Connection::SendText(std::string_view text) {
  [[maybe_unused]] const auto sent =
      ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

Expected<json> Connection::Receive(Deadline deadline, int interrupt_fd) {
  const auto start = Deadline::Clock::now();
  while (true) {
    auto frame = TryReceive();
    if (!frame) return Fail(frame.error());
    if (*frame) return std::move(**frame);
    switch (WaitFd(fd_.get(), POLLIN, deadline, interrupt_fd)) {
      case WaitResult::kReady:
        break;
      case WaitResult::kInterrupted:
        return Fail(InterruptedError(fmt::format("waiting for peer {}", remote_.ToText())));
      case WaitResult::kTimeout:
        return Fail(MakeError(fmt::format("no {} from peer {} within {:.1f} s",
                                          decoder_.mid_frame() ? "complete frame" : "frame",
                                          remote_.ToText(), SecondsSince(start)),
                              ETIMEDOUT));
    }
  }
}

Expected<std::optional<json>> Connection::TryReceive() {
  if (end_error_) return Fail(*end_error_);
  bool has_read = false;
  while (true) {
    auto frame = decoder_.Next();
    if (!frame) {
      const bool foreign = decoder_.foreign() != ForeignPeer::kNone;
      return Fail(EndError(foreign ? ConnectionEnd::kForeign : ConnectionEnd::kMalformed, 0));
    }
    if (*frame || has_read) return frame;
    std::array<char, kReadBytes> buffer;
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (got < 0) return Fail(EndError(ConnectionEnd::kReset, errno));
    if (got == 0) {
      const bool reset = reset_seen_->load(std::memory_order_relaxed);
      return Fail(reset ? EndError(ConnectionEnd::kReset, ECONNRESET)
                        : EndError(ConnectionEnd::kClosed, 0));
    }
    bytes_received_ += static_cast<uint64_t>(got);
    decoder_.Feed(std::string_view(buffer.data(), static_cast<size_t>(got)));
    has_read = true;
  }
}

Error Connection::EndError(ConnectionEnd end, int errno_value) {
  const std::string peer = remote_.ToText();
  const char* within = decoder_.mid_frame() ? " in the middle of a frame" : "";
  std::string message;
  switch (end) {
    case ConnectionEnd::kOpen:
    case ConnectionEnd::kClosed:
      message = fmt::format("peer {} closed the connection{}", peer, within);
      break;
    case ConnectionEnd::kReset:
      message = errno_value == ECONNRESET
                    ? fmt::format("peer {} reset the connection{}", peer, within)
                    : fmt::format("connection to peer {} lost: {}", peer, ErrnoText(errno_value));
      break;
    case ConnectionEnd::kForeign:
      message = fmt::format("peer {} {}", peer, Describe(decoder_.foreign()));
      message += decoder_.foreign() == ForeignPeer::kUnknown
                     ? fmt::format(" ({})", decoder_.detail())
                     : ", not verbscope";
      break;
    case ConnectionEnd::kMalformed:
      message = fmt::format("peer {} sent a malformed frame: {}", peer, decoder_.detail());
      break;
  }
  end_ = end;
  end_error_ = MakeError(std::move(message), errno_value);
  return *end_error_;
}

void Connection::Shutdown(bool both) { ::shutdown(fd_.get(), both ? SHUT_RDWR : SHUT_WR); }

}  // namespace verbscope
