// Connect of socket.h: all addresses of a host, tried until one answers.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "transports/control/poll_fd.h"
#include "transports/control/socket.h"

namespace verbscope {
namespace {

using Clock = Deadline::Clock;

// One address and how it fares. `fd` is open while a connect is under way.
struct Attempt {
  SocketAddress address;
  FileDescriptor fd;
  Clock::time_point start_at;  // when to try (again), if no connect is under way
  bool started = false;
  bool hopeless = false;  // trying again cannot help
  int errno_value = 0;    // of the last failure
  std::string note;       // instead of the errno text
};

// Trying again helps against whatever may change while we wait: a server or an interface that
// comes up, a route that settles. A reset is not among them: somebody took the connection and threw
// it away, and a later attempt would only hide that behind its own outcome.
bool MayPass(int errno_value) {
  switch (errno_value) {
    case ECONNREFUSED:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case EAGAIN:
    case EINTR:
      return true;
    default:
      return false;
  }
}

// A connect to a free port in the ephemeral range can meet itself (simultaneous open): connected,
// but with nobody there.
bool MetItself(int fd) { return SocketAddress::LocalOf(fd) == SocketAddress::RemoteOf(fd); }

class Connector {
 public:
  Connector(const ConnectOptions& options, std::vector<SocketAddress> addresses,
            std::optional<SocketAddress> source)
      : options_(options), source_(source) {
    const Clock::time_point now = Clock::now();
    for (size_t i = 0; i < addresses.size(); ++i) {
      Attempt attempt;
      attempt.address = addresses[i];
      attempt.start_at = now + i * options.next_address_after;
      attempts_.push_back(std::move(attempt));
    }
    SkipOtherFamily();
  }

  Expected<FileDescriptor> Run() {
    while (true) {
      const bool last_look = options_.deadline.Passed();
      for (Attempt& attempt : attempts_) StartIfDue(attempt);
      const bool hopeless = std::all_of(attempts_.begin(), attempts_.end(),
                                        [](const Attempt& a) { return a.hopeless; });
      if (hopeless) return Fail(Failure());
      if (Wait(last_look) == WaitResult::kInterrupted) {
        return Fail(InterruptedError(
            fmt::format("connecting to {} port {}", options_.host, options_.port)));
      }
      for (Attempt& attempt : attempts_) {
        if (attempt.fd && Settled(attempt)) return std::move(attempt.fd);
      }
      if (last_look) return Fail(Failure());
    }
  }

 private:
  void SkipOtherFamily() {
    if (!source_) return;
    for (Attempt& attempt : attempts_) {
      if (attempt.address.family() == source_->family()) continue;
      attempt.hopeless = true;
      attempt.errno_value = EAFNOSUPPORT;
      attempt.note = fmt::format("not tried, of another family than --bind {}", source_->Host());
    }
  }

  void Failed(Attempt& attempt, int errno_value) {
    attempt.fd.Reset();
    attempt.errno_value = errno_value;
    attempt.hopeless = !MayPass(errno_value);
    const Clock::time_point now = Clock::now();
    attempt.start_at = now + options_.retry_interval;
    for (Attempt& other : attempts_) {
      if (other.started || other.hopeless) continue;
      other.start_at = std::min(other.start_at, now);
      break;
    }
  }

  void StartIfDue(Attempt& attempt) {
    if (attempt.fd || attempt.hopeless || Clock::now() < attempt.start_at) return;
    attempt.started = true;
    const SocketAddress& to = attempt.address;
    FileDescriptor fd(
        ::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
    if (!fd) return Failed(attempt, errno);
    SetTcpOptions(fd.get());
    if (source_) {
      const int on = 1;
      // The port is chosen at connect, when the remote address makes it unique.
      ::setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
      if (::bind(fd.get(), source_->data(), source_->length()) != 0) {
        const int errno_value = errno;
        attempt.note =
            fmt::format("cannot connect from {}: {}", source_->Host(), ErrnoText(errno_value));
        Failed(attempt, errno_value);
        attempt.hopeless = true;
        return;
      }
    }
    if (::connect(fd.get(), to.data(), to.length()) != 0 && errno != EINPROGRESS) {
      return Failed(attempt, errno);
    }
    attempt.fd = std::move(fd);
  }

  WaitResult Wait(bool last_look) const {
    std::vector<pollfd> fds = {{options_.interrupt_fd, POLLIN, 0}};
    Deadline until = options_.deadline;
    for (const Attempt& attempt : attempts_) {
      if (attempt.hopeless) continue;
      if (attempt.fd) {
        fds.push_back({attempt.fd.get(), POLLOUT, 0});
      } else {
        until = Deadline::Earlier(until, Deadline::At(attempt.start_at));
      }
    }
    const int ready = ::poll(fds.data(), fds.size(), last_look ? 0 : until.PollTimeoutMs());
    if (ready > 0 && fds[0].revents != 0) return WaitResult::kInterrupted;
    return ready > 0 ? WaitResult::kReady : WaitResult::kTimeout;
  }

  // Whether the connect under way has succeeded; one that has failed is closed and noted.
  bool Settled(Attempt& attempt) {
    const Deadline now = Deadline::At(Clock::now());
    if (WaitFd(attempt.fd.get(), POLLOUT, now, -1) != WaitResult::kReady) return false;
    int errno_value = 0;
    socklen_t length = sizeof(errno_value);
    ::getsockopt(attempt.fd.get(), SOL_SOCKET, SO_ERROR, &errno_value, &length);
    if (errno_value == 0 && MetItself(attempt.fd.get())) errno_value = ECONNREFUSED;
    if (errno_value != 0) Failed(attempt, errno_value);
    return errno_value == 0;
  }

  static std::string Outcome(const Attempt& attempt) {
    if (!attempt.note.empty()) return attempt.note;
    if (attempt.errno_value == 0) return "no answer (" + ErrnoText(ETIMEDOUT) + ")";
    return ErrnoText(attempt.errno_value);
  }

  bool AnyFailedWith(std::initializer_list<int> errno_values) const {
    return std::any_of(attempts_.begin(), attempts_.end(), [&](const Attempt& attempt) {
      return std::find(errno_values.begin(), errno_values.end(), attempt.errno_value) !=
             errno_values.end();
    });
  }

  // The most telling outcome decides: whoever refuses is there, whoever is silent may be filtered.
  Error Failure() const {
    Error error;
    error.error_class = ErrorClass::kSetup;
    error.message = fmt::format("cannot connect to {} port {}:", options_.host, options_.port);
    for (const Attempt& attempt : attempts_) {
      error.message += attempts_.size() == 1 ? " " : "\n  ";
      error.message +=
          fmt::format("{} port {}: {}", attempt.address.Host(), options_.port, Outcome(attempt));
    }
    if (AnyFailedWith({ECONNRESET, ECONNABORTED})) {
      error.errno_value = ECONNRESET;
      error.cause = "a program on that port, or something on the way, dropped the connection";
      error.next_step = "look at the server's output there, and at proxies and firewalls between";
    } else if (AnyFailedWith({ECONNREFUSED})) {
      error.errno_value = ECONNREFUSED;
      error.cause = "the host is up, but nothing listens on that port";
      error.next_step = "start `verbscope serve` there, or give its port with --port";
    } else if (AnyFailedWith({0, ETIMEDOUT})) {
      error.errno_value = ETIMEDOUT;
      error.cause = "a firewall may drop the packets, or the host is down";
      error.next_step =
          fmt::format("check the address, and let TCP port {} through", options_.port);
    } else if (AnyFailedWith({EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ENETDOWN})) {
      error.errno_value = AnyFailedWith({EHOSTUNREACH}) ? EHOSTUNREACH : ENETUNREACH;
      error.cause = "there is no way to that address, or nobody on the last link answers for it";
      error.next_step = "check the address and the route to it: ip route get ADDRESS";
    } else {
      error.errno_value = attempts_.front().errno_value;
      error.cause = "this host's own network refuses to send there";
      error.next_step = "look at the route and at local rules: ip route get ADDRESS";
    }
    return error;
  }

  const ConnectOptions& options_;
  std::optional<SocketAddress> source_;
  std::vector<Attempt> attempts_;
};

}  // namespace

Expected<FileDescriptor> Connect(const ConnectOptions& options) {
  if (options.port == 0) {
    Error error;
    error.error_class = ErrorClass::kUsage;
    error.message = "port 0 cannot be connected to";
    return Fail(std::move(error));
  }
  std::optional<SocketAddress> source;
  if (!options.bind_address.empty()) {
    auto found = Resolve(options.bind_address, /*port=*/0, options.deadline, options.interrupt_fd,
                         options.resolve);
    if (!found) return Fail(found.error());
    source = found->front();
  }
  auto addresses =
      Resolve(options.host, options.port, options.deadline, options.interrupt_fd, options.resolve);
  if (!addresses) return Fail(addresses.error());
  return Connector(options, std::move(*addresses), source).Run();
}

}  // namespace verbscope
