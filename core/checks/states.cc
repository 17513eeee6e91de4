// Checks of objects and states: transitions, destruction in order, limits.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <string>
#include <utility>

#include "core/checks/bodies.h"
#include "core/scenario/channel.h"

namespace verbscope {
namespace {

constexpr Piece kMessage = {.offset = 0, .bytes = 64};
constexpr Piece kPlace = {.offset = 1024, .bytes = 64};

std::string Verdict(const Status& status) { return status ? "accepted" : "refused"; }

template <class T>
std::string MadeText(const Expected<T>& made) {
  return made ? "made" : "refused";
}

std::string CloseText(const Status& status) {
  if (status) return "destroyed";
  return status.error().errno_value == EBUSY ? "EBUSY" : status.error().message;
}

// A transition with the attributes that RESET to INIT takes.
std::string Move(Trial& trial, ibv_qp* qp, ibv_qp_state state, int mask) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = state;
  attributes.port_num = static_cast<uint8_t>(trial.stage().path().port.number);
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  return Verdict(trial.device().ModifyQp(qp, attributes, mask, "a check's transition"));
}

void Transitions(Trial& trial) {
  constexpr int kToInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  const Ends ends = trial.Make({}, {});
  if (!ends) return;
  ibv_qp* const qp = ends.here->qp();
  trial.Expect("init-to-rts", "refused", Move(trial, qp, IBV_QPS_RTS, IBV_QP_STATE));
  trial.Expect("init-to-rtr-without-attributes", "refused",
               Move(trial, qp, IBV_QPS_RTR, IBV_QP_STATE));
  trial.Expect("to-reset", "accepted", Move(trial, qp, IBV_QPS_RESET, IBV_QP_STATE));
  trial.Expect("reset-to-rts", "refused", Move(trial, qp, IBV_QPS_RTS, IBV_QP_STATE));
  for (const auto& [part, bit] : {std::pair("init-without-pkey", int{IBV_QP_PKEY_INDEX}),
                                  std::pair("init-without-port", int{IBV_QP_PORT}),
                                  std::pair("init-without-access", int{IBV_QP_ACCESS_FLAGS})}) {
    trial.Expect(part, "refused", Move(trial, qp, IBV_QPS_INIT, kToInit & ~bit));
  }
  trial.Expect("init", "accepted", Move(trial, qp, IBV_QPS_INIT, kToInit));
  trial.Expect("state-is-told", "INIT",
               QpStateName(ends.here->AwaitState(IBV_QPS_INIT, trial.limit())));
}

std::string Posted(int result) { return result == 0 ? "accepted" : "refused"; }

}  // namespace

void QpStates(Trial& trial) {
  Transitions(trial);
  const Ends ends = trial.Make({}, {});
  if (!ends) return;
  trial.Expect("receive-in-init", "accepted",
               Posted(ends.here->PostReceive({.wr_id = 1, .pieces = {kPlace}})));
  trial.Expect("send-in-init", "refused", Posted(ends.here->PostSend({.pieces = {kMessage}})));
  if (!trial.Join(ends)) return;
  trial.Expect("rts-to-rtr", "refused", Move(trial, ends.here->qp(), IBV_QPS_RTR, IBV_QP_STATE));
  trial.Expect("still-rts", "RTS", QpStateName(ends.here->AwaitState(IBV_QPS_RTS, trial.limit())));
  ends.there->PostSend({.pieces = {kMessage}});
  (void)ends.there->AwaitSend(trial.limit());
  trial.Expect("receive-of-init-serves", "SUCCESS",
               StatusOf(ends.here->AwaitReceive(trial.limit())));
  ends.here->ToError();
  trial.Expect("error", "ERR", QpStateName(ends.here->AwaitState(IBV_QPS_ERR, trial.limit())));
  trial.Expect("error-to-rts", "refused", Move(trial, ends.here->qp(), IBV_QPS_RTS, IBV_QP_STATE));
  if (!trial.Rejoin(ends)) return;
  ends.there->PostReceive({.wr_id = 2, .pieces = {kPlace}});
  ends.here->PostSend({.pieces = {kMessage}});
  trial.Expect("reset-and-reuse", "requester SUCCESS, responder SUCCESS", trial.AwaitBoth(ends));
}

void Teardown(Trial& trial) {
  Device& device = trial.device();
  Pd pd = trial.latch().Take(device.AllocatePd());
  const std::unique_ptr<Buffer> buffer = trial.latch().Take(device.AllocateBuffer({.bytes = 4096}));
  if (!trial.ok()) return;
  Mr mr = trial.latch().Take(device.RegisterMemory(pd.get(), buffer->bytes(), 0));
  CompChannel channel = trial.latch().Take(MakeNonBlockingChannel(device));
  if (!trial.ok()) return;
  Cq cq = trial.latch().Take(device.CreateCq({.cqe = 4, .channel = channel.get()}));
  if (!trial.ok()) return;
  CreatedQp qp = trial.latch().Take(
      device.CreateQp({.pd = pd.get(), .send_cq = cq.get(), .recv_cq = cq.get()}));
  if (!trial.ok()) return;
  trial.Expect("pd-in-use", "EBUSY", CloseText(pd.Close()));
  trial.Expect("cq-in-use", "EBUSY", CloseText(cq.Close()));
  trial.Expect("channel-in-use", "EBUSY", CloseText(channel.Close()));
  for (const auto& [part, status] : {std::pair("qp", qp.qp.Close()), std::pair("cq", cq.Close()),
                                     std::pair("channel", channel.Close()),
                                     std::pair("mr", mr.Close()), std::pair("pd", pd.Close())}) {
    trial.Expect(part, "destroyed", CloseText(status));
  }
}

void Limits(Trial& trial) {
  Device& device = trial.device();
  const DeviceLimits& limits = device.info().limits;
  Pd pd = trial.latch().Take(device.AllocatePd());
  Cq cq = trial.latch().Take(device.CreateCq({.cqe = 16}));
  if (!trial.ok()) return;
  // Queues as deep as a device allows may take more memory than a host has.
  constexpr uint32_t kMostEntries = 1 << 16;
  if (limits.max_cqe <= kMostEntries) {
    trial.Expect("max-cqe", "made", MadeText(device.CreateCq({.cqe = limits.max_cqe})));
  }
  trial.Expect("above-max-cqe", "refused", MadeText(device.CreateCq({.cqe = limits.max_cqe + 1})));
  trial.Expect("no-cqe", "refused", MadeText(device.CreateCq({.cqe = 0})));
  trial.Expect(
      "vector-beyond", "refused",
      MadeText(device.CreateCq({.cqe = 1, .comp_vector = static_cast<int>(limits.comp_vectors)})));
  QpOptions options = {.pd = pd.get(), .send_cq = cq.get(), .recv_cq = cq.get()};
  if (limits.max_qp_wr <= kMostEntries) {
    options.max_recv_wr = limits.max_qp_wr;
    trial.Expect("max-qp-wr", "made", MadeText(device.CreateQp(options)));
  }
  options.max_recv_wr = limits.max_qp_wr + 1;
  trial.Expect("above-max-qp-wr", "refused", MadeText(device.CreateQp(options)));
  options.max_recv_wr = 1;
  options.max_recv_sge = limits.max_sge;
  trial.Expect("max-sge", "made", MadeText(device.CreateQp(options)));
  options.max_recv_sge = limits.max_sge + 1;
  trial.Expect("above-max-sge", "refused", MadeText(device.CreateQp(options)));
}

}  // namespace verbscope
