#include "transports/fake/fake_pair.h"

#include <utility>

namespace verbscope {
namespace {

constexpr int kGidIndex = 1;
constexpr int kInitMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsMask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

// Any function of the QP number that differs per QP.
uint32_t FirstPsn(const FakeEnd& end) { return 0xFFF000 + end.qp->qp_num; }

ibv_qp_attr Attributes(const FakeEnd& self, const FakeEnd& peer, const FakePairOptions& options) {
  ibv_qp_attr attributes = {};
  attributes.port_num = 1;
  attributes.qp_access_flags = static_cast<unsigned>(options.access);
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = peer.qp->qp_num;
  attributes.rq_psn = FirstPsn(peer);
  attributes.sq_psn = FirstPsn(self);
  attributes.max_dest_rd_atomic = 16;
  attributes.max_rd_atomic = 16;
  attributes.min_rnr_timer = 12;
  attributes.timeout = 14;
  attributes.retry_cnt = 7;
  attributes.rnr_retry = options.rnr_retry;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.grh.sgid_index = kGidIndex;
  attributes.ah_attr.grh.dgid = peer.device->info().ports.at(0).gids.at(kGidIndex).raw;
  return attributes;
}

}  // namespace

FakeEnd MakeFakeEnd(std::shared_ptr<FakeFabric> fabric, uint8_t host,
                    const FakePairOptions& options) {
  FakeEnd end;
  end.device = std::make_unique<FakeDevice>(std::move(fabric), DefaultFakeDevice("fake0", host));
  FakeDevice& device = *end.device;
  end.buffer = Must(device.AllocateBuffer({.bytes = options.buffer_bytes}));
  end.pd = Must(device.AllocatePd());
  end.mr = Must(device.RegisterMemory(end.pd.get(), end.buffer->bytes(), options.access));
  end.channel = Must(device.CreateCompChannel());
  end.send_cq = Must(device.CreateCq({.cqe = options.cqe, .channel = end.channel.get()}));
  end.recv_cq = Must(device.CreateCq({.cqe = options.cqe, .channel = end.channel.get()}));
  end.qp = Must(device.CreateQp({.pd = end.pd.get(),
                                 .send_cq = end.send_cq.get(),
                                 .recv_cq = end.recv_cq.get(),
                                 .max_send_wr = options.max_wr,
                                 .max_recv_wr = options.max_wr,
                                 .max_send_sge = options.max_sge,
                                 .max_recv_sge = options.max_sge,
                                 .max_inline_bytes = options.max_inline_bytes}))
               .qp;
  return end;
}

void ConnectFakeEnds(FakeEnd& a, FakeEnd& b, const FakePairOptions& options) {
  const std::pair<ibv_qp_state, int> steps[] = {
      {IBV_QPS_INIT, kInitMask}, {IBV_QPS_RTR, kRtrMask}, {IBV_QPS_RTS, kRtsMask}};
  ibv_qp_attr attributes_a = Attributes(a, b, options);
  ibv_qp_attr attributes_b = Attributes(b, a, options);
  for (const auto& [state, mask] : steps) {
    attributes_a.qp_state = attributes_b.qp_state = state;
    Must(a.device->ModifyQp(a.qp.get(), attributes_a, mask, "of end a"));
    Must(b.device->ModifyQp(b.qp.get(), attributes_b, mask, "of end b"));
  }
}

FakePair::FakePair(const FakePairOptions& options)
    : fabric(std::make_shared<FakeFabric>()),
      a(MakeFakeEnd(fabric, /*host=*/1, options)),
      b(MakeFakeEnd(fabric, /*host=*/2, options)) {
  ConnectFakeEnds(a, b, options);
}

}  // namespace verbscope
