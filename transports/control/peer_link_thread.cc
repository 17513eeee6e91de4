// The control thread of a PeerLink: heartbeats, reading, and the watch over the peer.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "transports/control/error_json.h"
#include "transports/control/peer_link.h"

namespace verbscope {
namespace {

using nlohmann::json;

// Reads per round: a peer that streams must not keep heartbeats and ticks from their turn.
constexpr int kReadsPerRound = 32;

Error Loss(const Connection& connection, std::string what, std::string cause) {
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message = fmt::format("{} ({})", what, connection.remote_address().ToText());
  error.cause = std::move(cause);
  error.next_step = "look at the other side's output and log";
  return error;
}

Error LossOfStream(const Connection& connection, const Error& error) {
  switch (connection.end()) {
    case ConnectionEnd::kClosed:
      return Loss(connection, "peer closed the control connection",
                  "the peer process ended before the run did");
    case ConnectionEnd::kReset: {
      Error loss = Loss(connection, "connection reset",
                        "the peer process or host ended, or something between cut the connection");
      loss.errno_value = error.errno_value;
      return loss;
    }
    default:
      return error;
  }
}

}  // namespace

void PeerLink::Run() {
  TimePoint before = Deadline::Clock::now();
  bool busy = true;  // the handshake may have read ahead: look before the first wait
  while (WaitForWork(busy)) {
    const TimePoint now = Deadline::Clock::now();
    bool open = false;
    {
      const std::lock_guard lock(mutex_);
      open = !ended_;
    }
    busy = open && ReadFrames();
    if (open) WatchSilence(now - before);
    before = now;
    if (open && now >= heartbeat_due_) {
      SendHeartbeat();
      heartbeat_due_ = now + options_.heartbeat_interval;
    }
    Tick(now);
  }
}

bool PeerLink::WaitForWork(bool busy) {
  bool open = false;
  TimePoint until = TimePoint::max();
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return false;
    open = !ended_;
    if (open) until = std::min(until, heartbeat_due_);
    if (ticking_) until = std::min(until, tick_due_);
  }
  std::array<pollfd, 3> fds = {{{wake_.fd(), POLLIN, 0},
                                {open ? connection_.fd() : -1, POLLIN, 0},
                                {watch_interrupt_ ? options_.interrupt_fd : -1, POLLIN, 0}}};
  int timeout_ms = until == TimePoint::max() ? -1 : Deadline::At(until).PollTimeoutMs();
  if (busy) timeout_ms = 0;
  if (::poll(fds.data(), fds.size(), timeout_ms) > 0) {
    if (fds[0].revents != 0) wake_.Drain();
    if (fds[2].revents != 0) {
      watch_interrupt_ = false;  // it stays readable
      const std::lock_guard lock(mutex_);
      interrupted_ = true;
      changed_.notify_all();
    }
  }
  const std::lock_guard lock(mutex_);
  return !stop_;
}

bool PeerLink::ReadFrames() {
  for (int i = 0; i < kReadsPerRound; ++i) {
    auto frame = connection_.TryReceive();
    if (!frame) {
      End(frame.error());
      return false;
    }
    if (!*frame) return false;
    Dispatch(std::move(**frame), connection_.last_frame_bytes());
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
  }
  return true;
}

void PeerLink::Dispatch(json frame, size_t bytes) {
  const std::string type = frame["type"].get<std::string>();
  if (type == "heartbeat") return;
  const std::lock_guard callbacks(callback_mutex_);
  bool flooded = false;
  {
    const std::lock_guard lock(mutex_);
    if (type == "goodbye") {
      peer_goodbye_ = true;
    } else if (queue_.size() >= options_.max_queued_frames ||
               queued_bytes_ + bytes > options_.max_queued_bytes) {
      flooded = true;
    } else {
      queued_bytes_ += bytes;
      queue_.push_back({frame, bytes});
    }
    changed_.notify_all();
  }
  if (flooded) {
    DeclareLost(Loss(connection_, "flooded: the peer sent more than was asked for",
                     "the two sides are at different steps, or the peer is no verbscope"),
                /*tell_peer=*/true);
    return;
  }
  const auto it = on_frame_.find(type);
  if (it != on_frame_.end()) it->second(frame);
}

// Called after reading, so that what came while this process was stopped or busy counts. For the
// same reason a round counts for no more than its planned length.
void PeerLink::WatchSilence(std::chrono::nanoseconds awake) {
  if (std::exchange(bytes_seen_, connection_.bytes_received()) != connection_.bytes_received()) {
    silence_ = std::chrono::nanoseconds(0);
    return;
  }
  silence_ += std::min<std::chrono::nanoseconds>(awake, options_.heartbeat_interval);
  if (silence_ < options_.silence_limit) return;
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || peer_goodbye_) return;
  }
  const double limit_s = std::chrono::duration<double>(options_.silence_limit).count();
  const std::lock_guard callbacks(callback_mutex_);
  DeclareLost(
      Loss(connection_,
           fmt::format("no heartbeat for {:.3g} s: peer process stopped or host unreachable",
                       limit_s),
           ""),
      /*tell_peer=*/true);
}

void PeerLink::SendHeartbeat() {
  // Whoever has the turn is sending, and any byte is a sign of life. A failure shows on reading.
  if (!TakeTurnIfFree()) return;
  [[maybe_unused]] const auto sent = connection_.TrySend({{"type", "heartbeat"}});
  GiveTurn();
}

void PeerLink::Tick(TimePoint now) {
  const std::lock_guard callbacks(callback_mutex_);
  if (!on_tick_ || now < tick_due_) return;
  on_tick_();
  tick_due_ = now + options_.tick_interval;
}

void PeerLink::End(const Error& error) {
  const std::lock_guard callbacks(callback_mutex_);
  const bool closed =
      connection_.end() == ConnectionEnd::kClosed || connection_.end() == ConnectionEnd::kReset;
  bool left_early = false;
  bool clean = false;
  {
    const std::lock_guard lock(mutex_);
    clean = closed && (goodbye_sent_ || peer_goodbye_);
    if (clean) {
      ended_ = true;
      left_early = !goodbye_sent_;
      changed_.notify_all();
    }
  }
  if (!clean) DeclareLost(LossOfStream(connection_, error), /*tell_peer=*/!closed);
  if (left_early && on_loss_) on_loss_();
}

// With callback_mutex_ held.
void PeerLink::DeclareLost(Error error, bool tell_peer) {
  if (tell_peer && TakeTurnIfFree()) {
    [[maybe_unused]] const auto sent =
        connection_.TrySend({{"type", "abort"}, {"error", ErrorToWire(error)}});
    GiveTurn();
  }
  {
    const std::lock_guard lock(mutex_);
    loss_ = std::move(error);
    ended_ = true;
    changed_.notify_all();
  }
  connection_.Shutdown(/*both=*/true);  // ends a Send that waits for a peer that takes nothing
  if (on_loss_) on_loss_();
}

}  // namespace verbscope
