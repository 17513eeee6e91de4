// `zero-len-recv`: what a receive without capacity is good for, and what it is not.
#include <fmt/core.h>

#include <algorithm>

#include "core/scenario/attempt.h"
#include "core/scenario/lists.h"
#include "core/scenario/exchange.h"
#include "core/scenario/expectations.h"

namespace verbscope {
namespace {

constexpr const char* kPostReceive = "ibv_post_recv(3): num_sge may be 0";
constexpr const char* kTooLongSource =
    "IBTA vol. 1, 9.9.3: a receive shorter than the message is a local length error of the "
    "responder and an invalid request for the requester";
constexpr const char* kWriteSource =
    "ibv_post_send(3): the data of RDMA_WRITE_WITH_IMM goes to remote_addr, never to the receive";
constexpr const char* kEmptySource =
    "IBTA vol. 1, C9-88: the R_Key of a READ or WRITE of nothing is not validated";
constexpr const char* kNotReadySource =
    "IBTA vol. 1, 9.7.5.2.8: no receive is RNR NAK, and an error only when retries are used up";

// What works, with its latency: half round trips of verified messages.
void AddUses(uint64_t size, std::vector<Scenario>& scenarios) {
  struct Row {
    const char* name;
    ibv_wr_opcode opcode;
    uint64_t size;
    ReceiveForm form;
  };
  for (const Row& row :
       {Row{"write-imm-no-sge", IBV_WR_RDMA_WRITE_WITH_IMM, size, ReceiveForm::kNoSge},
        Row{"send-nothing-no-sge", IBV_WR_SEND, 0, ReceiveForm::kNoSge},
        Row{"send-imm-nothing-no-sge", IBV_WR_SEND_WITH_IMM, 0, ReceiveForm::kNoSge},
        Row{"write-imm-empty-sge", IBV_WR_RDMA_WRITE_WITH_IMM, size, ReceiveForm::kEmptySge},
        Row{"send-nothing-empty-sge", IBV_WR_SEND, 0, ReceiveForm::kEmptySge},
        Row{"send-imm-nothing-empty-sge", IBV_WR_SEND_WITH_IMM, 0, ReceiveForm::kEmptySge}}) {
    scenarios.push_back(VerifiedExchange({.name = row.name,
                                          .opcode = row.opcode,
                                          .size_bytes = row.size,
                                          .form = row.form,
                                          .source = kPostReceive}));
  }
}

// A message of `size` bytes against receives around its length.
void AddLengths(uint64_t size, std::vector<Scenario>& scenarios) {
  struct Length {
    const char* name;
    uint64_t bytes;
  };
  std::vector<Length> lengths = {{"0", 0}};
  if (size > 1) lengths.push_back({"n-1", size - 1});
  lengths.push_back({"n", size});
  lengths.push_back({"n+1", size + 1});
  for (const ibv_wr_opcode opcode :
       {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM}) {
    const bool write = opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    const char* verb = write ? "write-imm" : opcode == IBV_WR_SEND ? "send" : "send-imm";
    for (const Length& length : lengths) {
      const bool fits = write || length.bytes >= size;
      AttemptKind kind{.name = fmt::format("{}-n-receive-{}", verb, length.name),
                       .opcode = opcode,
                       .size_bytes = size,
                       .receive_bytes = length.bytes,
                       .responder = IBV_WC_SUCCESS,
                       .source = write ? kWriteSource : kTooLongSource};
      if (!fits) {
        kind.requester = IBV_WC_REM_INV_REQ_ERR;
        kind.responder = IBV_WC_LOC_LEN_ERR;
        kind.rule = kTooLong;
        kind.responder_state = IBV_QPS_ERR;
        kind.recovers = opcode == IBV_WR_SEND && length.bytes == 0;
      }
      scenarios.push_back(Attempt(kind));
    }
  }
}

// READ and WRITE of nothing consume no receive and look at no key.
void AddEmptyAccess(std::vector<Scenario>& scenarios) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    const char* verb = opcode == IBV_WR_RDMA_READ ? "read" : "write";
    for (const bool bad : {false, true}) {
      scenarios.push_back(
          Attempt({.name = fmt::format("{}-nothing{}", verb, bad ? "-bad-rkey" : ""),
                   .opcode = opcode,
                   .bad_rkey = bad,
                   .rule = kEmptyBadKey,
                   .source = kEmptySource,
                   .measure = !bad}));
    }
  }
}

}  // namespace

std::vector<Scenario> ZeroLenRecvScenarios(const Plan& plan) {
  const uint64_t size = plan.sizes_bytes.front();
  std::vector<Scenario> scenarios;
  AddUses(size, scenarios);
  AddLengths(size, scenarios);
  AddEmptyAccess(scenarios);
  // No receive is another thing than one of no length: the responder's queue pair stays well. One
  // retry, 10 us apart.
  scenarios.push_back(Attempt({.name = "send-nothing-no-receive",
                               .opcode = IBV_WR_SEND,
                               .rnr_retry = 1,
                               .rnr_timer_code = 1,
                               .requester = IBV_WC_RNR_RETRY_EXC_ERR,
                               .source = kNotReadySource,
                               .responder_state = IBV_QPS_RTS}));
  return scenarios;
}

}  // namespace verbscope
