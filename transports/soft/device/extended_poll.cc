// ibv_start_poll, ibv_next_poll, ibv_end_poll and the ibv_wc_read_* of an extended CQ: one
// completion at a time, taken by the same function as ibv_poll_cq.
#include <cerrno>

#include "transports/soft/device/objects.h"
#include "transports/soft/device/verbs_ops.h"

namespace verbscope::soft {
namespace {

int Next(ibv_cq_ex* base) {
  SoftCq& cq = Of(base);
  const int got = ibv_poll_cq(ibv_cq_ex_to_cq(base), 1, &cq.current);
  if (got == 0) return ENOENT;
  if (got < 0) return EIO;
  cq.wr_id = cq.current.wr_id;
  cq.status = cq.current.status;
  return 0;
}

int Start(ibv_cq_ex* base, ibv_poll_cq_attr* attributes) {
  return attributes->comp_mask != 0 ? EINVAL : Next(base);
}

void End(ibv_cq_ex* /*base*/) {}

}  // namespace

void FillExtendedCq(ibv_cq_ex& cq) {
  cq.start_poll = Start;
  cq.next_poll = Next;
  cq.end_poll = End;
  cq.read_opcode = [](ibv_cq_ex* base) { return Of(base).current.opcode; };
  cq.read_vendor_err = [](ibv_cq_ex* base) { return Of(base).current.vendor_err; };
  cq.read_byte_len = [](ibv_cq_ex* base) { return Of(base).current.byte_len; };
  cq.read_imm_data = [](ibv_cq_ex* base) { return Of(base).current.imm_data; };
  cq.read_qp_num = [](ibv_cq_ex* base) { return Of(base).current.qp_num; };
  cq.read_src_qp = [](ibv_cq_ex* base) { return Of(base).current.src_qp; };
  cq.read_wc_flags = [](ibv_cq_ex* base) { return Of(base).current.wc_flags; };
  cq.read_slid = [](ibv_cq_ex*) { return uint32_t{0}; };
  cq.read_sl = [](ibv_cq_ex*) { return uint8_t{0}; };
  cq.read_dlid_path_bits = [](ibv_cq_ex*) { return uint8_t{0}; };
}

}  // namespace verbscope::soft
