// An End on this side. See end.h.
#ifndef VERBSCOPE_CORE_CHECKS_LOCAL_END_H_
#define VERBSCOPE_CORE_CHECKS_LOCAL_END_H_

#include <string>
#include <vector>

#include "core/checks/end.h"
#include "core/checks/latch.h"
#include "core/scenario/scenario.h"

namespace verbscope {

// Asynchronous events of one side's scenario that nobody has asked for yet.
class AsyncEvents {
 public:
  explicit AsyncEvents(Stage& stage) : stage_(stage) {}
  Expected<std::optional<std::string>> Await(const std::string& prefix,
                                             std::chrono::nanoseconds limit);

 private:
  Stage& stage_;
  std::vector<std::string> seen_;
};

class LocalEnd final : public End {
 public:
  // All outlive it. `foreign_rkey`: of the other end's foreign region; 0 without one.
  LocalEnd(Stage& stage, Latch& latch, AsyncEvents& events, FreshQp& qp, uint32_t foreign_rkey)
      : stage_(stage), latch_(latch), events_(events), qp_(qp), foreign_rkey_(foreign_rkey) {}

  FreshQp& fresh() const { return qp_; }
  ibv_qp* qp() const { return qp_.qp(); }
  // A request as the spec says; `sges` holds its list and must live as long.
  ibv_send_wr Request(const SendSpec& spec, std::vector<ibv_sge>& sges) const;
  std::vector<ibv_sge> Sges(const std::vector<Piece>& pieces, Key lkey) const;

  int PostReceive(const ReceiveSpec& spec) override;
  int PostSend(const SendSpec& spec) override;
  std::optional<ibv_wc> AwaitSend(std::chrono::nanoseconds limit) override;
  std::optional<ibv_wc> AwaitReceive(std::chrono::nanoseconds limit) override;
  ibv_qp_state AwaitState(ibv_qp_state wanted, std::chrono::nanoseconds limit) override;
  void ToError() override;
  void Fill(Piece piece, uint8_t seed) override;
  std::optional<uint64_t> FirstOther(Piece piece, uint8_t seed) override;
  void SetWord(uint64_t offset, uint64_t value) override;
  uint64_t Word(uint64_t offset) override;
  std::optional<std::string> AwaitAsyncEvent(const std::string& prefix,
                                             std::chrono::nanoseconds limit) override;
  bool LoseNext(LossyPacket kind, uint32_t count) override;
  int SetSrqLimit(uint32_t limit) override;

 private:
  bool Inside(Piece piece);  // of the buffer; latches a failure
  uint32_t LocalKey(Key key) const;

  Stage& stage_;
  Latch& latch_;
  AsyncEvents& events_;
  FreshQp& qp_;
  const uint32_t foreign_rkey_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CHECKS_LOCAL_END_H_
