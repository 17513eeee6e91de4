#include "transports/soft/engine/random_party.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace verbscope::soft::testing {
namespace {

constexpr size_t kGap = 256;
constexpr size_t kReceiveSlots = 8;
constexpr uint32_t kMtusInMessage = 5;

uint32_t Mtu(const ConnectOptions& options) { return 128U << options.mtu; }

ConnectOptions WithMemory(ConnectOptions options) {
  const size_t message = size_t{Mtu(options)} * kMtusInMessage;
  options.memory_bytes = 6 * message + 512 + kReceiveSlots * message + 6 * kGap;
  options.cap.max_recv_wr = kReceiveSlots;
  return options;
}

ibv_wc_opcode CompletionOpcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_SEND;
  }
}

bool IsWrite(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool IsAtomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

uint32_t LengthOf(const std::vector<ibv_sge>& pieces) {
  uint32_t bytes = 0;
  for (const ibv_sge& piece : pieces) bytes += piece.length;
  return bytes;
}

}  // namespace

RandomParty::RandomParty(Side& side, const ConnectOptions& options, uint32_t faulty_per_mille)
    : endpoint(side, WithMemory(options)),
      random_(side.world.random),
      faulty_per_mille_(faulty_per_mille),
      mtu_(Mtu(options)),
      max_message_(mtu_ * kMtusInMessage),
      signal_all_(options.signal_all) {
  const size_t message = max_message_;
  const std::array<size_t, kZones> sizes = {2 * message, 2 * message, 2 * message, 512,
                                            kReceiveSlots * message};
  const std::array<int, kZones> access = {
      IBV_ACCESS_REMOTE_READ,
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
      IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
      IBV_ACCESS_LOCAL_WRITE};
  for (std::byte& byte : endpoint.memory) byte = static_cast<std::byte>(random_());
  size_t offset = kGap;
  // Words of atomics are aligned.
  offset += (8 - endpoint.Address(offset) % 8) % 8;
  for (size_t i = 0; i < kZones; ++i) {
    zones_[i] = {offset, sizes[i], 0};
    zones_[i].key = side.Register({endpoint.memory.data() + offset, sizes[i]}, access[i]);
    offset += sizes[i] + kGap;
  }
  model_ = endpoint.memory;
}

uint32_t RandomParty::RandomLength() {
  switch (Below(8)) {
    case 0:
      return 0;
    case 1:
      return static_cast<uint32_t>(mtu_ * (1 + Below(kMtusInMessage)));
    case 2:
      return static_cast<uint32_t>(mtu_ * (1 + Below(kMtusInMessage - 1)) + 1);
    case 3:
      return static_cast<uint32_t>(mtu_ * (1 + Below(kMtusInMessage)) - 1);
    case 4:
    case 5:
      return static_cast<uint32_t>(Below(max_message_ + 1));
    default:
      return static_cast<uint32_t>(Below(257));
  }
}

// `anywhere`: each piece at a random place of the zone, else one after the other from a random
// place.
std::vector<ibv_sge> RandomParty::Cut(const Zone& zone, uint32_t bytes, bool anywhere) {
  std::vector<ibv_sge> pieces;
  size_t place = zone.offset + Below(zone.bytes - bytes + 1);
  const size_t most = 1 + Below(4);
  while (bytes > 0 || (pieces.size() < 8 && Chance(100))) {
    const bool all = pieces.size() + 1 >= most;
    const auto length = static_cast<uint32_t>(all ? bytes : Below(bytes + 1));
    if (anywhere) place = zone.offset + Below(zone.bytes - length + 1);
    pieces.push_back({endpoint.Address(place), length, zone.key});
    place += length;
    bytes -= length;
  }
  return pieces;
}

std::vector<std::byte> RandomParty::Gathered(const std::vector<ibv_sge>& pieces) const {
  std::vector<std::byte> data;
  for (const ibv_sge& piece : pieces) {
    const std::byte* from = model_.data() + OffsetOf(piece);
    data.insert(data.end(), from, from + piece.length);
  }
  return data;
}

void RandomParty::StoreInModel(const std::vector<ibv_sge>& pieces,
                               const std::vector<std::byte>& data) {
  size_t at = 0;
  for (const ibv_sge& piece : pieces) {
    std::copy_n(data.begin() + static_cast<ptrdiff_t>(at), piece.length,
                model_.begin() + static_cast<ptrdiff_t>(OffsetOf(piece)));
    at += piece.length;
  }
}

Work RandomParty::MakeWork(RandomParty& peer) {
  static constexpr std::array<ibv_wr_opcode, 8> kOpcodes = {IBV_WR_SEND,
                                                            IBV_WR_SEND_WITH_IMM,
                                                            IBV_WR_RDMA_WRITE,
                                                            IBV_WR_RDMA_WRITE_WITH_IMM,
                                                            IBV_WR_RDMA_READ,
                                                            IBV_WR_RDMA_READ,
                                                            IBV_WR_ATOMIC_FETCH_AND_ADD,
                                                            IBV_WR_ATOMIC_CMP_AND_SWP};
  Work work{.id = next_id_, .opcode = kOpcodes[Below(kOpcodes.size())], .flags = 0};
  const uint32_t bytes = RandomLength();
  work.immediate = static_cast<uint32_t>(random_());
  if (IsAtomic(work.opcode)) {
    work.local = {{endpoint.Address(zones_[kFetched].offset + Below(zones_[kFetched].bytes - 7)), 8,
                   zones_[kFetched].key}};
    work.remote = peer.endpoint.Address(peer.zones_[kWords].offset + 8 * Below(4));
    work.rkey = peer.zones_[kWords].key;
    work.compare = Below(4);
    work.swap_add = Below(4);
  } else if (work.opcode == IBV_WR_RDMA_READ) {
    const Zone& from = peer.zones_[Chance(500) ? kSource : kTarget];
    work.local = Cut(zones_[kFetched], bytes, /*anywhere=*/true);
    work.remote = peer.endpoint.Address(from.offset + Below(from.bytes - bytes + 1));
    work.rkey = from.key;
  } else {
    const Zone& to = peer.zones_[kTarget];
    work.local = Cut(zones_[kSource], bytes, /*anywhere=*/true);
    work.remote = peer.endpoint.Address(to.offset + Below(to.bytes - bytes + 1));
    work.rkey = to.key;
    if (bytes <= endpoint.qp->cap().max_inline_data && Chance(300)) work.flags |= IBV_SEND_INLINE;
  }
  if (Chance(500) || unsignalled_ >= endpoint.qp->cap().max_send_wr / 2) {
    work.flags |= IBV_SEND_SIGNALED;
  }
  if (Chance(100) || (IsWrite(work.opcode) && fence_next_write_)) work.flags |= IBV_SEND_FENCE;
  if (Chance(200)) work.flags |= IBV_SEND_SOLICITED;
  return work;
}

void RandomParty::Spoil(Work& work) {
  switch (Below(5)) {
    case 0:
      work.rkey = static_cast<uint32_t>(random_());
      return;
    case 1:
      work.remote += endpoint.memory.size();  // out of every region of its size
      return;
    case 2:
      work.remote += 1 + Below(7);  // misaligned, or one byte too far
      return;
    case 3:
      work.rkey = zones_[kReceives].key;  // of this side
      return;
    default:
      if (!work.local.empty() && (work.flags & IBV_SEND_INLINE) == 0) work.local[0].lkey ^= 0x55;
      return;
  }
}

int RandomParty::PostWork(Work& work) {
  if ((work.flags & IBV_SEND_INLINE) == 0) return endpoint.Post(work);
  // From memory that is gone when the post returns.
  std::vector<std::byte> copy = Gathered(work.local);
  Work from_copy = work;
  size_t at = 0;
  for (ibv_sge& piece : from_copy.local) {
    piece.addr = reinterpret_cast<uintptr_t>(copy.data()) + at;
    piece.lkey = 0;
    at += piece.length;
  }
  return endpoint.Post(from_copy);
}

void RandomParty::Post(RandomParty& peer) {
  Work work = MakeWork(peer);
  const bool faulty = faulty_per_mille_ > 0 && Chance(faulty_per_mille_);
  if (faulty) Spoil(work);
  const bool was_full = full();
  ASSERT_EQ(PostWork(work), was_full ? ENOMEM : 0);
  if (was_full) return;
  if (!faulty && IsWrite(work.opcode) && (work.flags & IBV_SEND_FENCE) != 0) {
    fence_next_write_ = false;
  }
  Expect(work, peer);
}

void RandomParty::PostClosing(RandomParty& peer) {
  ASSERT_FALSE(full());
  Work work{.id = next_id_, .opcode = IBV_WR_RDMA_WRITE};
  ASSERT_EQ(endpoint.Post(work), 0);
  Expect(work, peer);
}

void RandomParty::Expect(const Work& work, RandomParty& peer) {
  const uint32_t bytes = LengthOf(work.local);
  const bool signalled = signal_all_ || (work.flags & IBV_SEND_SIGNALED) != 0;
  const bool fetches = work.opcode == IBV_WR_RDMA_READ || IsAtomic(work.opcode);
  sends_.push_back({next_id_++, signalled, CompletionOpcode(work.opcode), bytes, fetches});
  ++slots_taken_;
  unsignalled_ = signalled ? 0 : unsignalled_ + 1;
  const bool sends = work.opcode == IBV_WR_SEND || work.opcode == IBV_WR_SEND_WITH_IMM;
  const bool immediate =
      work.opcode == IBV_WR_SEND_WITH_IMM || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (sends || immediate) {
    peer.arrivals_.push_back({sends, immediate, work.immediate, bytes, {}});
    if (sends) peer.arrivals_.back().data = Gathered(work.local);
  }
  if (faulty_per_mille_ > 0 || sends) return;  // with faults the memory is not compared
  if (IsAtomic(work.opcode)) {
    ExpectAtomic(work, peer);
    return;
  }
  if (bytes == 0) return;
  const size_t remote = work.remote - peer.endpoint.Address(0);
  if (work.opcode == IBV_WR_RDMA_READ) {
    const auto from = peer.model_.begin() + static_cast<ptrdiff_t>(remote);
    StoreInModel(work.local, {from, from + bytes});
    fence_next_write_ = true;
  } else {
    std::ranges::copy(Gathered(work.local), peer.model_.begin() + static_cast<ptrdiff_t>(remote));
  }
}

void RandomParty::ExpectAtomic(const Work& work, RandomParty& peer) {
  std::byte* word = peer.model_.data() + (work.remote - peer.endpoint.Address(0));
  uint64_t value;
  std::memcpy(&value, word, sizeof(value));
  std::vector<std::byte> original(word, word + sizeof(value));
  if (work.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    value += work.swap_add;
  } else if (value == work.compare) {
    value = work.swap_add;
  }
  std::memcpy(word, &value, sizeof(value));
  StoreInModel(work.local, original);
}

void RandomParty::Receive() {
  PostedReceive receive{.id = next_receive_id_, .pieces = {}};
  const size_t slot = next_receive_id_ % kReceiveSlots;
  const Zone zone = {zones_[kReceives].offset + slot * max_message_, max_message_,
                     zones_[kReceives].key};
  receive.pieces = Cut(zone, max_message_, /*anywhere=*/false);
  if (faulty_per_mille_ > 0 && Chance(faulty_per_mille_)) {
    ibv_sge& piece = receive.pieces[Below(receive.pieces.size())];
    if (Chance(500)) {
      piece.lkey = zones_[kSource].key;
    } else {
      piece.length = 0;  // too short for some
    }
  }
  const bool full = receive_slots_taken_ == kReceiveSlots;
  ASSERT_EQ(endpoint.Receive(receive.id, receive.pieces), full ? ENOMEM : 0);
  if (full) return;
  ++next_receive_id_;
  ++receive_slots_taken_;
  receives_.push_back(std::move(receive));
}

void RandomParty::Poll() {
  std::array<ibv_wc, 8> wcs;
  int count = endpoint.send_cq.Poll(static_cast<int>(1 + Below(wcs.size())), wcs.data());
  for (int i = 0; i < count; ++i) OnSendDone(wcs[static_cast<size_t>(i)]);
  count = endpoint.recv_cq.Poll(static_cast<int>(1 + Below(wcs.size())), wcs.data());
  for (int i = 0; i < count; ++i) OnReceiveDone(wcs[static_cast<size_t>(i)]);
}

void RandomParty::OnSendDone(const ibv_wc& wc) {
  EXPECT_EQ(wc.qp_num, endpoint.qp->qpn());
  // Those in front without a completion of their own are covered by this one.
  while (!sends_.empty() && sends_.front().id != wc.wr_id) {
    EXPECT_FALSE(sends_.front().signalled) << "no completion for request " << sends_.front().id;
    EXPECT_FALSE(broken_) << "request " << sends_.front().id << " was not flushed";
    sends_.pop_front();
    --slots_taken_;
  }
  ASSERT_FALSE(sends_.empty()) << "a completion too many: " << wc.wr_id;
  const PostedSend& done = sends_.front();
  if (wc.status == IBV_WC_SUCCESS) {
    EXPECT_FALSE(broken_);
    EXPECT_TRUE(done.signalled);
    EXPECT_EQ(wc.opcode, done.opcode);
    EXPECT_TRUE(!done.checks_bytes || wc.byte_len == done.bytes);
  } else {
    EXPECT_GT(faulty_per_mille_, 0U) << "request " << wc.wr_id << " of " << done.bytes << " bytes: "
                                     << "status " << wc.status;
    if (broken_) {
      EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    }
    broken_ = true;
  }
  sends_.pop_front();
  --slots_taken_;
}

void RandomParty::OnReceiveDone(const ibv_wc& wc) {
  ASSERT_FALSE(receives_.empty());
  const PostedReceive receive = std::move(receives_.front());
  receives_.pop_front();
  --receive_slots_taken_;
  EXPECT_EQ(wc.wr_id, receive.id);
  EXPECT_EQ(wc.qp_num, endpoint.qp->qpn());
  if (wc.status != IBV_WC_SUCCESS) {
    EXPECT_GT(faulty_per_mille_, 0U) << "status " << wc.status;
    return;
  }
  ASSERT_FALSE(arrivals_.empty()) << "a receive completed that nothing was sent for";
  const Arrival arrival = std::move(arrivals_.front());
  arrivals_.pop_front();
  EXPECT_EQ(wc.opcode, arrival.is_send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc.byte_len, arrival.bytes);
  EXPECT_EQ((wc.wc_flags & IBV_WC_WITH_IMM) != 0, arrival.has_immediate);
  EXPECT_TRUE(!arrival.has_immediate || wc.imm_data == arrival.immediate);
  size_t at = 0;
  for (const ibv_sge& piece : receive.pieces) {
    const size_t part = std::min<size_t>(piece.length, arrival.data.size() - at);
    const auto from = arrival.data.begin() + static_cast<ptrdiff_t>(at);
    EXPECT_TRUE(std::equal(from, from + static_cast<ptrdiff_t>(part),
                           endpoint.memory.data() + OffsetOf(piece)))
        << "receive " << receive.id;
    at += part;
  }
}

void RandomParty::ExpectMemoryIsTheModel() const {
  const size_t compared = zones_[kReceives].offset;
  const auto [real, model] =
      std::mismatch(endpoint.memory.begin(),
                    endpoint.memory.begin() + static_cast<ptrdiff_t>(compared), model_.begin());
  EXPECT_EQ(real - endpoint.memory.begin(), static_cast<ptrdiff_t>(compared))
      << "the first byte that differs";
}

void RandomParty::ExpectOnlyGrantedBytesChanged() const {
  const auto expect_same = [this](size_t from, size_t to) {
    EXPECT_EQ(std::memcmp(endpoint.memory.data() + from, model_.data() + from, to - from), 0)
        << "between " << from << " and " << to;
  };
  size_t end = 0;
  for (const Zone& zone : zones_) {
    expect_same(end, zone.offset);
    end = zone.offset + zone.bytes;
  }
  expect_same(end, endpoint.memory.size());
  expect_same(zones_[kSource].offset, zones_[kSource].offset + zones_[kSource].bytes);
}

void RandomParty::Reconnect(RandomParty& peer, const ConnectOptions& options) {
  EXPECT_EQ(endpoint.Modify(IBV_QPS_RESET), 0);
  sends_.clear();
  arrivals_.clear();
  slots_taken_ = unsignalled_ = 0;
  if (endpoint.srq == nullptr) {
    receives_.clear();
    receive_slots_taken_ = 0;
  }
  broken_ = fence_next_write_ = false;
  endpoint.Connect(peer.endpoint, options);
}

}  // namespace verbscope::soft::testing
