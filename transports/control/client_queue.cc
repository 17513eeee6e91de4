#include "transports/control/client_queue.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace verbscope {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::milliseconds kLeaveTime{1000};
constexpr size_t kMaxLeaving = 64;

Error QueueError(std::string message, std::string next_step = {}) {
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.message = std::move(message);
  error.next_step = std::move(next_step);
  return error;
}

double Seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

// Reads and forgets. True at the end of file or on an error.
bool DrainToEnd(int fd) {
  std::array<char, 16384> buffer;
  const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace

Expected<std::unique_ptr<ClientQueue>> ClientQueue::Start(Listener listener,
                                                          const ClientQueueOptions& options) {
  auto wake = WakeEvent::Make();
  if (!wake) return Fail(wake.error());
  auto ready = WakeEvent::Make();
  if (!ready) return Fail(ready.error());
  std::unique_ptr<ClientQueue> queue(
      new ClientQueue(std::move(listener), std::move(*wake), std::move(*ready), options));
  auto thread = StartThread("vs-accept", [raw = queue.get()] { raw->Run(); });
  if (!thread) return Fail(thread.error());
  queue->thread_ = std::move(*thread);
  return queue;
}

ClientQueue::ClientQueue(Listener listener, WakeEvent wake, WakeEvent ready,
                         const ClientQueueOptions& options)
    : options_(options),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      ready_(std::move(ready)) {}

ClientQueue::~ClientQueue() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void ClientQueue::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.Notify();
  ready_.Notify();
}

Expected<AcceptedClient> ClientQueue::Next(int interrupt_fd) {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      ready_.Drain();
      serving_ = false;
      if (stop_) return Fail(InterruptedError("waiting for a client: the server stops"));
      const auto first = std::find_if(guests_.begin(), guests_.end(), [](const Guest& guest) {
        return guest.stage == Stage::kWaiting;
      });
      if (first != guests_.end()) {
        std::string address = first->connection.remote_address().ToText();
        AcceptedClient client{std::move(first->connection), std::move(first->hello),
                              std::move(address)};
        guests_.erase(first);
        serving_ = true;
        wake_.Notify();  // the others move up
        return client;
      }
    }
    const auto forever = Deadline::At(TimePoint::max());
    if (WaitFd(ready_.fd(), POLLIN, forever, interrupt_fd) == WaitResult::kInterrupted) {
      return Fail(InterruptedError("waiting for a client"));
    }
  }
}

void ClientQueue::Run() {
  std::vector<pollfd> fds;
  std::vector<uint64_t> ids;
  bool stopped = false;
  while (!stopped) {
    int timeout_ms = 0;
    {
      const std::lock_guard lock(mutex_);
      timeout_ms = PrepareWait(fds, ids);
    }
    ::poll(fds.data(), fds.size(), timeout_ms);
    std::vector<Rejection> rejections;
    {
      const std::lock_guard lock(mutex_);
      if (fds[0].revents != 0) wake_.Drain();
      // By id: Next may have taken a guest meanwhile, and its descriptor may be another's now.
      for (size_t i = 0; i < ids.size(); ++i) {
        if (fds[i + 2].revents == 0) continue;
        const auto guest = std::find_if(guests_.begin(), guests_.end(),
                                        [&](const Guest& g) { return g.id == ids[i]; });
        if (guest != guests_.end()) Listen(*guest);
      }
      if (fds[1].revents != 0) AcceptNewcomers();
      CheckTimes();
      TellPositions();
      stopped = stop_;
      if (stopped) {
        for (Guest& guest : guests_) TurnAway(guest, QueueError("the server stops"));
      }
      RemoveDropped();
      rejections.swap(rejections_);
    }
    for (const Rejection& rejection : rejections) {
      if (options_.on_rejected) options_.on_rejected(rejection.peer, rejection.error);
    }
  }
}

int ClientQueue::PrepareWait(std::vector<pollfd>& fds, std::vector<uint64_t>& ids) {
  const TimePoint now = Deadline::Clock::now();
  const bool paused = now < accept_again_;
  fds = {{wake_.fd(), POLLIN, 0}, {paused ? -1 : listener_.fd(), POLLIN, 0}};
  ids.clear();
  TimePoint until = paused ? accept_again_ : TimePoint::max();
  for (const Guest& guest : guests_) {
    fds.push_back({guest.connection.fd(), POLLIN, 0});
    ids.push_back(guest.id);
    until = std::min(until, guest.until);
    if (guest.stage == Stage::kWaiting) until = std::min(until, guest.next_notice);
  }
  if (stop_) return 0;
  return until == TimePoint::max() ? -1 : Deadline::At(until).PollTimeoutMs();
}

void ClientQueue::AcceptNewcomers() {
  while (true) {
    auto accepted = listener_.Accept();
    if (!accepted) {
      accept_again_ = Deadline::Clock::now() + kAcceptPause;
      if (!std::exchange(accept_failed_, true)) {
        rejections_.push_back({listener_.address().ToText(), accepted.error()});
      }
      return;
    }
    accept_failed_ = false;
    if (!*accepted) return;
    const bool full = Count(Stage::kUnidentified) >= options_.max_unidentified;
    Guest guest{next_id_++, Connection(std::move(**accepted)), Stage::kUnidentified, {}, {}, {}, 0};
    guest.until = Deadline::Clock::now() + options_.hello_timeout;
    guests_.push_back(std::move(guest));
    if (full) {
      // Who has said nothing for the longest time has the least to say: silent connections must not
      // keep clients out.
      const auto oldest = std::find_if(guests_.begin(), guests_.end(), [](const Guest& g) {
        return g.stage == Stage::kUnidentified;
      });
      TurnAway(*oldest, QueueError(fmt::format("{} connections wait to be identified",
                                               options_.max_unidentified),
                                   "try again later"));
    }
  }
}

void ClientQueue::Listen(Guest& guest) {
  if (guest.stage == Stage::kLeaving) {
    if (DrainToEnd(guest.connection.fd())) guest.until = TimePoint{};
    return;
  }
  auto frame = guest.connection.TryReceive();
  if (!frame) {
    const ConnectionEnd end = guest.connection.end();
    const bool gone = end == ConnectionEnd::kClosed || end == ConnectionEnd::kReset;
    gone ? Drop(guest, frame.error()) : TurnAway(guest, frame.error());
    return;
  }
  if (!*frame) return;
  if (guest.stage == Stage::kUnidentified) return Identify(guest, **frame);
  if ((**frame)["type"] == "heartbeat") return;
  TurnAway(guest, QueueError("protocol: the client spoke before the server's hello"));
}

void ClientQueue::Identify(Guest& guest, const json& frame) {
  auto hello = ReadClientHello(frame, options_.local);
  if (!hello) return TurnAway(guest, hello.error());
  if (Count(Stage::kWaiting) >= options_.max_waiting) {
    return TurnAway(guest, QueueError(fmt::format("the server is busy and {} clients wait already",
                                                  options_.max_waiting),
                                      "try again later"));
  }
  const TimePoint now = Deadline::Clock::now();
  guest.stage = Stage::kWaiting;
  guest.hello = std::move(*hello);
  guest.until = now + options_.queue_timeout;
  guest.next_notice = now;
  const auto self = std::find_if(guests_.begin(), guests_.end(),
                                 [&](const Guest& other) { return other.id == guest.id; });
  guests_.splice(guests_.end(), guests_, self);
  ready_.Notify();
}

void ClientQueue::CheckTimes() {
  const TimePoint now = Deadline::Clock::now();
  for (Guest& guest : guests_) {
    if (now < guest.until) continue;
    if (guest.stage == Stage::kUnidentified) {
      TurnAway(guest, QueueError(fmt::format("peer {} connected but sent no hello within {:.3g} s",
                                             guest.connection.remote_address().ToText(),
                                             Seconds(options_.hello_timeout))));
    } else if (guest.stage == Stage::kWaiting) {
      TurnAway(guest, QueueError(fmt::format("the server was busy for {:.3g} s, the longest it "
                                             "lets a client wait",
                                             Seconds(options_.queue_timeout)),
                                 "try again later, or raise --queue-timeout of the server"));
    }
  }
}

void ClientQueue::TellPositions() {
  const TimePoint now = Deadline::Clock::now();
  size_t position = 0;
  for (Guest& guest : guests_) {
    if (guest.stage != Stage::kWaiting) continue;
    ++position;
    if (position == 1 && !serving_) continue;  // will be served in a moment
    if (guest.told_position == position && now < guest.next_notice) continue;
    guest.told_position = position;
    guest.next_notice = now + options_.queued_interval;
    // One that does not read misses notices; one that is gone shows on reading.
    [[maybe_unused]] const auto sent =
        guest.connection.TrySend({{"type", "queued"}, {"position", position}});
  }
}

void ClientQueue::TurnAway(Guest& guest, Error error) {
  if (guest.stage == Stage::kLeaving) return;
  Reject(guest.connection, error);
  // Closing a socket with unread bytes would reset it, and the peer might never read why. So it is
  // kept for a moment, unless too many are.
  const bool keep = Count(Stage::kLeaving) < kMaxLeaving;
  guest.until = keep ? Deadline::Clock::now() + kLeaveTime : TimePoint{};
  guest.stage = Stage::kLeaving;
  rejections_.push_back({guest.connection.remote_address().ToText(), std::move(error)});
}

void ClientQueue::Drop(Guest& guest, Error error) {
  guest.stage = Stage::kLeaving;
  guest.until = TimePoint{};
  rejections_.push_back({guest.connection.remote_address().ToText(), std::move(error)});
}

void ClientQueue::RemoveDropped() {
  const TimePoint now = Deadline::Clock::now();
  guests_.remove_if(
      [now](const Guest& guest) { return guest.stage == Stage::kLeaving && now >= guest.until; });
}

size_t ClientQueue::Count(Stage stage) const {
  return static_cast<size_t>(std::count_if(guests_.begin(), guests_.end(),
                                           [stage](const Guest& g) { return g.stage == stage; }));
}

}  // namespace verbscope
