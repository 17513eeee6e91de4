#include "core/scenario/message_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

namespace verbscope {
namespace {

constexpr std::byte kGuard{0xA5};
constexpr std::byte kEmpty{0x5A};

std::byte DataByte(size_t offset, uint64_t number, Direction direction) {
  const uint64_t salt = direction == Direction::kAnswer ? 101 : 7;
  return static_cast<std::byte>((offset * 13 + number * 29 + (offset >> 8) + salt) & 0xFF);
}

Mismatch ByteMismatch(std::string what, size_t offset, std::byte expected, std::byte got,
                      std::string why) {
  return {.what = std::move(what),
          .expected = fmt::format("0x{:02x}", std::to_integer<int>(expected)),
          .got = fmt::format("0x{:02x} at byte {}", std::to_integer<int>(got), offset),
          .why = std::move(why)};
}

std::string Hex(uint32_t value) { return fmt::format("0x{:08x}", value); }

// The bytes around the data, as ClearSlot left them.
std::optional<Mismatch> CheckGuards(std::span<const std::byte> slot, uint64_t size) {
  for (size_t i = 0; i < slot.size(); ++i) {
    const bool data = i >= kGuardBytes && i < kGuardBytes + size;
    if (data || slot[i] == kGuard) continue;
    if (i < kGuardBytes) {
      return ByteMismatch("memory in front of the data", kGuardBytes - i, kGuard, slot[i],
                          "written outside the message's place, counted backwards");
    }
    return ByteMismatch("memory behind the data", i - kGuardBytes, kGuard, slot[i],
                        "written beyond the message's length");
  }
  return std::nullopt;
}

std::optional<Mismatch> CheckId(uint64_t got, uint64_t expected) {
  if (got == expected) return std::nullopt;
  Mismatch mismatch{.what = "wr_id",
                    .expected = fmt::format("0x{:016x}", expected),
                    .got = fmt::format("0x{:016x}", got),
                    .why = ""};
  const bool same_kind = (got ^ expected) >> 48 == 0;
  if (same_kind) {
    mismatch.why = fmt::format("completions out of order: that of request {} came where {} was due",
                               NumberOfId(got), NumberOfId(expected));
  } else {
    mismatch.why = "it is of no request that was posted here";
  }
  return mismatch;
}

std::optional<Mismatch> CheckNumber(std::string_view what, uint32_t got, uint32_t expected) {
  if (got == expected) return std::nullopt;
  return Mismatch{.what = std::string(what),
                  .expected = std::to_string(expected),
                  .got = std::to_string(got),
                  .why = ""};
}

std::optional<Mismatch> CheckOpcode(ibv_wc_opcode got, ibv_wc_opcode expected) {
  if (got == expected) return std::nullopt;
  return Mismatch{
      .what = "opcode", .expected = OpcodeName(expected), .got = OpcodeName(got), .why = ""};
}

std::optional<Mismatch> CheckImmediate(const ibv_wc& completion, const ExpectedReceive& expected) {
  const bool flag = (completion.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (flag != expected.immediate.has_value()) {
    return Mismatch{.what = "flag IBV_WC_WITH_IMM",
                    .expected = expected.immediate ? "set" : "not set",
                    .got = flag ? "set" : "not set",
                    .why = ""};
  }
  if (!flag) return std::nullopt;
  const uint32_t got = FromWire(completion.imm_data);
  if (got == *expected.immediate) return std::nullopt;
  return Mismatch{.what = "immediate",
                  .expected = Hex(*expected.immediate),
                  .got = Hex(got),
                  .why = ExplainImmediate(got, *expected.immediate, expected.direction)};
}

}  // namespace

std::string OpcodeName(ibv_wc_opcode opcode) {
  switch (opcode) {
    case IBV_WC_SEND:
      return "SEND";
    case IBV_WC_RDMA_WRITE:
      return "RDMA_WRITE";
    case IBV_WC_RDMA_READ:
      return "RDMA_READ";
    case IBV_WC_RECV:
      return "RECV";
    case IBV_WC_RECV_RDMA_WITH_IMM:
      return "RECV_RDMA_WITH_IMM";
    default:
      return fmt::format("opcode {}", static_cast<int>(opcode));
  }
}

std::optional<Mismatch> CheckReceive(const ibv_wc& completion, const ExpectedReceive& expected) {
  if (auto mismatch = CheckId(completion.wr_id, ReceiveId(expected.number))) return mismatch;
  if (auto mismatch = CheckNumber("qp_num", completion.qp_num, expected.qp_num)) return mismatch;
  if (auto mismatch = CheckOpcode(completion.opcode, expected.opcode)) return mismatch;
  if (auto mismatch = CheckImmediate(completion, expected)) return mismatch;
  return CheckNumber("byte_len", completion.byte_len, expected.byte_len);
}

std::optional<Mismatch> CheckSend(const ibv_wc& completion, const ExpectedSend& expected) {
  if (auto mismatch = CheckId(completion.wr_id, SendId(expected.number))) return mismatch;
  if (auto mismatch = CheckNumber("qp_num", completion.qp_num, expected.qp_num)) return mismatch;
  return CheckOpcode(completion.opcode, expected.opcode);
}

void ClearSlot(std::span<std::byte> slot, uint64_t size) {
  std::ranges::fill(slot, kGuard);
  std::ranges::fill(slot.subspan(kGuardBytes, size), kEmpty);
}

void FillData(std::span<std::byte> data, uint64_t number, Direction direction) {
  for (size_t i = 0; i < data.size(); ++i) data[i] = DataByte(i, number, direction);
}

std::optional<Mismatch> CheckSlot(std::span<const std::byte> slot, uint64_t size, uint64_t number,
                                  Direction direction) {
  const std::span<const std::byte> data = slot.subspan(kGuardBytes, size);
  for (size_t i = 0; i < data.size(); ++i) {
    const std::byte wanted = DataByte(i, number, direction);
    if (data[i] == wanted) continue;
    return ByteMismatch("data", i, wanted, data[i],
                        data[i] == kEmpty ? "nothing was written there" : "");
  }
  return CheckGuards(slot, size);
}

std::optional<Mismatch> CheckUntouched(std::span<const std::byte> slot, uint64_t size) {
  const std::span<const std::byte> data = slot.subspan(kGuardBytes, size);
  for (size_t i = 0; i < data.size(); ++i) {
    if (data[i] == kEmpty) continue;
    return ByteMismatch("receive buffer", i, kEmpty, data[i],
                        "a WRITE must not touch the buffer of the receive that it completes");
  }
  return CheckGuards(slot, size);
}

}  // namespace verbscope
