#include "core/loops/stream.h"

#include <arpa/inet.h>

#include <algorithm>

#include "core/loops/with_waiter.h"
#include "core/loops/wr_id.h"

namespace verbscope {
namespace {

constexpr int kBatch = 16;

template <bool kSends, bool kReceives, class TickClock, class Waiter>
class StreamLoop {
 public:
  StreamLoop(const StreamSetup& setup, LoopLength length, Waiter& waiter)
      : setup_(setup), length_(length), waiter_(waiter) {}

  LoopCounts Run() {
    const uint64_t begun = TickClock::Now();
    counts_.first_ticks = counts_.last_ticks = begun;
    if constexpr (kReceives) {
      if (!setup_.received->started()) setup_.received->Start(begun);
    }
    if constexpr (kSends) {
      end_ticks_ = EndOf(begun, length_.ticks);
      setup_.sent->Start(begun);
      ShareOut();
      for (size_t i = 0; i < setup_.qps.size(); ++i) {
        // Filling many queues takes long: what completes meanwhile is taken.
        if (!Fill(i) || !TakeReady()) return counts_;
      }
    }
    while (!Complete()) {
      const int got = waiter_.Next(wcs_, kBatch);
      if (got <= 0) [[unlikely]] {
        counts_.end = got == 0 ? LoopEnd::kStopped : LoopEnd::kPollFailed;
        return counts_;
      }
      if (!TakeBatch(got)) return counts_;
    }
    if constexpr (kSends) CheckSignals();
    return counts_;
  }

 private:
  bool Complete() const {
    if constexpr (kSends) {
      return over_ && to_post_ == 0 && counts_.samples == counts_.sent;
    } else {
      return counts_.received >= length_.messages;
    }
  }

  // The requests of the phase, in equal parts; without a number each may go on until the time is
  // up.
  void ShareOut() {
    const uint64_t qps = setup_.qps.size();
    over_ = length_.messages != UINT64_MAX;
    for (size_t i = 0; i < qps; ++i) {
      StreamQp& qp = setup_.qps[i];
      qp.phase_start = qp.posted;
      qp.quota = over_ ? length_.messages / qps + (i < length_.messages % qps ? 1 : 0)
                       : UINT64_MAX - qp.posted;
    }
    if (over_) to_post_ = length_.messages;
  }

  // The time is up: nothing more is posted but what makes the last request a signalled one.
  bool End() {
    over_ = true;
    to_post_ = 0;
    for (StreamQp& qp : setup_.qps) {
      const uint64_t posted = qp.posted - qp.phase_start;
      if (posted >= qp.quota) continue;
      qp.quota = posted + (qp.unsignalled > 0 ? 1 : 0);
      to_post_ += qp.quota - posted;
    }
    for (size_t i = 0; i < setup_.qps.size(); ++i) {
      if (!Fill(i)) return false;
    }
    return true;
  }

  bool TakeReady() {
    const int got = ibv_poll_cq(setup_.cq, kBatch, wcs_);
    if (got < 0) [[unlikely]] {
      counts_.end = LoopEnd::kPollFailed;
      return false;
    }
    return got == 0 || TakeBatch(got);
  }

  bool TakeBatch(int got) {
    const uint64_t now = TickClock::Now();
    counts_.completions += static_cast<uint64_t>(got);
    const uint64_t done_before = counts_.samples;
    const uint64_t received_before = counts_.received;
    for (int i = 0; i < got; ++i) {
      if (!Take(wcs_[i])) return false;
    }
    if constexpr (kReceives) {
      if (counts_.received != received_before) {
        setup_.received->Count(now, counts_.received - received_before);
        if constexpr (!kSends) counts_.last_ticks = now;
      }
    }
    if constexpr (kSends) {
      if (counts_.samples != done_before) {
        setup_.sent->Count(now, counts_.samples - done_before);
        counts_.last_ticks = now;
      }
      if (now >= end_ticks_ && !ended_) [[unlikely]] {
        ended_ = true;
        return End();
      }
    }
    return true;
  }

  bool Take(const ibv_wc& wc) {
    if (wc.status != IBV_WC_SUCCESS) [[unlikely]] {
      counts_.end = KindOf(wc.wr_id) == WrKind::kRecv ? LoopEnd::kRecvFailed : LoopEnd::kSendFailed;
      counts_.failure = wc;
      return false;
    }
    const size_t index = QpIndexOf(wc.wr_id);
    if (index >= setup_.qps.size()) [[unlikely]] {
      return Mismatch(LoopMismatch::Kind::kWrongCompletion, counts_.sent, setup_.qps.size(), index);
    }
    StreamQp& qp = setup_.qps[index];
    ++qp.taken;
    switch (KindOf(wc.wr_id)) {
      case WrKind::kSend:
        return TakeSent(qp, index, SequenceOf(wc.wr_id));
      case WrKind::kCredit:
        qp.credits_done += (SequenceOf(wc.wr_id) - qp.credits_done) & kWrSequenceMask;
        return GrantIfDue(qp, index);  // there may have been no room for it
      case WrKind::kRecv:
        return TakeReceived(qp, index, wc);
    }
    return Mismatch(LoopMismatch::Kind::kWrongCompletion, counts_.sent, 0, wc.wr_id);
  }

  bool TakeSent(StreamQp& qp, size_t index, uint64_t sequence) {
    const uint64_t done = (sequence - qp.completed) & kWrSequenceMask;
    if (done == 0 || done > qp.posted - qp.completed) [[unlikely]] {
      return Mismatch(LoopMismatch::Kind::kOutOfOrder, qp.completed, qp.completed + 1, sequence);
    }
    qp.completed += done;
    counts_.samples += done;
    --qp.signals;
    return Fill(index);
  }

  bool TakeReceived(StreamQp& qp, size_t index, const ibv_wc& wc) {
    const uint32_t imm = (wc.wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(wc.imm_data) : 0;
    const bool is_credit = (imm & kCreditBit) != 0;
    if (is_credit) {
      qp.window += imm & ~kCreditBit;
    } else {
      ++counts_.received;
      ++qp.consumed_data;
    }
    if (++qp.consumed >= qp.recv_batch.size()) {
      if (!PostReceives(qp.qp, qp.recv_batch.data(), counts_)) return false;
      qp.to_grant += qp.consumed_data;
      qp.consumed = qp.consumed_data = 0;
      if (!GrantIfDue(qp, index)) return false;
    }
    if constexpr (kSends) {
      if (is_credit) return Fill(index);
    }
    return true;
  }

  // Tells the peer of receives given back. Without room in the send queue it waits for the
  // completion of an earlier credit.
  bool GrantIfDue(StreamQp& qp, size_t index) {
    if (!setup_.grants || qp.to_grant < qp.grant_every) return true;
    if (qp.credits_posted - qp.credits_done >= kCreditSlots) return true;
    ++qp.credits_posted;
    const bool signal = qp.credits_posted % kCreditsPerSignal == 0;
    qp.credit->imm_data = htonl(kCreditBit | qp.to_grant);
    qp.credit->wr_id = MakeWrId(WrKind::kCredit, index, qp.credits_posted);
    qp.credit->send_flags = SendFlags(setup_.flags & ~unsigned{IBV_SEND_INLINE}, signal);
    qp.to_grant = 0;
    return PostSends(qp.qp, qp.credit, counts_);
  }

  // Posts as much as depth, window and quota allow.
  bool Fill(size_t index) {
    if constexpr (kSends) {
      StreamQp& qp = setup_.qps[index];
      for (;;) {
        const uint64_t in_phase = qp.posted - qp.phase_start;
        const uint64_t wanted = std::min<uint64_t>(qp.list.size(), qp.quota - in_phase);
        const uint64_t count = std::min(wanted, qp.window - qp.posted);
        if (count == 0 || setup_.depth - (qp.posted - qp.completed) < wanted) return true;
        if (!PostList(qp, index, count, /*last=*/over_ && in_phase + count == qp.quota)) {
          return false;
        }
      }
    }
    return true;
  }

  bool PostList(StreamQp& qp, size_t index, uint64_t count, bool last) {
    for (uint64_t i = 0; i < count; ++i) {
      ibv_send_wr& request = qp.list[i];
      const bool signal = ++qp.unsignalled >= setup_.signal_every || (last && i + 1 == count);
      request.send_flags = SendFlags(setup_.flags, signal);
      request.wr_id = MakeWrId(WrKind::kSend, index, qp.posted + i + 1);
      if (signal) {
        qp.unsignalled = 0;
        ++qp.signals;
      }
    }
    ibv_send_wr& tail = qp.list[count - 1];
    ibv_send_wr* const next = tail.next;
    tail.next = nullptr;
    const bool posted = PostSends(qp.qp, qp.list.data(), counts_);
    tail.next = next;
    if (!posted) return false;
    qp.posted += count;
    counts_.sent += count;
    if (over_) to_post_ -= count;
    return true;
  }

  // All requests are known to be done; each signalled one must have said so itself.
  void CheckSignals() {
    for (const StreamQp& qp : setup_.qps) {
      if (qp.signals == 0) continue;
      Mismatch(LoopMismatch::Kind::kNoCompletion, qp.completed, qp.signals, 0);
      return;
    }
  }

  bool Mismatch(LoopMismatch::Kind kind, uint64_t message, uint64_t expected, uint64_t got) {
    counts_.end = LoopEnd::kMismatch;
    counts_.mismatch = {.kind = kind, .message = message, .expected = expected, .got = got};
    return false;
  }

  const StreamSetup setup_;
  const LoopLength length_;
  Waiter& waiter_;
  uint64_t end_ticks_ = UINT64_MAX;
  bool over_ = false;     // the quotas are the last word
  uint64_t to_post_ = 0;  // then: requests of them not yet posted
  bool ended_ = false;    // by time
  LoopCounts counts_;
  ibv_wc wcs_[kBatch];
};

template <bool kSends, bool kReceives>
LoopOutcome RunSides(const StreamSetup& setup, LoopLength length, WaitMode wait,
                     const Clock& clock) {
  const Waited waited = {
      .device = setup.device, .cq = setup.cq, .stop = setup.stop, .shares_cpu = setup.shares_cpu};
  return WithWaiter(waited, wait, clock, [&]<class TickClock>(auto& waiter) {
    return StreamLoop<kSends, kReceives, TickClock, std::remove_reference_t<decltype(waiter)>>(
               setup, length, waiter)
        .Run();
  });
}

}  // namespace

LoopOutcome RunStream(const StreamSetup& setup, LoopLength length, WaitMode wait,
                      const Clock& clock) {
  if (!setup.sends) return RunSides<false, true>(setup, length, wait, clock);
  return setup.receives ? RunSides<true, true>(setup, length, wait, clock)
                        : RunSides<true, false>(setup, length, wait, clock);
}

}  // namespace verbscope
