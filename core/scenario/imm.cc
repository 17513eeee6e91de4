// `imm`: immediate data with SEND and WRITE, of nothing, of one byte and of --size bytes.
#include <fmt/core.h>

#include <algorithm>

#include "core/scenario/lists.h"
#include "core/scenario/exchange.h"

namespace verbscope {
namespace {

constexpr const char* kSendSource = "ibv_post_send(3); ibv_poll_cq(3): imm_data and wc_flags";
constexpr const char* kWriteSource =
    "ibv_post_send(3): RDMA_WRITE_WITH_IMM takes a receive; ibv_poll_cq(3): RECV_RDMA_WITH_IMM";

std::vector<uint64_t> Sizes(uint64_t asked) {
  std::vector<uint64_t> sizes = {0, 1, asked};
  std::ranges::sort(sizes);
  const auto repeated = std::ranges::unique(sizes);
  sizes.erase(repeated.begin(), repeated.end());
  return sizes;
}

}  // namespace

std::vector<Scenario> ImmScenarios(const Plan& plan) {
  const uint64_t asked = plan.sizes_bytes.front();
  std::vector<Scenario> scenarios;
  for (const uint64_t size : Sizes(asked)) {
    scenarios.push_back(VerifiedExchange({.name = fmt::format("send-imm-{}", size),
                                          .opcode = IBV_WR_SEND_WITH_IMM,
                                          .size_bytes = size,
                                          .source = kSendSource}));
  }
  for (const uint64_t size : Sizes(asked)) {
    scenarios.push_back(VerifiedExchange({.name = fmt::format("write-imm-{}", size),
                                          .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                          .size_bytes = size,
                                          .form = ReceiveForm::kNoSge,
                                          .source = kWriteSource}));
  }
  const auto write_into = [&](const char* suffix, ReceiveForm form) {
    scenarios.push_back(VerifiedExchange({.name = fmt::format("write-imm-{}-{}", asked, suffix),
                                          .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                          .size_bytes = asked,
                                          .form = form,
                                          .source = kWriteSource}));
  };
  write_into("empty-sge", ReceiveForm::kEmptySge);
  write_into("null-sge", ReceiveForm::kNullSge);
  if (asked > 0) write_into("buffer", ReceiveForm::kBuffer);
  // The controls: the same operations without immediate data.
  scenarios.push_back(VerifiedExchange({.name = fmt::format("send-{}-control", asked),
                                        .opcode = IBV_WR_SEND,
                                        .size_bytes = asked,
                                        .source = kSendSource}));
  scenarios.push_back(PlainWrites(fmt::format("write-{}-control", asked), asked,
                                  "ibv_post_send(3): RDMA_WRITE takes no receive"));
  return scenarios;
}

}  // namespace verbscope
