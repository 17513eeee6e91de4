#include "transports/soft/engine/engine.h"

#include <algorithm>
#include <utility>

#include "transports/soft/wire/psn.h"

namespace verbscope::soft {

QueuePair& Engine::CreateQp(const QpOptions& options) {
  auto qp = std::make_unique<QueuePair>(env_, options);
  QueuePair& made = *qp;
  qps_[options.qpn % kMaxQps] = std::move(qp);
  live_.push_back(&made);
  active_.reserve(live_.size());
  transmitting_.reserve(live_.size());
  return made;
}

void Engine::DestroyQp(QueuePair& qp) {
  qp.Reset();
  std::erase(live_, &qp);
  std::erase(active_, &qp);
  qps_[qp.qpn() % kMaxQps].reset();
}

std::optional<uint32_t> Engine::FreeQpn() {
  // Counting on delays the use of a number that a late packet may name.
  for (uint32_t tried = 0; tried < 2 * kMaxQps; ++tried) {
    const uint32_t qpn = next_qpn_;
    next_qpn_ = qpn == env_.options.last_qpn ? env_.options.first_qpn : qpn + 1;
    if (qps_[qpn % kMaxQps] == nullptr) return qpn;
  }
  return std::nullopt;
}

void Engine::Receive(PathId path, const Header& header, std::span<const std::byte> payload) {
  ++env_.counters.rcvd_pkts;
  QueuePair* qp = Find(header.dest_qpn);
  if (qp == nullptr) [[unlikely]] {
    ++env_.counters.unknown_qpn;
    return;
  }
  qp->Receive(path, header, payload);
  Touch(*qp);
}

bool Engine::Transmit() {
  if (active_.empty()) return false;
  transmitting_.swap(active_);
  bool more = false;
  for (QueuePair* qp : transmitting_) {
    qp->listed = false;
    if (qp->Transmit()) {
      more = true;
      Touch(*qp);
    }
  }
  transmitting_.clear();
  return more;
}

void Engine::Tick(uint64_t now_ns) {
  env_.timer_urgent = false;
  for (QueuePair* qp : live_) {
    if (qp->Tick(now_ns)) Touch(*qp);
  }
}

std::optional<uint64_t> Engine::NextTimer() const {
  std::optional<uint64_t> next;
  for (const QueuePair* qp : live_) {
    const std::optional<uint64_t> timer = qp->NextTimer();
    if (timer && (!next || *timer < *next)) next = timer;
  }
  return next;
}

void Engine::FailQpsOf(const CompletionQueue& cq) {
  if (env_.rxe()) return;  // does not go by the CQ; see QpContext::Store
  for (QueuePair* qp : live_) {
    if (qp->send_cq() != &cq && qp->recv_cq() != &cq) continue;
    qp->EnterError(IBV_EVENT_QP_FATAL);
    Touch(*qp);
  }
}

}  // namespace verbscope::soft
