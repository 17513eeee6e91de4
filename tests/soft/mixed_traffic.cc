#include "tests/soft/mixed_traffic.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace verbscope::soft {
namespace {

constexpr size_t kMessageRoom = 64 * 1024;
constexpr size_t kDepth = 16;  // requests in flight per direction
constexpr size_t kReceives = 32;
constexpr uint32_t kMediumBytes = 3 * 1024 + 1;

// Bytes that tell the message and the place in it apart from any other.
uint64_t PatternWord(uint64_t message, size_t at) {
  uint64_t x = (message + 1) * 0x9e3779b97f4a7c15 + at;
  x ^= x >> 29;
  return x * 0xbf58476d1ce4e5b9;
}

void Fill(std::byte* to, size_t bytes, uint64_t message) {
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = PatternWord(message, at);
    std::memcpy(to + at, &word, std::min<size_t>(8, bytes - at));
  }
}

// Success, or where the first wrong byte is, how many there are, and by which bits the first is
// wrong.
testing::AssertionResult Holds(const std::byte* from, size_t bytes, uint64_t message) {
  size_t first = bytes;
  size_t wrong = 0;
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = PatternWord(message, at);
    const size_t part = std::min<size_t>(8, bytes - at);
    if (std::memcmp(from + at, &word, part) == 0) continue;
    std::array<std::byte, 8> right;
    std::memcpy(right.data(), &word, sizeof(word));
    for (size_t i = 0; i < part; ++i) {
      if (from[at + i] == right[i]) continue;
      if (wrong++ == 0) first = at + i;
    }
  }
  if (wrong == 0) return testing::AssertionSuccess();
  const uint64_t word = PatternWord(message, first - first % 8);
  const auto right = static_cast<uint8_t>(word >> (first % 8 * 8));
  return testing::AssertionFailure()
         << "message " << message << ": " << wrong << " of " << bytes
         << " bytes are wrong, the first is " << first << " (" << static_cast<int>(from[first])
         << ", not " << int{right} << ")";
}

// The memory of an end: send slots, receive slots, slots that the peer may use, results, one
// counter.
size_t SendAt(uint64_t message) { return message % kDepth * kMessageRoom; }
size_t ReceiveAt(uint64_t receive) { return (kDepth + receive % kReceives) * kMessageRoom; }
size_t TargetAt(uint64_t message) { return (kDepth + kReceives + message % kDepth) * kMessageRoom; }
constexpr size_t kResultsAt = (2 * kDepth + kReceives) * kMessageRoom;
size_t ResultAt(uint64_t message) { return kResultsAt + message % kDepth * 8; }
constexpr size_t kCounterAt = kResultsAt + kDepth * 8;
constexpr size_t kMemoryBytes = kCounterAt + 8;

bool IsAtomic(const Message& message) {
  return message.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
         message.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

}  // namespace

size_t MixedTrafficBytes() { return kMemoryBytes; }

Stream::Stream(End& from, End& to, uint64_t seed, uint64_t messages)
    : from_(from), to_(to), random_(seed), messages_(messages) {
  for (uint64_t i = 0; i < kReceives; ++i) Repost(i);
}

void Stream::Step() {
  while (posted_ < messages_ && posted_ - completed_ < kDepth && arriving_.size() < kReceives - 1) {
    PostNext();
  }
  std::array<ibv_wc, 8> wc;
  const int sent = ibv_poll_cq(from_.send_cq, static_cast<int>(wc.size()), wc.data());
  for (int i = 0; i < sent; ++i) Completed(wc[static_cast<size_t>(i)]);
  const int arrived = ibv_poll_cq(to_.recv_cq, static_cast<int>(wc.size()), wc.data());
  for (int i = 0; i < arrived; ++i) Arrived(wc[static_cast<size_t>(i)]);
}

Message Stream::Draw() {
  constexpr std::array kOpcodes = {IBV_WR_SEND,
                                   IBV_WR_SEND_WITH_IMM,
                                   IBV_WR_RDMA_WRITE,
                                   IBV_WR_RDMA_READ,
                                   IBV_WR_RDMA_WRITE_WITH_IMM,
                                   IBV_WR_ATOMIC_FETCH_AND_ADD,
                                   IBV_WR_ATOMIC_CMP_AND_SWP};
  Message message;
  message.number = posted_;
  message.opcode = kOpcodes[random_() % kOpcodes.size()];
  const uint64_t sizes = random_() % 100;
  const uint32_t limit = sizes < 50 ? 65 : sizes < 98 ? kMediumBytes + 1 : kMessageRoom + 1;
  message.bytes = static_cast<uint32_t>(random_() % limit);
  return message;
}

void Stream::PostNext() {
  Message message = Draw();
  SendWork work = Send(from_, message.number, message.bytes, SendAt(message.number));
  work.wr.opcode = message.opcode;
  work.wr.imm_data = static_cast<uint32_t>(message.number);
  work.wr.wr.rdma.remote_addr = to_.address(TargetAt(message.number));
  work.wr.wr.rdma.rkey = to_.mr->rkey;
  if (message.opcode == IBV_WR_RDMA_READ) {
    Fill(to_.at(TargetAt(message.number)), message.bytes, message.number);
    std::memset(from_.at(SendAt(message.number)), 0, message.bytes);
  } else if (IsAtomic(message)) {
    DrawAtomic(message, work);
  } else {
    Fill(from_.at(SendAt(message.number)), message.bytes, message.number);
  }
  ASSERT_EQ(Post(from_, work), 0);
  if (message.opcode == IBV_WR_SEND || message.opcode == IBV_WR_SEND_WITH_IMM ||
      message.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    arriving_.push_back(message);
  }
  in_flight_.push_back(message);
  ++posted_;
}

void Stream::DrawAtomic(Message& message, SendWork& work) {
  message.expected = counter_;
  work.sge.addr = from_.address(ResultAt(message.number));
  work.sge.length = 8;
  work.wr.wr.atomic.remote_addr = to_.address(kCounterAt);
  work.wr.wr.atomic.rkey = to_.mr->rkey;
  if (message.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    work.wr.wr.atomic.compare_add = message.number;
    counter_ += message.number;
    return;
  }
  const bool equal = random_() % 2 == 0;
  work.wr.wr.atomic.compare_add = equal ? counter_ : counter_ + 1;
  work.wr.wr.atomic.swap = random_();
  if (equal) counter_ = work.wr.wr.atomic.swap;
}

void Stream::Completed(const ibv_wc& wc) {
  ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << "message " << wc.wr_id;
  ASSERT_FALSE(in_flight_.empty()) << "a completion nobody asked for";
  const Message message = in_flight_.front();
  in_flight_.pop_front();
  ASSERT_EQ(wc.wr_id, message.number);
  ++completed_;
  if (message.opcode == IBV_WR_RDMA_READ) {
    ASSERT_TRUE(Holds(from_.at(SendAt(message.number)), message.bytes, message.number));
  } else if (message.opcode == IBV_WR_RDMA_WRITE || message.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    ASSERT_TRUE(Holds(to_.at(TargetAt(message.number)), message.bytes, message.number));
  } else if (IsAtomic(message)) {
    uint64_t result = 0;
    std::memcpy(&result, from_.at(ResultAt(message.number)), sizeof(result));
    ASSERT_EQ(result, message.expected) << "message " << message.number;
  }
}

void Stream::Arrived(const ibv_wc& wc) {
  ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << "receive " << wc.wr_id;
  ASSERT_FALSE(arriving_.empty()) << "a message nobody sent";
  const Message message = arriving_.front();
  arriving_.pop_front();
  ASSERT_EQ(wc.wr_id, received_);
  ASSERT_EQ(wc.byte_len, message.bytes);
  if (message.opcode != IBV_WR_SEND) {
    ASSERT_EQ(wc.imm_data, static_cast<uint32_t>(message.number));
  }
  if (message.opcode != IBV_WR_RDMA_WRITE_WITH_IMM) {
    ASSERT_TRUE(Holds(to_.at(ReceiveAt(received_)), message.bytes, message.number));
  }
  ++received_;
  Repost(received_ + kReceives - 1);
}

void Stream::Repost(uint64_t receive) {
  ASSERT_EQ(PostReceive(to_, receive, kMessageRoom, ReceiveAt(receive)), 0);
}

void RunMixedTraffic(End& a, End& b, uint64_t seed, uint64_t messages) {
  Stream out(a, b, seed, messages / 2);
  Stream back(b, a, seed + 1, messages / 2);
  uint64_t progress = 0;
  Deadline stall = Soon();
  while (!(out.done() && back.done()) && !testing::Test::HasFatalFailure()) {
    out.Step();
    back.Step();
    if (const uint64_t now = out.progress() + back.progress(); now != progress) {
      progress = now;
      stall = Soon();
    }
    ASSERT_FALSE(stall.Passed()) << "no progress after " << progress << " completions, seed "
                                 << seed;
  }
}

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace verbscope::soft
