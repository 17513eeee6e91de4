// A verified exchange: a burst of messages one way, then messages to and fro, of one kind, size and
// form of receive. Every message is verified by its receiver: wr_id and order, opcode, flag, value
// and byte order of the immediate, byte_len, exactly one receive each, the data in its place and
// nothing beyond it, and, of a WRITE, the receive's own buffer untouched. The second part is the
// latency: half round trips. One check per exchange, with the first mismatch in it.
#ifndef VERBSCOPE_CORE_SCENARIO_EXCHANGE_H_
#define VERBSCOPE_CORE_SCENARIO_EXCHANGE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "core/scenario/scenario.h"

namespace verbscope {

// How the receives are posted.
enum class ReceiveForm {
  kBuffer,    // one SGE as long as the message
  kNoSge,     // num_sge 0, a null list
  kEmptySge,  // one SGE of length 0 inside registered memory
  kNullSge,   // one SGE of length 0 at address 0 with lkey 0
};
std::string FormText(ReceiveForm form);  // "receive with no SGE"

struct ExchangeKind {
  std::string name;  // of the check
  // IBV_WR_SEND, IBV_WR_SEND_WITH_IMM or IBV_WR_RDMA_WRITE_WITH_IMM. A SEND of more than nothing
  // needs kBuffer.
  ibv_wr_opcode opcode = IBV_WR_SEND_WITH_IMM;
  uint64_t size_bytes = 0;
  ReceiveForm form = ReceiveForm::kBuffer;
  std::string source;  // where the rule is written
};

Scenario VerifiedExchange(ExchangeKind kind);

// Plain WRITEs, then one empty SEND: the WRITEs must consume no receive and complete nothing at the
// responder, and their data must be in place.
Scenario PlainWrites(std::string name, uint64_t size_bytes, std::string source);

// Messages that a scenario of this size has in its buffers at once.
uint64_t SlotsFor(uint64_t size_bytes);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_EXCHANGE_H_
