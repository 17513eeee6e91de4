// ibv_wr_start … ibv_wr_complete: requests are built in the QP and posted together at the end, so
// either all of them are taken or none is (ibv_wr_post(3)).
#include <cerrno>
#include <cstring>

#include "transports/soft/device/objects.h"
#include "transports/soft/device/verbs_ops.h"

namespace verbscope::soft {
namespace {

void Start(ibv_qp_ex* base) {
  SoftQp& qp = Of(base);
  qp.built = 0;
  qp.building_error = 0;
}

// The request being built; room is kept from batch to batch.
ibv_send_wr& Begin(ibv_qp_ex* base, ibv_wr_opcode opcode) {
  SoftQp& qp = Of(base);
  if (qp.built == qp.building.size()) {
    qp.building.emplace_back();
    qp.building_sges.emplace_back();
    qp.building_inline.emplace_back();
  }
  ibv_send_wr& wr = qp.building[qp.built];
  wr = {};
  wr.wr_id = base->wr_id;
  wr.opcode = opcode;
  wr.send_flags = base->wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);  // set by its data
  qp.building_sges[qp.built].clear();
  qp.building_inline[qp.built].clear();
  ++qp.built;
  return wr;
}

ibv_send_wr* Current(SoftQp& qp) {
  if (qp.built > 0) return &qp.building[qp.built - 1];
  qp.building_error = EINVAL;  // data without a request
  return nullptr;
}

void Remote(ibv_qp_ex* base, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address) {
  ibv_send_wr& wr = Begin(base, opcode);
  wr.wr.rdma.rkey = rkey;
  wr.wr.rdma.remote_addr = address;
}

void Atomic(ibv_qp_ex* base, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address,
            uint64_t compare_add, uint64_t swap) {
  ibv_send_wr& wr = Begin(base, opcode);
  wr.wr.atomic.rkey = rkey;
  wr.wr.atomic.remote_addr = address;
  wr.wr.atomic.compare_add = compare_add;
  wr.wr.atomic.swap = swap;
}

void SetSges(ibv_qp_ex* base, size_t count, const ibv_sge* sges) {
  SoftQp& qp = Of(base);
  ibv_send_wr* wr = Current(qp);
  if (wr == nullptr) return;
  if (count > qp.pair->cap().max_send_sge) {
    qp.building_error = EINVAL;
    return;
  }
  qp.building_sges[qp.built - 1].assign(sges, sges + count);
}

void SetSge(ibv_qp_ex* base, uint32_t lkey, uint64_t address, uint32_t length) {
  const ibv_sge sge = {.addr = address, .length = length, .lkey = lkey};
  SetSges(base, 1, &sge);
}

void SetInlineList(ibv_qp_ex* base, size_t count, const ibv_data_buf* buffers) {
  SoftQp& qp = Of(base);
  ibv_send_wr* wr = Current(qp);
  if (wr == nullptr) return;
  std::vector<std::byte>& bytes = qp.building_inline[qp.built - 1];
  bytes.clear();
  for (size_t i = 0; i < count; ++i) {
    if (buffers[i].length > qp.pair->max_inline() - bytes.size()) {
      qp.building_error = EINVAL;
      return;
    }
    const auto* from = static_cast<const std::byte*>(buffers[i].addr);
    bytes.insert(bytes.end(), from, from + buffers[i].length);
  }
  const bool fetches = wr->opcode == IBV_WR_RDMA_READ || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                       wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  if (fetches) qp.building_error = EINVAL;
  wr->send_flags |= IBV_SEND_INLINE;
}

void SetInline(ibv_qp_ex* base, void* address, size_t length) {
  const ibv_data_buf buffer = {.addr = address, .length = length};
  SetInlineList(base, 1, &buffer);
}

int Complete(ibv_qp_ex* base) {
  SoftQp& qp = Of(base);
  if (qp.building_error != 0) return qp.building_error;
  if (qp.built == 0) return 0;
  std::vector<ibv_sge>& inline_sge = qp.building_inline_sges;
  inline_sge.resize(qp.built);
  for (size_t i = 0; i < qp.built; ++i) {
    ibv_send_wr& wr = qp.building[i];
    wr.next = i + 1 < qp.built ? &qp.building[i + 1] : nullptr;
    if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
      inline_sge[i].lkey = 0;
      inline_sge[i].addr = reinterpret_cast<uintptr_t>(qp.building_inline[i].data());
      inline_sge[i].length = static_cast<uint32_t>(qp.building_inline[i].size());
      wr.sg_list = &inline_sge[i];
      wr.num_sge = inline_sge[i].length > 0 ? 1 : 0;
    } else {
      wr.sg_list = qp.building_sges[i].data();
      wr.num_sge = static_cast<int>(qp.building_sges[i].size());
    }
  }
  return PostWhole(qp);
}

void Abort(ibv_qp_ex* base) { Of(base).built = 0; }

}  // namespace

void FillExtendedQp(ibv_qp_ex& qp) {
  qp.wr_start = Start;
  qp.wr_complete = Complete;
  qp.wr_abort = Abort;
  qp.wr_send = [](ibv_qp_ex* base) { Begin(base, IBV_WR_SEND); };
  qp.wr_send_imm = [](ibv_qp_ex* base, __be32 immediate) {
    Begin(base, IBV_WR_SEND_WITH_IMM).imm_data = immediate;
  };
  qp.wr_send_inv = [](ibv_qp_ex* base, uint32_t rkey) {
    Begin(base, IBV_WR_SEND_WITH_INV).invalidate_rkey = rkey;
  };
  qp.wr_rdma_read = [](ibv_qp_ex* base, uint32_t rkey, uint64_t address) {
    Remote(base, IBV_WR_RDMA_READ, rkey, address);
  };
  qp.wr_rdma_write = [](ibv_qp_ex* base, uint32_t rkey, uint64_t address) {
    Remote(base, IBV_WR_RDMA_WRITE, rkey, address);
  };
  qp.wr_rdma_write_imm = [](ibv_qp_ex* base, uint32_t rkey, uint64_t address, __be32 immediate) {
    Remote(base, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address);
    Current(Of(base))->imm_data = immediate;
  };
  qp.wr_atomic_cmp_swp = [](ibv_qp_ex* base, uint32_t rkey, uint64_t address, uint64_t compare,
                            uint64_t swap) {
    Atomic(base, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address, compare, swap);
  };
  qp.wr_atomic_fetch_add = [](ibv_qp_ex* base, uint32_t rkey, uint64_t address, uint64_t add) {
    Atomic(base, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address, add, 0);
  };
  qp.wr_set_sge = SetSge;
  qp.wr_set_sge_list = SetSges;
  qp.wr_set_inline_data = SetInline;
  qp.wr_set_inline_data_list = SetInlineList;
}

}  // namespace verbscope::soft
