// Several queue pairs of one side that share completion queues, with what belongs to them: PD,
// buffer, MR, a completion channel where events are asked for. Made by Stage::MakeQpSet, connected
// to the set that the other side makes at the same time; the n-th of one to the n-th of the other.
//
// Queue pair i completes into CQ i % cqs, its sends and its receives. The index decides and not
// qp_num, since a CQ must be named before the device gives the number; devices that count their
// queue pairs spread them in the same way.
//
// Owned by a Stage; the session's thread. Other threads may post and poll as verbs allow. The
// objects are destroyed in reverse order.
#ifndef VERBSCOPE_CORE_SCENARIO_QP_SET_H_
#define VERBSCOPE_CORE_SCENARIO_QP_SET_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/endpoint/connect.h"
#include "core/plan/plan.h"
#include "transports/device.h"

namespace verbscope {

class Stage;

struct QpSetOptions {
  uint32_t qps = 1;
  uint32_t cqs = 1;
  uint32_t cqe = 1;      // entries asked for of each CQ; the device may give more
  bool channel = false;  // of all CQs, non-blocking
  uint32_t send_depth = 1;
  uint32_t receive_depth = 1;
  // Of both queues where that is more: so many requests above what a CQ has room for; 0: not asked.
  uint32_t beyond_cqe = 0;
  uint64_t size_bytes = 0;  // of a message; the queue pairs share some places for them
  // Of these queue pairs alone; absent: the plan's.
  std::optional<uint32_t> timeout_code = {};
  std::optional<uint32_t> retry_count = {};
  std::optional<uint32_t> rnr_retry = {};
};

class QpSet {
 public:
  // All objects made, the QPs in INIT.
  static Expected<std::unique_ptr<QpSet>> Create(Stage& stage, const QpSetOptions& options);
  QpSet(const QpSet&) = delete;
  QpSet& operator=(const QpSet&) = delete;
  ~QpSet() = default;

  // INIT to RTS with the peer's values; both sides must call it, and all are in RTS afterwards.
  // Receives may be posted before.
  Status Connect();

  uint32_t size() const { return static_cast<uint32_t>(qps_.size()); }
  ibv_qp* qp(size_t index = 0) const { return qps_[index].get(); }
  ibv_cq* cq(size_t index = 0) const { return cqs_[index].get(); }
  uint32_t cqe() const;  // entries of the smallest CQ
  ibv_comp_channel* channel() const { return channel_.get(); }

  // A signalled request of queue pair `index`, prebuilt: a SEND from, or a WRITE from and to, the
  // place of that queue pair. Its SGE lives as long as this set. After Connect.
  ibv_send_wr Request(size_t index, ibv_wr_opcode opcode);
  // A receive for one message.
  ibv_recv_wr Receive(size_t index);
  // 0 or an errno.
  int PostSend(size_t index, ibv_wr_opcode opcode, uint64_t wr_id);
  int PostReceive(size_t index, uint64_t wr_id);

  // The error of a run that broke with this completion of queue pair `index`.
  Error Explain(const ibv_wc& completion, size_t index, std::string op, uint64_t number) const;

  // The first failure. Idempotent; afterwards the set is of no use.
  Status Close();

 private:
  QpSet(Stage& stage, const QpSetOptions& options);

  Status CreateObjects();
  Status CreateQps();
  size_t Offset(size_t index) const;

  Stage& stage_;
  const QpSetOptions options_;
  const Plan plan_;  // with what the options replace

  // In order of creation; destroyed in reverse.
  Pd pd_;
  std::unique_ptr<Buffer> buffer_;
  Mr mr_;
  CompChannel channel_;
  std::vector<Cq> cqs_;
  std::vector<Qp> qps_;

  std::vector<ibv_sge> sges_;  // per queue pair
  std::vector<uint32_t> psns_;
  EndpointInfo remote_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_QP_SET_H_
