#include "transports/control/address.h"

#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <future>

#include "core/base/file_descriptor.h"
#include "transports/control/poll_fd.h"

namespace verbscope {
namespace {

using std::chrono::milliseconds;

Deadline Late() { return Deadline::After(std::chrono::seconds(20)); }

ResolveFunction NeverCalled() {
  return [](const std::string& host, uint16_t) {
    ADD_FAILURE() << "looked up " << host;
    return Resolution{EAI_FAIL, 0, {}};
  };
}

std::string OneAddress(const std::string& host) {
  const auto found = Resolve(host, 18600, Late(), -1, NeverCalled());
  if (!found) return found.error().message;
  return found->size() == 1 ? found->front().ToText() : "several";
}

TEST(SocketAddressTest, TextHasBracketsAroundIpv6AndMappedAddressesReadAsIpv4) {
  EXPECT_EQ(OneAddress("127.0.0.1"), "127.0.0.1:18600");
  EXPECT_EQ(OneAddress("2001:DB8::1"), "[2001:db8::1]:18600");
  EXPECT_EQ(OneAddress("[::1]"), "[::1]:18600");
  EXPECT_EQ(OneAddress("::ffff:192.0.2.7"), "192.0.2.7:18600");
}

TEST(SocketAddressTest, ScopeOfALinkLocalAddressIsKept) {
  EXPECT_EQ(OneAddress("fe80::1%lo"), "[fe80::1%lo]:18600");
  EXPECT_EQ(OneAddress("[fe80::1%lo]"), "[fe80::1%lo]:18600");
}

TEST(SocketAddressTest, AnUnconnectedPairHasNoNetwork) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const FileDescriptor a(fds[0]);
  const FileDescriptor b(fds[1]);
  EXPECT_EQ(SocketAddress::RemoteOf(a.get()).family(), AF_UNSPEC);
  EXPECT_EQ(SocketAddress::LocalOf(a.get()).ToText(), "this process");
  EXPECT_EQ(SocketAddress::LocalOf(a.get()).Host(), "");
  EXPECT_EQ(SocketAddress::LocalOf(-1).family(), AF_UNSPEC);
}

TEST(ResolveTest, WhatLooksLikeAnAddressIsNeverLookedUp) {
  for (const char* host : {"[nonsense]", "1::2::3", "fe80::1%no-such-netdev", ""}) {
    const auto found = Resolve(host, 1, Late(), -1, NeverCalled());
    ASSERT_FALSE(found.has_value()) << host;
    EXPECT_EQ(found.error().error_class, ErrorClass::kSetup);
  }
}

TEST(ResolveTest, ANameIsLookedUpWithItsPort) {
  const auto resolve = [](const std::string& host, uint16_t port) {
    EXPECT_EQ(host, "node7");
    return SystemResolve("192.0.2.7", port);
  };
  const auto found = Resolve("node7", 4242, Late(), -1, resolve);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->front().ToText(), "192.0.2.7:4242");
}

TEST(ResolveTest, LocalhostIsKnownToTheSystem) {
  const auto found = Resolve("localhost", 1, Late(), -1);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_FALSE(found->empty());
}

TEST(ResolveTest, AnUnknownNameIsFinalAtOnce) {
  std::atomic<int> calls = 0;
  const auto resolve = [&calls](const std::string&, uint16_t) {
    ++calls;
    return Resolution{EAI_NONAME, 0, {}};
  };
  const auto found = Resolve("nodee7", 1, Late(), -1, resolve);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(found.error().error_class, ErrorClass::kSetup);
  EXPECT_EQ(found.error().message,
            "host name \"nodee7\" cannot be resolved: Name or service not known");
  EXPECT_NE(found.error().next_step.find("spelling"), std::string::npos);
}

TEST(ResolveTest, ATemporaryFailureIsTriedAgain) {
  std::atomic<int> calls = 0;
  const auto resolve = [&calls](const std::string&, uint16_t port) {
    return ++calls < 3 ? Resolution{EAI_AGAIN, 0, {}} : SystemResolve("::1", port);
  };
  const auto found = Resolve("node7", 1, Late(), -1, resolve);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(calls, 3);
}

TEST(ResolveTest, ATemporaryFailureLastsNoLongerThanTheDeadline) {
  const auto resolve = [](const std::string&, uint16_t) { return Resolution{EAI_AGAIN, 0, {}}; };
  const auto found = Resolve("node7", 1, Deadline::After(milliseconds(20)), -1, resolve);
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().message.find("Temporary failure"), std::string::npos);
}

// A resolver that hangs until the test releases it.
class HangingResolver {
 public:
  ~HangingResolver() { release_.set_value(); }
  ResolveFunction Function() {
    return [until = released_](const std::string&, uint16_t) {
      until.wait();
      return Resolution{EAI_AGAIN, 0, {}};
    };
  }

 private:
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

TEST(ResolveTest, AHangingResolverDoesNotHoldUpTheDeadline) {
  HangingResolver hanging;
  const auto found = Resolve("node7", 1, Deadline::After(milliseconds(5)), -1, hanging.Function());
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().message,
            "host name \"node7\" cannot be resolved: the name service did not answer in time");
}

TEST(ResolveTest, AHangingResolverCanBeInterrupted) {
  HangingResolver hanging;
  WakeEvent interrupt = *WakeEvent::Make();
  interrupt.Notify();
  const auto found = Resolve("node7", 1, Late(), interrupt.fd(), hanging.Function());
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().error_class, ErrorClass::kInterrupted);
}

}  // namespace
}  // namespace verbscope
