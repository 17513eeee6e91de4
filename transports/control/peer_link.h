// The control connection while two verbscopes work together: frames to and fro, and a watch over
// the peer's life, so that a survivor ends in time instead of waiting for ever.
//
// A PeerLink owns the Connection after the handshake and one background thread. The thread sends
// {"type":"heartbeat"} at a fixed interval, reads whatever comes, queues it for Receive, and
// declares the peer lost on end of file, reset, a malformed frame, a flood, or silence: a stopped
// process keeps its socket open. Time in which this process itself did not run is no silence of
// the peer's.
//
// Threads: Send, SendAbort and Receive may be called from any thread; one thread at a time should
// receive. Callbacks run on the control thread (or, for something that has happened already, in
// the Set call), one at a time; they must not block nor call this link, and are meant to set a
// stop flag. When a Set call returns, the callback it replaced is not running and never will again.
//
//   link->SetOnLoss([&stop] { stop.store(true, std::memory_order_relaxed); });
//   Measure(stop);
//   link->SetOnLoss(nullptr);
//   auto record = link->Receive("results", deadline);
#ifndef VERBSCOPE_TRANSPORTS_CONTROL_PEER_LINK_H_
#define VERBSCOPE_TRANSPORTS_CONTROL_PEER_LINK_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "transports/control/connection.h"
#include "transports/control/poll_fd.h"

namespace verbscope {

// Silence limit plus the time to wind up stays below the 5 s in which a survivor must end.
struct PeerLinkOptions {
  std::chrono::milliseconds heartbeat_interval{500};
  std::chrono::milliseconds silence_limit{3000};  // several heartbeats long
  std::chrono::milliseconds tick_interval{20};
  // Frames received but not yet asked for; more is a flood.
  size_t max_queued_frames = 256;
  size_t max_queued_bytes = 16 << 20;  // of JSON text
  int interrupt_fd = -1;               // readable once the user wants to stop
};

class PeerLink {
 public:
  static Expected<std::unique_ptr<PeerLink>> Start(Connection connection,
                                                   const PeerLinkOptions& options = {});
  ~PeerLink();  // closes the connection at once; see Goodbye
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  // Sends one frame; other senders wait their turn. Once the peer is lost, its abort is the error
  // if it sent one, else the loss.
  Status Send(const nlohmann::json& frame, Deadline deadline);

  // The next frame, which must be of this type. Frames that came before the peer was lost are
  // still delivered. Errors:
  //   the peer's own, when it sent {"type":"abort","error":{…}}: side kPeer; class as the peer's,
  //     but kRun for what only ended the peer's process (kInterrupted, kDeadline);
  //   the loss (kRun): "peer closed the control connection", "connection reset", "no heartbeat for
  //     3 s: …", "malformed …", "flooded …";
  //   kRun "protocol: expected X, got Y", also when the peer has said goodbye;
  //   kRun with errno_value ETIMEDOUT at the deadline; kInterrupted (before anything else, and
  //   again
  //     at every call until IgnoreInterrupt).
  Expected<nlohmann::json> Receive(std::string_view type, Deadline deadline);

  // After an interrupt was handled: Receive works again, to collect the peer's partial record.
  void IgnoreInterrupt();

  // Why the peer is gone: its abort if it sent one, else the loss. Takes no frame. Waits for either
  // until the deadline; then an error that says so.
  Error WhyLost(Deadline deadline);

  // How the peer was lost, once it is.
  std::optional<Error> loss() const;

  // `fn` runs once, when no further frame can come although this side has not said goodbye.
  void SetOnLoss(std::function<void()> fn);
  // `fn` runs for each frame of `type` as it arrives; the frame is queued for Receive all the same.
  // At once if one is waiting already.
  void SetOnFrame(const std::string& type, std::function<void(const nlohmann::json&)> fn);
  // `fn` runs every tick_interval, also after a loss. Without one the thread sleeps until the next
  // heartbeat is due.
  void SetOnTick(std::function<void()> fn);

  // Tells the peer why this side gives up, and what else may explain it: any JSON, null for
  // nothing. Best effort within 500 ms.
  void SendAbort(const Error& error, const nlohmann::json& evidence = nullptr);
  // What came with the peer's abort, unchecked; null: nothing, or no abort came.
  nlohmann::json AbortEvidence() const;
  // Says goodbye and waits for the peer's goodbye or end of file: after it an end is no loss.
  // Frames that nobody received are dropped; an abort among them is the error. Ignores the
  // interrupt.
  Status Goodbye(Deadline deadline);

  const SocketAddress& local_address() const { return connection_.local_address(); }
  const SocketAddress& remote_address() const { return connection_.remote_address(); }

 private:
  using TimePoint = Deadline::Clock::time_point;
  using FrameCallback = std::function<void(const nlohmann::json&)>;

  struct Queued {
    nlohmann::json frame;
    size_t bytes = 0;
  };

  PeerLink(Connection connection, WakeEvent wake, const PeerLinkOptions& options);

  // Control thread.
  void Run();
  bool WaitForWork(bool busy);  // false: time to stop
  bool ReadFrames();            // true: more may be waiting in the decoder
  void Dispatch(nlohmann::json frame, size_t bytes);
  void WatchSilence(std::chrono::nanoseconds awake);
  void SendHeartbeat();
  void Tick(TimePoint now);
  void End(const Error& error);  // of the stream; a loss unless goodbyes were said
  void DeclareLost(Error error, bool tell_peer);

  // One sender at a time; unlike a mutex's, the wait for a turn has a deadline.
  bool TakeTurn(Deadline deadline);
  bool TakeTurnIfFree();
  void GiveTurn();
  Status SendWithTurn(const nlohmann::json& frame, Deadline deadline);

  std::optional<Error> QueuedAbort() const;  // with mutex_ held
  std::optional<Error> WhyGone() const;      // once the peer is lost: its abort, or the loss

  const PeerLinkOptions options_;
  Connection connection_;
  WakeEvent wake_;

  // Held while callbacks run and change; taken before mutex_, never after.
  std::mutex callback_mutex_;
  std::function<void()> on_loss_;
  std::function<void()> on_tick_;
  std::map<std::string, FrameCallback> on_frame_;

  mutable std::mutex mutex_;  // all of the following
  std::condition_variable changed_;
  std::deque<Queued> queue_;
  size_t queued_bytes_ = 0;
  std::optional<Error> loss_;
  std::optional<Error> abort_;  // received and handed out
  nlohmann::json evidence_;     // that came with it
  bool ended_ = false;          // nothing more comes: lost, or closed after a goodbye
  bool goodbye_sent_ = false;
  bool peer_goodbye_ = false;
  bool interrupted_ = false;
  bool ignore_interrupt_ = false;
  bool stop_ = false;
  bool ticking_ = false;
  bool sending_ = false;  // somebody has the turn
  std::condition_variable turn_;

  // Control thread only.
  TimePoint heartbeat_due_;
  TimePoint tick_due_;
  std::chrono::nanoseconds silence_{0};
  uint64_t bytes_seen_ = 0;
  bool watch_interrupt_ = true;

  std::thread thread_;  // last: everything else exists before it runs
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_CONTROL_PEER_LINK_H_
