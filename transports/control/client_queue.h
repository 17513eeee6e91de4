// The waiting room of `verbscope serve`: clients are accepted and identified at any time, also
// while another one is being served, and served one after the other in the order of their hellos.
//
// A ClientQueue owns the Listener and one acceptor thread that polls over everything: nobody can
// block it, neither a client that connects and says nothing nor one that stops reading. Whoever is
// no verbscope is told so and dropped at once. A waiting client hears its place
// ({"type":"queued","position":1} = next) at once, whenever it changes, and at an interval, so that
// it can tell a busy server from a dead one; who comes to an idle server hears nothing of a queue.
//
// The server's hello is sent by the caller of Next (SendServerHello): the client then knows that it
// is being served.
//
// Threads: Next from one thread; Stop from any. The callback runs on the acceptor thread and must
// not call the queue.
#ifndef VERBSCOPE_TRANSPORTS_CONTROL_CLIENT_QUEUE_H_
#define VERBSCOPE_TRANSPORTS_CONTROL_CLIENT_QUEUE_H_

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "transports/control/connection.h"
#include "transports/control/handshake.h"
#include "transports/control/poll_fd.h"
#include "transports/control/socket.h"

namespace verbscope {

struct ClientQueueOptions {
  LocalHello local;
  std::chrono::milliseconds hello_timeout = kHelloTimeout;  // for a newcomer's hello
  std::chrono::milliseconds queued_interval{1000};          // below the client's hello timeout
  std::chrono::milliseconds queue_timeout{600'000};         // longest wait of a client
  size_t max_waiting = 64;
  size_t max_unidentified = 64;  // connections that have not said hello yet
  // A peer that was turned away or went away while it waited; `peer` is its address, or the
  // listening one when the host refuses to accept at all.
  std::function<void(const std::string& peer, const Error& error)> on_rejected;
};

struct AcceptedClient {
  Connection connection;
  PeerHello hello;
  std::string address;
};

class ClientQueue {
 public:
  static Expected<std::unique_ptr<ClientQueue>> Start(Listener listener,
                                                      const ClientQueueOptions& options);
  ~ClientQueue();
  ClientQueue(const ClientQueue&) = delete;
  ClientQueue& operator=(const ClientQueue&) = delete;

  // The client that has waited longest; waits for one without limit, since an idle server does.
  // kInterrupted once `interrupt_fd` is readable or after Stop.
  Expected<AcceptedClient> Next(int interrupt_fd);
  // Stops accepting and turns away whoever waits. Further calls do nothing.
  void Stop();

  uint16_t port() const { return listener_.port(); }
  const SocketAddress& address() const { return listener_.address(); }

 private:
  using TimePoint = Deadline::Clock::time_point;

  enum class Stage {
    kUnidentified,  // connected, no hello yet
    kWaiting,       // valid hello, not served yet
    kLeaving,       // turned away; kept until it has read why, or for a moment
  };
  struct Guest {
    uint64_t id = 0;
    Connection connection;
    Stage stage = Stage::kUnidentified;
    PeerHello hello;
    TimePoint until;           // end of this stage
    TimePoint next_notice;     // waiting: when to say the position again
    size_t told_position = 0;  // waiting: 0 = not told yet
  };
  struct Rejection {
    std::string peer;
    Error error;
  };
  using GuestList = std::list<Guest>;

  ClientQueue(Listener listener, WakeEvent wake, WakeEvent ready,
              const ClientQueueOptions& options);

  // Acceptor thread. Those below Run are called with mutex_ held.
  void Run();
  int PrepareWait(std::vector<pollfd>& fds, std::vector<uint64_t>& ids);  // poll timeout, ms
  void AcceptNewcomers();
  void Listen(Guest& guest);  // handles what a guest sent
  void Identify(Guest& guest, const nlohmann::json& hello);
  void CheckTimes();
  void TellPositions();
  void TurnAway(Guest& guest, Error error);
  void Drop(Guest& guest, Error error);  // gone by itself
  void RemoveDropped();
  size_t Count(Stage stage) const;

  const ClientQueueOptions options_;
  Listener listener_;
  WakeEvent wake_;   // for the acceptor: something changed
  WakeEvent ready_;  // for Next: a client waits, or Stop

  std::mutex mutex_;  // all of the following
  // Newcomers in order of arrival; a valid hello moves a guest to the end, so that those waiting
  // stand in the order in which they were identified.
  GuestList guests_;
  std::vector<Rejection> rejections_;  // for the callback, which runs without the mutex
  uint64_t next_id_ = 1;
  TimePoint accept_again_;      // after a failed accept: not before
  bool accept_failed_ = false;  // told already
  bool serving_ = false;        // between a client handed out and the next call of Next
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_CONTROL_CLIENT_QUEUE_H_
