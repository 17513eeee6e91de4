// What joins fake devices in one process: it finds queue pairs by number, carries their messages,
// counts what is alive, and is where a test asks for trouble.
//
// This is a test double, not a transport. A message moves inside ibv_post_send (or, when it had to
// wait for a receive, inside the peer's ibv_post_recv), in the thread that called; there is no
// wire, no time and no retry. Everything a device would try again until a timeout fails at once
// instead, so a step out of order is an error every time and not once in a thousand runs.
//
// Ownership: make one with std::make_shared and give it to every FakeDevice that shall reach the
// others. It lives as long as the last of them, and frees what they left behind, so live() shows a
// leak and leak checkers stay quiet about a test that leaks on purpose.
//
// Threads: every function may be called from any thread, also from a hook. One mutex guards all;
// hooks run without it, in the thread that reached the point. Whoever takes a completion sees all
// memory that the poster wrote before posting; of an RDMA WRITE the last byte is stored last, with
// release order, so a target may spin on it with an acquire load.
#ifndef VERBSCOPE_TRANSPORTS_FAKE_FAKE_FABRIC_H_
#define VERBSCOPE_TRANSPORTS_FAKE_FAKE_FABRIC_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "transports/device.h"

namespace verbscope {

namespace fake {
struct Context;
struct State;
}  // namespace fake

// Where a test may step in between two calls of the code under test.
enum class FakePoint {
  kAfterEmptyPoll,   // a poll of the CQ found nothing and is about to return 0
  kBeforeArm,        // ibv_req_notify_cq was called, the CQ is not yet armed
  kAfterArm,         // the CQ is armed, ibv_req_notify_cq is about to return
  kBeforeEventRead,  // Device::GetCqEvent is about to block on the channel
};

// How many objects of each kind exist. All zero at the end of a test that tears down properly.
struct FakeLive {
  int devices = 0;
  int pds = 0;
  int buffers = 0;
  int mrs = 0;
  int channels = 0;
  int cqs = 0;
  int qps = 0;
  int total() const { return devices + pds + buffers + mrs + channels + cqs + qps; }
};

enum class FakeArming { kNone, kSolicited, kAny };

struct FakeCqView {
  size_t entries = 0;       // completions waiting to be polled
  size_t capacity = 0;      // exactly the cqe that was asked for
  uint64_t pushed = 0;      // completions ever generated, the lost ones included
  bool overflowed = false;  // latched: a completion was lost because the CQ was full
  FakeArming arming = FakeArming::kNone;
  uint64_t arms = 0;          // successful calls of ibv_req_notify_cq
  uint64_t events_sent = 0;   // written to the channel
  uint64_t events_taken = 0;  // returned by GetCqEvent
  uint64_t events_acked = 0;
  uint64_t events_held = 0;  // waiting for ReleaseEvents
  uint64_t events_swallowed = 0;
};

struct FakeQpView {
  ibv_qp_state state = IBV_QPS_RESET;
  uint32_t send_slots_used = 0;  // freed only by polling a completion that covers them
  uint32_t recv_slots_used = 0;
  size_t sends_waiting = 0;    // not executed yet: no receive at the peer
  bool blob_accepted = false;  // AcceptPeerBlob was called with a good blob
};

class FakeFabric {
 public:
  FakeFabric();
  ~FakeFabric();
  FakeFabric(const FakeFabric&) = delete;
  FakeFabric& operator=(const FakeFabric&) = delete;

  FakeLive live() const;
  // The object must be alive.
  FakeCqView Look(ibv_cq* cq) const;
  FakeQpView Look(ibv_qp* qp) const;

  // A message that finds no receive waits for one (default), as with a patient RNR timer. When on,
  // it fails at once with RNR_RETRY_EXC_ERR, unless the sender's rnr_retry is 7 (for ever).
  void set_rnr_exhausts(bool on);

  // What arming does about completions that are in the CQ already: nothing (default, the verbs
  // rule), or an event at once, as some devices answer.
  void set_signals_queued(bool on);

  // The next event of this CQ is lost on the way; the CQ is disarmed as if it had been sent.
  void SwallowNextEvent(ibv_cq* cq);
  // An event nobody armed for: sent now, whether or not the CQ has entries. Call twice to
  // duplicate.
  void SendSpuriousEvent(ibv_cq* cq);
  // From now on events of this CQ are kept back, until ReleaseEvents sends those kept and ends it.
  void HoldEvents(ibv_cq* cq);
  void ReleaseEvents(ibv_cq* cq);

  // Puts a completion into the CQ exactly as given, garbage included; events and overflow follow
  // the usual rules. It frees no queue slot.
  void InjectCompletion(ibv_cq* cq, const ibv_wc& completion, bool solicited = false);
  // The next request that this QP executes fails with `status` and takes the QP to ERR; the peer
  // stays as it is.
  void FailNextSend(ibv_qp* qp, ibv_wc_status status);
  // An asynchronous event for NextAsyncEvent of the device that owns the QP.
  void RaiseAsyncEvent(ibv_qp* qp, const AsyncEvent& event);

  // Runs `action` once, when the point is reached for `object` (a CQ; a channel for
  // kBeforeEventRead). Several actions queue up: each arrival takes one, so N empty actions before
  // the real one choose the N+1st arrival.
  void RunAt(FakePoint point, const void* object, std::function<void()> action);

 private:
  friend class FakeDevice;
  std::unique_ptr<fake::State> state_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_FAKE_FAKE_FABRIC_H_
