// The verbs objects of the fake device and the state they share. Internal to this package.
//
// Each object derives from the public struct it is handed out as, so the inline verbs and this code
// see the same address. Everything here is guarded by State::mutex, except what says otherwise.
// Functions of State need the mutex held, except RunHook.
#ifndef VERBSCOPE_TRANSPORTS_FAKE_FAKE_OBJECTS_H_
#define VERBSCOPE_TRANSPORTS_FAKE_FAKE_OBJECTS_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file_descriptor.h"
#include "transports/fake/fake_fabric.h"

namespace verbscope::fake {

// An event on a completion channel is the address of its CQ, as with a real device.
constexpr size_t kEventBytes = 8;
static_assert(sizeof(void*) == kEventBytes);

// One opened device as the inline verbs see it.
struct Context {
  ibv_device device{};
  verbs_context verbs{};
  FileDescriptor async_fd;  // eventfd in semaphore mode: one count per text
  std::deque<AsyncEvent> async_events;
};

struct FakePd : ibv_pd {
  FakePd() : ibv_pd{} {}
  int users = 0;  // MRs and QPs
};

struct FakeMr : ibv_mr {
  FakeMr() : ibv_mr{} {}
  int access = 0;
};

struct FakeChannel : ibv_comp_channel {
  FakeChannel() : ibv_comp_channel{} {}
  FileDescriptor read_end;   // blocking, as a real channel is
  FileDescriptor write_end;  // non-blocking: the data path never waits for a reader
};

struct Completion {
  ibv_wc wc;
  bool solicited = false;
  bool receive = false;
  std::optional<uint64_t> covers;  // send or receive slots that are free once this is polled
};

struct FakeCq : ibv_cq {
  FakeCq() : ibv_cq{} {}
  State* state = nullptr;
  Context* owner = nullptr;
  int users = 0;  // a QP counts once per queue
  size_t capacity = 0;
  std::deque<Completion> entries;
  std::atomic<size_t> size{0};  // of entries; read without the mutex, so idle polling is cheap
  int swallow = 0;
  bool hold = false;
  FakeCqView seen;  // the counters of the view; `entries` and `capacity` are filled in when asked
};

struct SendRequest {
  ibv_send_wr wr;  // next and sg_list are not followed
  std::vector<ibv_sge> sges;
  std::vector<std::byte> inline_bytes;
  uint64_t number = 0;  // 1 for the first request since RESET
};

struct RecvRequest {
  uint64_t wr_id = 0;
  std::vector<ibv_sge> sges;
};

struct FakeQp : ibv_qp {
  FakeQp() : ibv_qp{} {}
  State* fabric = nullptr;
  Context* owner = nullptr;
  ibv_qp_state current = IBV_QPS_RESET;  // ibv_qp::state is what ModifyQp or a query last said
  ibv_qp_cap cap{};
  ibv_qp_attr attributes{};   // of all transitions so far
  std::vector<ibv_gid> gids;  // of the port, as it was at RESET to INIT
  uint32_t lid = 0;
  std::deque<SendRequest> send_queue;  // not executed yet
  std::deque<RecvRequest> recv_queue;
  uint64_t sends_posted = 0;
  uint64_t sends_freed = 0;
  uint32_t recv_slots_used = 0;
  std::optional<ibv_wc_status> fail_next;
  bool blob_accepted = false;
};

// How executing the request at the head of a send queue ended.
struct Outcome {
  bool waits = false;  // no receive yet: try again when there is one
  ibv_wc_status status = IBV_WC_SUCCESS;
  uint32_t byte_len = 0;          // of data that came back (READ, Atomic)
  FakeQp* broken_peer = nullptr;  // the responder goes to ERR too
};

struct State {
  std::mutex mutex;
  std::map<ibv_pd*, std::unique_ptr<FakePd>> pds;
  std::map<uint32_t, std::unique_ptr<FakeMr>> mrs;  // by key; lkey and rkey are the same
  std::map<ibv_comp_channel*, std::unique_ptr<FakeChannel>> channels;
  std::map<ibv_cq*, std::unique_ptr<FakeCq>> cqs;
  std::map<uint32_t, std::unique_ptr<FakeQp>> qps;  // by number; numbers are never used again
  // Destroyed CQs whose events are still unread: their addresses must not be used again before.
  std::vector<std::unique_ptr<FakeCq>> retired_cqs;
  std::vector<std::shared_ptr<Context>> contexts;  // kept for objects that outlive their device
  int devices = 0;
  int buffers = 0;
  uint32_t next_qpn = 0x11;
  uint32_t next_key = 0x1001;
  uint32_t next_handle = 1;
  bool rnr_exhausts = false;
  bool signals_queued = false;
  std::atomic<int> hooks_waiting{0};
  std::map<std::pair<FakePoint, const void*>, std::deque<std::function<void()>>> hooks;

  void RunHook(FakePoint point, const void* object);  // takes the mutex itself

  // fake_fabric.cc: completions and events.
  void Push(FakeCq& cq, const Completion& completion);
  void SendEvent(FakeCq& cq);
  void RaiseAsync(Context& context, AsyncEvent event);
  // Forgets the completions of a QP that is reset or destroyed.
  void PurgeCompletions(FakeQp& qp);

  // fake_data_path.cc: messages.
  FakeQp* FindQp(uint32_t number);
  // Executes what the send queue holds, as far as it goes; flushes it in ERR.
  void Progress(FakeQp& qp);
  // Both QPs to ERR (`other` may be null), queues flushed in order, waiting peers told.
  void EnterError(FakeQp& qp, FakeQp* other);
  // Queues emptied without completions, waiting peer told.
  void Reset(FakeQp& qp);
};

// Puts the inline verbs' entries into a context (fake_verbs.cc).
void FillOps(ibv_context_ops& ops);

inline FakeCq& Of(ibv_cq* cq) { return *static_cast<FakeCq*>(cq); }
inline FakeQp& Of(ibv_qp* qp) { return *static_cast<FakeQp*>(qp); }

inline bool IsSend(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}
inline bool IsAtomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
inline bool IsWrite(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
inline bool HasImmediate(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
inline bool Supported(ibv_wr_opcode opcode) {
  return IsSend(opcode) || IsWrite(opcode) || IsAtomic(opcode) || opcode == IBV_WR_RDMA_READ;
}

inline std::byte* At(uint64_t address) {
  // Verbs carries addresses as integers. NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address));
}

inline size_t TotalBytes(const std::vector<ibv_sge>& sges) {
  size_t bytes = 0;
  for (const ibv_sge& sge : sges) bytes += sge.length;
  return bytes;
}

}  // namespace verbscope::fake

#endif  // VERBSCOPE_TRANSPORTS_FAKE_FAKE_OBJECTS_H_
