#include "transports/control/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <cerrno>
#include <future>
#include <optional>

#include "transports/control/test_support.h"

namespace verbscope {
namespace {

using control_test::AcceptOne;
using control_test::Contains;
using control_test::Late;
using control_test::ListenOn;
using control_test::SendRaw;
using control_test::To;
using std::chrono::milliseconds;

// A port on which nothing listens: taken and given back.
uint16_t ClosedPort() { return ListenOn("127.0.0.1").port(); }

ResolveFunction ResolvesTo(std::vector<std::string> hosts) {
  return [hosts](const std::string&, uint16_t port) {
    Resolution all;
    for (const std::string& host : hosts) {
      for (const SocketAddress& address : SystemResolve(host, port).addresses) {
        all.addresses.push_back(address);
      }
    }
    return all;
  };
}

int IntOption(int fd, int level, int option) {
  int value = -1;
  socklen_t length = sizeof(value);
  EXPECT_EQ(::getsockopt(fd, level, option, &value, &length), 0);
  return value;
}

void ExpectUsable(int fd) {
  EXPECT_TRUE(::fcntl(fd, F_GETFL) & O_NONBLOCK);
  EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

TEST(ListenerTest, OneSocketServesBothFamiliesAndTellsItsPort) {
  Listener listener = ListenOn("");
  EXPECT_NE(listener.port(), 0);
  for (const char* host : {"127.0.0.1", "::1", "[::1]"}) {
    auto client = Connect(To(listener, host));
    ASSERT_TRUE(client.has_value()) << client.error().message;
    const FileDescriptor server = AcceptOne(listener);
    EXPECT_EQ(SocketAddress::RemoteOf(client->get()).Port(), listener.port());
    const std::string seen = SocketAddress::RemoteOf(server.get()).Host();
    EXPECT_EQ(seen, host[0] == '1' ? "127.0.0.1" : "::1");
  }
}

TEST(ListenerTest, WithoutIpv6ItFallsBackToIpv4) {
  ListenOptions options;
  options.ipv6 = false;
  auto listener = Listener::Open(options);
  ASSERT_TRUE(listener.has_value());
  EXPECT_EQ(listener->address().Host(), "0.0.0.0");
  EXPECT_TRUE(Connect(To(*listener)).has_value());
}

TEST(ListenerTest, ABoundAddressIsTheOnlyOneServed) {
  Listener listener = ListenOn("127.0.0.2");
  EXPECT_EQ(listener.address().Host(), "127.0.0.2");
  EXPECT_TRUE(Connect(To(listener, "127.0.0.2")).has_value());
  ConnectOptions other = To(listener, "127.0.0.3");
  other.deadline = Deadline::After(milliseconds(20));
  EXPECT_FALSE(Connect(other).has_value());
}

TEST(ListenerTest, ATakenPortIsNamed) {
  const Listener first = ListenOn("");
  ListenOptions options;
  options.port = first.port();
  const auto second = Listener::Open(options);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().error_class, ErrorClass::kSetup);
  EXPECT_EQ(second.error().errno_value, EADDRINUSE);
  EXPECT_TRUE(Contains(second.error().message, "port " + std::to_string(first.port())));
  EXPECT_TRUE(Contains(second.error().next_step, "--port"));
}

TEST(ListenerTest, APortInTimeWaitCanBeUsedAtOnce) {
  uint16_t port = 0;
  {
    Listener listener = ListenOn("127.0.0.1");
    port = listener.port();
    auto client = Connect(To(listener));
    ASSERT_TRUE(client.has_value());
    AcceptOne(listener).Reset();  // the server closes first: its end goes to TIME_WAIT
    EXPECT_EQ(control_test::ReadToEnd(client->get()), "");
  }
  ListenOptions options;
  options.bind_address = "127.0.0.1";
  options.port = port;
  EXPECT_TRUE(Listener::Open(options).has_value());
}

TEST(ListenerTest, AnAddressOfAnotherHostIsExplained) {
  ListenOptions options;
  options.bind_address = "203.0.113.77";
  const auto listener = Listener::Open(options);
  ASSERT_FALSE(listener.has_value());
  EXPECT_EQ(listener.error().errno_value, EADDRNOTAVAIL);
  EXPECT_TRUE(Contains(listener.error().next_step, "--bind"));
}

TEST(ListenerTest, AcceptDoesNotWait) {
  Listener listener = ListenOn("127.0.0.1");
  const auto none = listener.Accept();
  ASSERT_TRUE(none.has_value());
  EXPECT_FALSE(none->has_value());
}

TEST(ListenerTest, RunningOutOfDescriptorsIsAnErrorAndLosesNoConnection) {
  Listener listener = ListenOn("127.0.0.1");
  auto client = Connect(To(listener));
  ASSERT_TRUE(client.has_value());
  EXPECT_EQ(WaitFd(listener.fd(), POLLIN, Late(), -1), WaitResult::kReady);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto refused = listener.Accept();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().errno_value, EMFILE);
  AcceptOne(listener);
}

TEST(ConnectTest, SocketsOfBothEndsAreNonBlockingWithoutDelayAndKeptAlive) {
  Listener listener = ListenOn("127.0.0.1");
  auto client = Connect(To(listener));
  ASSERT_TRUE(client.has_value());
  const FileDescriptor server = AcceptOne(listener);
  for (int fd : {client->get(), server.get()}) {
    ExpectUsable(fd);
    EXPECT_NE(IntOption(fd, IPPROTO_TCP, TCP_NODELAY), 0);
    EXPECT_NE(IntOption(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
  }
}

// The loopback interface would carry 65,483 bytes.
TEST(ConnectTest, SegmentsPassEveryPath) {
  Listener listener = ListenOn("127.0.0.1");
  auto client = Connect(To(listener));
  ASSERT_TRUE(client.has_value());
  const FileDescriptor server = AcceptOne(listener);
  for (int fd : {client->get(), server.get()}) {
    EXPECT_LE(IntOption(fd, IPPROTO_TCP, TCP_MAXSEG), kMaxControlSegmentBytes);
  }
}

TEST(ConnectTest, TheSourceAddressIsTheOneAskedFor) {
  Listener listener = ListenOn("");
  ConnectOptions options = To(listener);
  options.bind_address = "127.0.0.9";
  auto client = Connect(options);
  ASSERT_TRUE(client.has_value()) << client.error().message;
  const FileDescriptor server = AcceptOne(listener);
  EXPECT_EQ(SocketAddress::RemoteOf(server.get()).Host(), "127.0.0.9");
  EXPECT_EQ(SocketAddress::LocalOf(client->get()).Host(), "127.0.0.9");
}

TEST(ConnectTest, ASourceAddressOfAnotherHostFailsAtOnce) {
  ConnectOptions options = To(ListenOn("127.0.0.1"));
  options.bind_address = "203.0.113.77";
  const auto client = Connect(options);
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().errno_value, EADDRNOTAVAIL);
  EXPECT_TRUE(Contains(client.error().message, "cannot connect from 203.0.113.77"));
}

TEST(ConnectTest, AddressesOfAnotherFamilyThanTheSourceAreSkipped) {
  Listener listener = ListenOn("");
  ConnectOptions options = To(listener, "node7");
  options.bind_address = "127.0.0.1";
  options.resolve = ResolvesTo({"::1", "127.0.0.1"});
  EXPECT_TRUE(Connect(options).has_value());
  options.resolve = ResolvesTo({"::1"});
  const auto none = Connect(options);
  ASSERT_FALSE(none.has_value());
  EXPECT_TRUE(Contains(none.error().message, "::1 port"));
  EXPECT_TRUE(Contains(none.error().message, "another family than --bind 127.0.0.1"));
}

TEST(ConnectTest, RefusedNamesAddressPortAndReason) {
  ConnectOptions options;
  options.host = "127.0.0.1";
  options.port = ClosedPort();
  options.deadline = Deadline::After(milliseconds(20));
  const auto client = Connect(options);
  ASSERT_FALSE(client.has_value());
  const std::string port = std::to_string(options.port);
  EXPECT_EQ(client.error().error_class, ErrorClass::kSetup);
  EXPECT_EQ(client.error().errno_value, ECONNREFUSED);
  EXPECT_EQ(client.error().message, "cannot connect to 127.0.0.1 port " + port +
                                        ": 127.0.0.1 port " + port + ": Connection refused");
  EXPECT_TRUE(Contains(client.error().next_step, "verbscope serve"));
}

TEST(ConnectTest, EachResolvedAddressHasALineOfItsOwn) {
  ConnectOptions options;
  options.host = "node7";
  options.port = ClosedPort();
  options.resolve = ResolvesTo({"127.0.0.1", "127.255.255.255", "::1"});
  options.deadline = Deadline::After(milliseconds(20));
  const auto client = Connect(options);
  ASSERT_FALSE(client.has_value());
  const std::string port = std::to_string(options.port);
  EXPECT_EQ(client.error().message,
            "cannot connect to node7 port " + port + ":\n  127.0.0.1 port " + port +
                ": Connection refused\n  127.255.255.255 port " + port +
                ": Network is unreachable\n  ::1 port " + port + ": Connection refused");
  EXPECT_EQ(client.error().errno_value, ECONNREFUSED) << "a refusal tells most";
}

TEST(ConnectTest, UnreachableIsToldFromRefused) {
  ConnectOptions options;
  options.host = "127.255.255.255";  // a broadcast address has no TCP
  options.port = 9;
  options.deadline = Deadline::After(milliseconds(20));
  const auto client = Connect(options);
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().errno_value, ENETUNREACH);
  EXPECT_TRUE(Contains(client.error().next_step, "ip route get"));
}

// A listening socket whose queue is full: the kernel drops further connects, as a filter does.
class SilentPort {
 public:
  SilentPort() {
    EXPECT_EQ(::listen(listener_.fd(), 0), 0);
    auto first = Connect(To(listener_));
    EXPECT_TRUE(first.has_value());
    occupant_ = std::move(*first);
  }
  uint16_t port() const { return listener_.port(); }

 private:
  Listener listener_ = ListenOn("127.0.0.1");
  FileDescriptor occupant_;
};

TEST(ConnectTest, NoAnswerIsToldFromRefused) {
  const SilentPort silent;
  ConnectOptions options;
  options.host = "127.0.0.1";
  options.port = silent.port();
  options.deadline = Deadline::After(milliseconds(50));
  const auto client = Connect(options);
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().errno_value, ETIMEDOUT);
  EXPECT_TRUE(Contains(client.error().message, "no answer (Connection timed out)"));
  EXPECT_TRUE(Contains(client.error().cause, "firewall"));
}

TEST(ConnectTest, ASilentAddressDoesNotHideTheNextOne) {
  const SilentPort silent;
  ListenOptions listen;
  listen.bind_address = "127.0.0.5";
  listen.port = silent.port();
  auto second = Listener::Open(listen);
  ASSERT_TRUE(second.has_value());
  ConnectOptions options = To(*second, "node7");
  options.resolve = ResolvesTo({"127.0.0.1", "127.0.0.5"});
  options.next_address_after = milliseconds(5);
  const auto client = Connect(options);
  ASSERT_TRUE(client.has_value()) << client.error().message;
  EXPECT_EQ(SocketAddress::RemoteOf(client->get()).Host(), "127.0.0.5");
}

TEST(ConnectTest, TheServerMayStartLater) {
  const uint16_t port = ClosedPort();
  std::promise<void> asked;
  ConnectOptions options;
  options.host = "node7";
  options.port = port;
  options.deadline = Late();
  options.retry_interval = milliseconds(1);
  options.resolve = [&asked](const std::string&, uint16_t p) {
    asked.set_value();
    return SystemResolve("127.0.0.1", p);
  };
  auto client = std::async(std::launch::async, [&options] { return Connect(options); });
  asked.get_future().wait();
  ListenOptions listen;
  listen.bind_address = "127.0.0.1";
  listen.port = port;
  auto listener = Listener::Open(listen);
  ASSERT_TRUE(listener.has_value());
  EXPECT_TRUE(client.get().has_value());
}

// Whoever took the connection and threw it away is there: another attempt, which finds the port
// closed, must not turn that into "nothing listens". Whether the reset is seen while connecting is
// a race, hence many rounds.
TEST(ConnectTest, AResetIsNotTriedAgain) {
  for (int round = 0; round < 200; ++round) {
    std::optional<Listener> listener = ListenOn("127.0.0.1");
    const ConnectOptions options = To(*listener);
    auto client = std::async(std::launch::async, [&options] { return Connect(options); });
    {
      const FileDescriptor accepted = AcceptOne(*listener);
      const linger reset{1, 0};
      ASSERT_EQ(::setsockopt(accepted.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    }
    listener.reset();
    const auto result = client.get();
    if (result.has_value()) continue;
    ASSERT_EQ(result.error().errno_value, ECONNRESET) << result.error().message;
    EXPECT_TRUE(Contains(result.error().cause, "dropped the connection"));
  }
}

TEST(ConnectTest, InterruptEndsTheRetries) {
  WakeEvent interrupt = *WakeEvent::Make();
  ConnectOptions options;
  options.host = "127.0.0.1";
  options.port = ClosedPort();
  options.deadline = Late();
  options.interrupt_fd = interrupt.fd();
  auto client = std::async(std::launch::async, [&options] { return Connect(options); });
  interrupt.Notify();
  const auto result = client.get();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().error_class, ErrorClass::kInterrupted);
}

TEST(ConnectTest, PortZeroIsAUsageError) {
  ConnectOptions options;
  options.host = "127.0.0.1";
  const auto client = Connect(options);
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().error_class, ErrorClass::kUsage);
}

TEST(ConnectTest, AnUnresolvedNameIsNamed) {
  ConnectOptions options;
  options.host = "node7";
  options.port = 18600;
  options.resolve = [](const std::string&, uint16_t) { return Resolution{EAI_NONAME, 0, {}}; };
  const auto client = Connect(options);
  ASSERT_FALSE(client.has_value());
  EXPECT_TRUE(Contains(client.error().message, "\"node7\" cannot be resolved"));
}

TEST(MakePairTest, BothEndsAreConnected) {
  auto pair = MakePair();
  ASSERT_TRUE(pair.has_value());
  ExpectUsable(pair->first.get());
  ExpectUsable(pair->second.get());
  SendRaw(pair->first.get(), "ping");
  pair->first.Reset();
  EXPECT_EQ(control_test::ReadToEnd(pair->second.get()), "ping");
}

}  // namespace
}  // namespace verbscope
