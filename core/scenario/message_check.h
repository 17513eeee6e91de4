// What a receiver can verify of one message: the completion field by field, and the memory around
// the place where the data belongs. Pure functions on what was polled and read.
#ifndef VERBSCOPE_CORE_SCENARIO_MESSAGE_CHECK_H_
#define VERBSCOPE_CORE_SCENARIO_MESSAGE_CHECK_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/scenario/imm_value.h"

namespace verbscope {

// The first thing that is not as it should be.
struct Mismatch {
  std::string what;  // "immediate", "byte_len", "data"
  std::string expected;
  std::string got;
  std::string why;  // what it looks like; may be empty
};

// "RECV_RDMA_WITH_IMM"; "opcode N" for another number.
std::string OpcodeName(ibv_wc_opcode opcode);

// Receives are numbered in the order of their posting; the n-th message takes the n-th.
constexpr uint64_t ReceiveId(uint64_t number) { return 0x7265'0000'0000'0000 | number; }
constexpr uint64_t SendId(uint64_t number) { return 0x7365'0000'0000'0000 | number; }
// The number of either.
constexpr uint64_t NumberOfId(uint64_t wr_id) { return wr_id & 0x0000'FFFF'FFFF'FFFF; }

struct ExpectedReceive {
  uint64_t number = 0;  // of the message and of the receive it takes, from 0
  uint32_t qp_num = 0;
  ibv_wc_opcode opcode = IBV_WC_RECV;
  uint32_t byte_len = 0;
  std::optional<uint32_t> immediate = {};  // in host order; none: the flag must be absent
  Direction direction = Direction::kRequest;
};
// Of a completion with status SUCCESS.
std::optional<Mismatch> CheckReceive(const ibv_wc& completion, const ExpectedReceive& expected);

struct ExpectedSend {
  uint64_t number = 0;
  uint32_t qp_num = 0;
  ibv_wc_opcode opcode = IBV_WC_SEND;
};
std::optional<Mismatch> CheckSend(const ibv_wc& completion, const ExpectedSend& expected);

// One message's place in a buffer: guard bytes, then the data, then guard bytes to the end.
inline constexpr size_t kGuardBytes = 64;
constexpr size_t SlotBytes(uint64_t size) { return kGuardBytes * 2 + (size + 63) / 64 * 64; }
// Everything guard bytes, and the data's place filled with what no message holds.
void ClearSlot(std::span<std::byte> slot, uint64_t size);
// The data of message `number`.
void FillData(std::span<std::byte> data, uint64_t number, Direction direction);
// Whether the slot holds the message's data and nothing beyond.
std::optional<Mismatch> CheckSlot(std::span<const std::byte> slot, uint64_t size, uint64_t number,
                                  Direction direction);
// Whether nothing was written since ClearSlot.
std::optional<Mismatch> CheckUntouched(std::span<const std::byte> slot, uint64_t size);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_MESSAGE_CHECK_H_
