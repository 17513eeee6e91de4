#include "transports/control/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "transports/control/poll_fd.h"

namespace verbscope {
namespace {

constexpr std::chrono::milliseconds kRetryInterval{100};

sockaddr_in AsIpv4(const sockaddr_storage& storage) {
  sockaddr_in in = {};
  std::memcpy(&in, &storage, sizeof(in));
  return in;
}

sockaddr_in6 AsIpv6(const sockaddr_storage& storage) {
  sockaddr_in6 in6 = {};
  std::memcpy(&in6, &storage, sizeof(in6));
  return in6;
}

std::string Ipv6Text(const sockaddr_in6& in6) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
    ::inet_ntop(AF_INET, &in6.sin6_addr.s6_addr[12], text.data(), text.size());
    return text.data();
  }
  ::inet_ntop(AF_INET6, &in6.sin6_addr, text.data(), text.size());
  if (in6.sin6_scope_id == 0) return text.data();
  std::array<char, IF_NAMESIZE> name = {};
  if (::if_indextoname(in6.sin6_scope_id, name.data()) == nullptr) {
    return fmt::format("{}%{}", text.data(), in6.sin6_scope_id);
  }
  return fmt::format("{}%{}", text.data(), name.data());
}

Resolution CallGetaddrinfo(const std::string& host, uint16_t port, int flags) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  Resolution resolution;
  resolution.code = ::getaddrinfo(host.c_str(), fmt::format("{}", port).c_str(), &hints, &found);
  if (resolution.code == EAI_SYSTEM) resolution.errno_value = errno;
  if (resolution.code != 0) return resolution;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    resolution.addresses.emplace_back(info->ai_addr, info->ai_addrlen);
  }
  ::freeaddrinfo(found);
  return resolution;
}

// Shared by the waiting thread and the looking-up one: whoever lets go last frees it.
struct LookUp {
  explicit LookUp(WakeEvent event) : done(std::move(event)) {}
  WakeEvent done;
  std::mutex mutex;
  std::optional<Resolution> result;
};

Error NameError(const std::string& host, std::string_view what) {
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.message = fmt::format("host name \"{}\" cannot be resolved: {}", host, what);
  error.next_step = "check the spelling and the name service, or give an IP address";
  return error;
}

Error InterruptedOr(WaitResult result, const std::string& host) {
  if (result == WaitResult::kInterrupted) {
    return InterruptedError(fmt::format("looking up \"{}\"", host));
  }
  return NameError(host, "the name service did not answer in time");
}

// One look-up in a thread of its own.
Expected<Resolution> LookUpOnce(const std::string& host, uint16_t port, Deadline deadline,
                                int interrupt_fd, const ResolveFunction& resolve) {
  auto event = WakeEvent::Make();
  if (!event) return Fail(event.error());
  const auto look_up = std::make_shared<LookUp>(std::move(*event));
  auto thread = StartThread("vs-resolve", [look_up, host, port, resolve] {
    Resolution resolution = resolve(host, port);
    const std::lock_guard lock(look_up->mutex);
    look_up->result = std::move(resolution);
    look_up->done.Notify();
  });
  if (!thread) return Fail(thread.error());
  thread->detach();
  const WaitResult waited = WaitFd(look_up->done.fd(), POLLIN, deadline, interrupt_fd);
  if (waited != WaitResult::kReady) return Fail(InterruptedOr(waited, host));
  const std::lock_guard lock(look_up->mutex);
  return std::move(*look_up->result);
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t length)
    : length_(std::min<socklen_t>(length, sizeof(storage_))) {
  std::memcpy(&storage_, address, length_);
}

SocketAddress SocketAddress::LocalOf(int fd) {
  SocketAddress address;
  address.length_ = sizeof(address.storage_);
  auto* data = reinterpret_cast<sockaddr*>(&address.storage_);
  return ::getsockname(fd, data, &address.length_) == 0 ? address : SocketAddress();
}

SocketAddress SocketAddress::RemoteOf(int fd) {
  SocketAddress address;
  address.length_ = sizeof(address.storage_);
  auto* data = reinterpret_cast<sockaddr*>(&address.storage_);
  return ::getpeername(fd, data, &address.length_) == 0 ? address : SocketAddress();
}

int SocketAddress::family() const {
  const int family = storage_.ss_family;
  return length_ > 0 && (family == AF_INET || family == AF_INET6) ? family : AF_UNSPEC;
}

std::string SocketAddress::Host() const {
  if (family() == AF_INET6) return Ipv6Text(AsIpv6(storage_));
  if (family() != AF_INET) return {};
  std::array<char, INET_ADDRSTRLEN> text = {};
  const sockaddr_in in = AsIpv4(storage_);
  ::inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
  return text.data();
}

uint16_t SocketAddress::Port() const {
  if (family() == AF_INET) return ntohs(AsIpv4(storage_).sin_port);
  if (family() == AF_INET6) return ntohs(AsIpv6(storage_).sin6_port);
  return 0;
}

std::string SocketAddress::ToText() const {
  if (family() == AF_UNSPEC) return "this process";
  const std::string host = Host();
  const bool colons = host.find(':') != std::string::npos;
  return colons ? fmt::format("[{}]:{}", host, Port()) : fmt::format("{}:{}", host, Port());
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  return length_ == other.length_ && std::memcmp(&storage_, &other.storage_, length_) == 0;
}

Resolution SystemResolve(const std::string& host, uint16_t port) {
  return CallGetaddrinfo(host, port, /*flags=*/0);
}

Expected<std::vector<SocketAddress>> Resolve(const std::string& host, uint16_t port,
                                             Deadline deadline, int interrupt_fd,
                                             const ResolveFunction& resolve) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string bare = bracketed ? host.substr(1, host.size() - 2) : host;
  // A string with a zero byte would be cut short by the C interface.
  if (bare.empty() || bare.find('\0') != std::string::npos) {
    return Fail(NameError(bare, "no host name"));
  }
  Resolution numeric = CallGetaddrinfo(bare, port, AI_NUMERICHOST);
  if (numeric.code == 0) return std::move(numeric.addresses);
  if (bracketed || bare.find(':') != std::string::npos) {
    return Fail(NameError(bare, "no IPv6 address, or no such interface behind '%'"));
  }
  while (true) {
    auto found = LookUpOnce(bare, port, deadline, interrupt_fd, resolve);
    if (!found) return Fail(found.error());
    if (found->code == 0 && !found->addresses.empty()) return std::move(found->addresses);
    const std::string why = found->code == 0            ? "the name has no address"
                            : found->code == EAI_SYSTEM ? ErrnoText(found->errno_value)
                                                        : ::gai_strerror(found->code);
    if (found->code != EAI_AGAIN) return Fail(NameError(bare, why));
    const Deadline next = Deadline::Earlier(deadline, Deadline::After(kRetryInterval));
    if (WaitFd(-1, 0, next, interrupt_fd) == WaitResult::kInterrupted) {
      return Fail(InterruptedOr(WaitResult::kInterrupted, bare));
    }
    if (deadline.Passed()) return Fail(NameError(bare, why));
  }
}

}  // namespace verbscope
