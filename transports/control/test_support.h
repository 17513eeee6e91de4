// What the tests of this folder share: connected pairs, real listeners, an HTTP-speaking stranger.
#ifndef VERBSCOPE_TRANSPORTS_CONTROL_TEST_SUPPORT_H_
#define VERBSCOPE_TRANSPORTS_CONTROL_TEST_SUPPORT_H_

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/deadline.h"
#include "transports/control/connection.h"
#include "transports/control/poll_fd.h"
#include "transports/control/socket.h"

namespace verbscope::control_test {

// Far beyond what any step takes: reaching it means that something hangs.
inline Deadline Late() { return Deadline::After(std::chrono::seconds(30)); }
// For waits that must end in vain.
inline Deadline Soon() { return Deadline::After(std::chrono::milliseconds(10)); }

// Both ends of a socket pair.
inline std::pair<Connection, Connection> ConnectedPair() {
  auto fds = MakePair();
  EXPECT_TRUE(fds.has_value());
  return {Connection(std::move(fds->first)), Connection(std::move(fds->second))};
}

inline Listener ListenOn(const std::string& bind_address) {
  ListenOptions options;
  options.bind_address = bind_address;
  auto listener = Listener::Open(options);
  EXPECT_TRUE(listener.has_value()) << listener.error().message;
  return std::move(*listener);
}

inline FileDescriptor AcceptOne(Listener& listener) {
  EXPECT_EQ(WaitFd(listener.fd(), POLLIN, Late(), -1), WaitResult::kReady);
  auto accepted = listener.Accept();
  EXPECT_TRUE(accepted.has_value() && accepted->has_value());
  return std::move(**accepted);
}

inline ConnectOptions To(const Listener& listener, const std::string& host = "127.0.0.1") {
  ConnectOptions options;
  options.host = host;
  options.port = listener.port();
  options.deadline = Late();
  return options;
}

inline Connection ConnectTo(uint16_t port) {
  ConnectOptions options;
  options.host = "127.0.0.1";
  options.port = port;
  options.deadline = Late();
  auto fd = Connect(options);
  EXPECT_TRUE(fd.has_value()) << fd.error().message;
  return Connection(std::move(*fd));
}

// Both ends of a TCP connection: client first.
inline std::pair<Connection, Connection> TcpPair() {
  Listener listener = ListenOn("127.0.0.1");
  Connection client = ConnectTo(listener.port());
  return {std::move(client), Connection(AcceptOne(listener))};
}

// Raw bytes to the peer of `fd`, as a stranger would send them. The socket's buffer may be smaller
// than that, and does not wait.
inline void SendRaw(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ASSERT_EQ(WaitFd(fd, POLLOUT, Late(), -1), WaitResult::kReady);
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) continue;
    ASSERT_GT(sent, 0) << errno;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

// Everything that comes until end of file.
inline std::string ReadToEnd(int fd) {
  std::string all;
  char buffer[4096];
  while (WaitFd(fd, POLLIN, Late(), -1) == WaitResult::kReady) {
    const ssize_t got = ::recv(fd, buffer, sizeof(buffer), 0);
    if (got <= 0) return all;
    all.append(buffer, static_cast<size_t>(got));
  }
  ADD_FAILURE() << "no end of file after: " << all;
  return all;
}

// Closes as a killed host's kernel does: with a reset instead of an end of file.
inline void CloseWithReset(Connection connection) {
  const linger now = {1, 0};
  ::setsockopt(connection.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace verbscope::control_test

#endif  // VERBSCOPE_TRANSPORTS_CONTROL_TEST_SUPPORT_H_
