// Short spellings of the inline verbs for this package's tests.
#ifndef VERBSCOPE_TRANSPORTS_FAKE_FAKE_TEST_UTIL_H_
#define VERBSCOPE_TRANSPORTS_FAKE_FAKE_TEST_UTIL_H_

#include <infiniband/verbs.h>

#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "transports/fake/fake_pair.h"

namespace verbscope {

inline ibv_sge Sge(const FakeEnd& end, size_t offset, uint32_t bytes) {
  return {.addr = reinterpret_cast<uintptr_t>(end.buffer->bytes().data() + offset),
          .length = bytes,
          .lkey = end.mr->lkey};
}

// A signalled SEND of one SGE; the caller changes what it wants else.
inline ibv_send_wr SendOf(ibv_sge* sge, uint64_t wr_id = 0) {
  ibv_send_wr wr = {};
  wr.wr_id = wr_id;
  wr.sg_list = sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  return wr;
}

inline ibv_send_wr RdmaOf(ibv_wr_opcode opcode, ibv_sge* sge, const FakeEnd& target,
                          size_t offset) {
  ibv_send_wr wr = SendOf(sge);
  wr.opcode = opcode;
  wr.wr.rdma.remote_addr = Sge(target, offset, 0).addr;
  wr.wr.rdma.rkey = target.mr->rkey;
  return wr;
}

inline int Post(const FakeEnd& end, ibv_send_wr wr) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(end.qp.get(), &wr, &bad);
}

// SENDs the first `bytes` of the buffer.
inline int Send(const FakeEnd& end, uint32_t bytes, uint64_t wr_id = 0,
                unsigned flags = IBV_SEND_SIGNALED) {
  ibv_sge sge = Sge(end, 0, bytes);
  ibv_send_wr wr = SendOf(&sge, wr_id);
  wr.send_flags = flags;
  return Post(end, wr);
}

inline int Recv(const FakeEnd& end, size_t offset, uint32_t bytes, uint64_t wr_id = 0) {
  ibv_sge sge = Sge(end, offset, bytes);
  ibv_recv_wr wr = {.wr_id = wr_id, .next = nullptr, .sg_list = &sge, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(end.qp.get(), &wr, &bad);
}

inline std::vector<ibv_wc> Drain(const Cq& cq) {
  std::vector<ibv_wc> all;
  for (ibv_wc wc; ibv_poll_cq(cq.get(), 1, &wc) == 1;) all.push_back(wc);
  return all;
}

using Statuses = std::vector<ibv_wc_status>;
inline Statuses DrainStatuses(const Cq& cq) {
  Statuses all;
  for (const ibv_wc& wc : Drain(cq)) all.push_back(wc.status);
  return all;
}

inline ibv_wc PollBusily(const Cq& cq) {
  ibv_wc wc;
  while (ibv_poll_cq(cq.get(), 1, &wc) == 0) std::this_thread::yield();
  return wc;
}

inline void Put(const FakeEnd& end, size_t offset, std::string_view text) {
  std::memcpy(end.buffer->bytes().data() + offset, text.data(), text.size());
}
inline std::string Get(const FakeEnd& end, size_t offset, size_t bytes) {
  return {reinterpret_cast<const char*>(end.buffer->bytes().data()) + offset, bytes};
}

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_FAKE_FAKE_TEST_UTIL_H_
