// The caller's side of a PeerLink. The control thread's side is in peer_link_thread.cc.
#include "transports/control/peer_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transports/control/error_json.h"
#include "transports/control/sanitize.h"

namespace verbscope {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kAbortTimeout{500};
// How long the control thread may take to notice an end that a send has noticed.
constexpr std::chrono::milliseconds kEndTime(500);

Error RunError(std::string message) {
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message = std::move(message);
  return error;
}

std::string TypeOf(const json& frame) {
  return frame["type"].get_ref<const std::string&>();  // the decoder has checked it
}

Error Unexpected(std::string_view expected, std::string_view got) {
  Error error =
      RunError(fmt::format("protocol: expected \"{}\", got \"{}\"", expected, Sanitize(got, 64)));
  error.side = Side::kPeer;
  error.cause = "the two sides are at different steps";
  return error;
}

// What the peer says of itself, as this side must report it: an interrupt or a deadline of the
// peer's is, from here, a run that broke.
Error AbortError(const json& frame) {
  const auto it = frame.find("error");
  Error error = ErrorFromWire(it == frame.end() ? json() : *it);
  error.side = Side::kPeer;
  if (error.error_class == ErrorClass::kInterrupted || error.error_class == ErrorClass::kDeadline) {
    error.error_class = ErrorClass::kRun;
  }
  return error;
}

}  // namespace

Expected<std::unique_ptr<PeerLink>> PeerLink::Start(Connection connection,
                                                    const PeerLinkOptions& options) {
  auto wake = WakeEvent::Make();
  if (!wake) return Fail(wake.error());
  connection.MarkIdentified();
  std::unique_ptr<PeerLink> link(new PeerLink(std::move(connection), std::move(*wake), options));
  auto thread = StartThread("vs-control", [raw = link.get()] { raw->Run(); });
  if (!thread) return Fail(thread.error());
  link->thread_ = std::move(*thread);
  return link;
}

PeerLink::PeerLink(Connection connection, WakeEvent wake, const PeerLinkOptions& options)
    : options_(options), connection_(std::move(connection)), wake_(std::move(wake)) {
  const TimePoint now = Deadline::Clock::now();
  heartbeat_due_ = now + options_.heartbeat_interval;
  tick_due_ = now;
  // The handshake may have read ahead; only what comes from now on is a sign of life.
  bytes_seen_ = connection_.bytes_received();
}

PeerLink::~PeerLink() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.Notify();
  if (thread_.joinable()) thread_.join();
}

bool PeerLink::TakeTurn(Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!turn_.wait_until(lock, deadline.when(), [this] { return !sending_; })) return false;
  sending_ = true;
  return true;
}

bool PeerLink::TakeTurnIfFree() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(sending_, true);
}

void PeerLink::GiveTurn() {
  {
    const std::lock_guard lock(mutex_);
    sending_ = false;
  }
  turn_.notify_one();
}

Status PeerLink::SendWithTurn(const json& frame, Deadline deadline) {
  if (!TakeTurn(deadline)) {
    Error error = RunError("another thread was sending to the peer all the time");
    error.errno_value = ETIMEDOUT;
    return Fail(std::move(error));
  }
  Status sent = connection_.Send(frame, deadline);
  GiveTurn();
  return sent;
}

Status PeerLink::Send(const json& frame, Deadline deadline) {
  if (auto gone = WhyGone()) return Fail(*std::move(gone));
  Status sent = SendWithTurn(frame, deadline);
  if (sent) return sent;
  if (sent.error().errno_value != ETIMEDOUT) {
    // The stream has ended; the control thread is about to read what the peer said last.
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kEndTime, [this] { return loss_ || ended_; });
  }
  if (auto gone = WhyGone()) return Fail(*std::move(gone));
  return sent;
}

Expected<json> PeerLink::Receive(std::string_view type, Deadline deadline) {
  const TimePoint start = Deadline::Clock::now();
  const auto something = [this] {
    return (interrupted_ && !ignore_interrupt_) || !queue_.empty() || abort_ || loss_ ||
           peer_goodbye_ || ended_;
  };
  std::unique_lock lock(mutex_);
  const bool in_time = changed_.wait_until(lock, deadline.when(), something);
  if (interrupted_ && !ignore_interrupt_) {
    return Fail(InterruptedError(fmt::format("waiting for the peer's \"{}\"", type)));
  }
  if (!queue_.empty()) {
    Queued next = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= next.bytes;
    const std::string got = TypeOf(next.frame);
    if (got == type) return std::move(next.frame);
    if (got != "abort") return Fail(Unexpected(type, got));
    abort_ = AbortError(next.frame);
    evidence_ = next.frame.value("evidence", json());
  }
  if (abort_) return Fail(*abort_);
  if (loss_) return Fail(*loss_);
  if (in_time) return Fail(Unexpected(type, "goodbye"));
  Error error = RunError(
      fmt::format("no \"{}\" from the peer {} within {:.1f} s", type, remote_address().ToText(),
                  std::chrono::duration<double>(Deadline::Clock::now() - start).count()));
  error.errno_value = ETIMEDOUT;
  return Fail(std::move(error));
}

void PeerLink::IgnoreInterrupt() {
  const std::lock_guard lock(mutex_);
  ignore_interrupt_ = true;
}

std::optional<Error> PeerLink::WhyGone() const {
  const std::lock_guard lock(mutex_);
  if (!loss_) return std::nullopt;
  // A peer that said why before it went explains more than its going.
  if (std::optional<Error> abort = QueuedAbort()) return abort;
  return loss_;
}

Error PeerLink::WhyLost(Deadline deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline.when(), [this] { return QueuedAbort() || loss_ || ended_; });
  if (std::optional<Error> abort = QueuedAbort()) return *std::move(abort);
  if (loss_) return *loss_;
  Error error = RunError("the peer ended the run, and did not say why");
  error.next_step = "look at the output of the other side";
  return error;
}

std::optional<Error> PeerLink::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_;
}

void PeerLink::SetOnLoss(std::function<void()> fn) {
  const std::lock_guard callbacks(callback_mutex_);
  on_loss_ = std::move(fn);
  bool happened = false;
  {
    const std::lock_guard lock(mutex_);
    happened = ended_ && !goodbye_sent_;
  }
  if (happened && on_loss_) on_loss_();
}

void PeerLink::SetOnFrame(const std::string& type, FrameCallback fn) {
  const std::lock_guard callbacks(callback_mutex_);
  if (!fn) {
    on_frame_.erase(type);
    return;
  }
  std::vector<json> waiting;
  {
    const std::lock_guard lock(mutex_);
    for (const Queued& queued : queue_) {
      if (TypeOf(queued.frame) == type) waiting.push_back(queued.frame);
    }
    if (peer_goodbye_ && type == "goodbye") waiting.push_back({{"type", "goodbye"}});
  }
  for (const json& frame : waiting) fn(frame);
  on_frame_[type] = std::move(fn);
}

void PeerLink::SetOnTick(std::function<void()> fn) {
  {
    const std::lock_guard callbacks(callback_mutex_);
    on_tick_ = std::move(fn);
    const std::lock_guard lock(mutex_);
    ticking_ = on_tick_ != nullptr;
  }
  wake_.Notify();
}

void PeerLink::SendAbort(const Error& error, const json& evidence) {
  json frame = {{"type", "abort"}, {"error", ErrorToWire(error)}};
  if (!evidence.is_null()) frame["evidence"] = evidence;
  [[maybe_unused]] const Status sent = SendWithTurn(frame, Deadline::After(kAbortTimeout));
}

json PeerLink::AbortEvidence() const {
  const std::lock_guard lock(mutex_);
  for (const Queued& queued : queue_) {
    if (TypeOf(queued.frame) == "abort") return queued.frame.value("evidence", json());
  }
  return evidence_;
}

std::optional<Error> PeerLink::QueuedAbort() const {
  for (const Queued& queued : queue_) {
    if (TypeOf(queued.frame) == "abort") return AbortError(queued.frame);
  }
  return abort_;
}

Status PeerLink::Goodbye(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (loss_) return Fail(*loss_);
    goodbye_sent_ = true;
  }
  Status sent = SendWithTurn({{"type", "goodbye"}}, deadline);
  std::unique_lock lock(mutex_);
  // Who closed before our goodbye arrived has ended all the same: the wait below sees it.
  if (!sent && sent.error().errno_value == ETIMEDOUT) return sent;
  std::optional<Error> abort;
  const bool in_time = changed_.wait_until(lock, deadline.when(), [&] {
    abort = QueuedAbort();
    return abort || peer_goodbye_ || ended_;
  });
  if (abort) return Fail(*std::move(abort));
  if (loss_) return Fail(*loss_);
  if (in_time) return {};
  Error error =
      RunError(fmt::format("the peer {} did not say goodbye in time", remote_address().ToText()));
  error.errno_value = ETIMEDOUT;
  return Fail(std::move(error));
}

}  // namespace verbscope
