// An End on the other side: each call is one question to the peer's Agent and its answer. See
// end.h.
#ifndef VERBSCOPE_CORE_CHECKS_REMOTE_END_H_
#define VERBSCOPE_CORE_CHECKS_REMOTE_END_H_

#include <string>

#include "core/checks/ask.h"
#include "core/checks/end.h"
#include "core/checks/latch.h"
#include "core/scenario/scenario.h"

namespace verbscope {

class RemoteEnd final : public End {
 public:
  // All outlive it. `index`: among the Agent's ends.
  RemoteEnd(Stage& stage, Latch& latch, uint64_t index)
      : stage_(stage), latch_(latch), index_(index) {}

  // Asks the Agent for another end; its answer has the rkey of the foreign region.
  static Expected<Answer> Make(Stage& stage, const FreshQpOptions& options);
  // Asks the Agent to connect or to reset this end, as FreshQp does. The caller does the same with
  // its own at the same time, and then takes the answer with Answered.
  void BeginConnect();
  void BeginReset();
  void Answered();

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
  Answer Question(Ask ask);

  Stage& stage_;
  Latch& latch_;
  const uint64_t index_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CHECKS_REMOTE_END_H_
