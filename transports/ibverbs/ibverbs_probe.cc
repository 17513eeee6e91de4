// Tries IbverbsDevice on the real devices of a host: lists them, makes one of each object, connects
// a QP to itself, sends one message with an event, breaks things on purpose and shows what is said.
// One line per step; ends with 0 when every step did what it should. For the lab (a kernel with
// rxe), not for the unit tests.
//
//   ibverbs_probe [DEVICE]     without DEVICE: the first usable one

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "transports/ibverbs/provider.h"

namespace verbscope {
namespace {

int failures = 0;

void Step(bool good, const std::string& text) {
  if (!good) ++failures;
  fmt::print("{} {}\n", good ? "ok  " : "FAIL", text);
}

// A step that must fail with a text that has `part`.
template <class T>
void MustFail(const Expected<T>& result, std::string_view part, std::string_view name) {
  const std::string text = result ? "no error" : result.error().ToText();
  Step(!result && text.find(part) != std::string::npos, fmt::format("{}: {}", name, text));
}

struct PrintedReport : TeardownReport {
  void Add(Error error) override {
    lines.push_back(error.ToText());
    fmt::print("     report: {}\n", lines.back());
  }
  std::vector<std::string> lines;
};

std::string FirstUsable(IbverbsProvider& provider) {
  const auto list = provider.List();
  if (!list) {
    Step(false, "list: " + list.error().ToText());
    return "";
  }
  std::string usable;
  for (const DeviceSummary& row : *list) {
    if (!row.info) {
      fmt::print("     {}: {}\n", row.name, row.error->ToText());
      continue;
    }
    const DeviceInfo& info = *row.info;
    fmt::print("     {}: {} provider={} firmware='{}' numa={} vendor={:#x} part={:#x}\n", info.name,
               Name(info.kind), info.provider, info.firmware, info.numa_node, info.vendor_id,
               info.vendor_part_id);
    for (const PortInfo& port : info.ports) {
      fmt::print("       port {} {} {} mtu {}/{} {} Gbit/s lid {}\n", port.number, port.state,
                 Name(port.link_layer), port.active_mtu_bytes, port.max_mtu_bytes, port.gbit_per_s,
                 port.lid);
      for (const GidEntry& gid : port.gids) {
        fmt::print("         gid {} {} {} {}\n", gid.index, gid.value, gid.type, gid.netdev);
      }
    }
    if (usable.empty()) usable = info.name;
  }
  return usable;
}

struct Ends {
  std::unique_ptr<Buffer> buffer;
  Pd pd;
  Mr mr;
  CompChannel channel;
  Cq cq;
  Qp qp;
};

Status Connect(Device& device, Ends& ends, const PortInfo& port, const GidEntry& gid) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = static_cast<uint8_t>(port.number);
  Status status = device.ModifyQp(
      ends.qp.get(), attributes,
      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "RESET to INIT");
  if (!status) return status;
  attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = ends.qp->qp_num;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 12;
  attributes.ah_attr.port_num = static_cast<uint8_t>(port.number);
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.grh.dgid = gid.raw;
  attributes.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid.index);
  attributes.ah_attr.grh.hop_limit = 64;
  constexpr int kMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

  // The mistakes first: none of them may reach the device or spoil the QP.
  ibv_qp_attr wrong = attributes;
  wrong.ah_attr.port_num = 9;
  MustFail(device.ModifyQp(ends.qp.get(), wrong, kMask, "INIT to RTR"), "port number 9",
           "wrong port");
  wrong = attributes;
  wrong.ah_attr.is_global = 0;
  MustFail(device.ModifyQp(ends.qp.get(), wrong, kMask, "INIT to RTR"), "no GRH", "no GRH");
  wrong = attributes;
  wrong.ah_attr.grh.sgid_index = 200;
  MustFail(device.ModifyQp(ends.qp.get(), wrong, kMask, "INIT to RTR"), "index 200", "empty GID");
  wrong = attributes;
  wrong.ah_attr.grh.dgid = {};
  MustFail(device.ModifyQp(ends.qp.get(), wrong, kMask, "INIT to RTR"), "peer's GID is zero",
           "zero peer GID");
  if (port.active_mtu_bytes < 4096) {
    wrong = attributes;
    wrong.path_mtu = IBV_MTU_4096;
    MustFail(device.ModifyQp(ends.qp.get(), wrong, kMask, "INIT to RTR"), "active MTU", "MTU");
  }
  // One mistake that only the device sees: an address that no neighbour has.
  wrong = attributes;
  wrong.ah_attr.grh.dgid.raw[15] ^= 0x55;
  const Status unresolved = device.ModifyQp(ends.qp.get(), wrong, kMask, "INIT to RTR");
  fmt::print("     no neighbour: {}\n",
             unresolved ? "accepted by this device" : unresolved.error().ToText());
  if (unresolved) {
    ibv_qp_attr reset = {};
    reset.qp_state = IBV_QPS_RESET;
    if (Status back = device.ModifyQp(ends.qp.get(), reset, IBV_QP_STATE, "to RESET"); !back) {
      return back;
    }
    ibv_qp_attr init = {};
    init.qp_state = IBV_QPS_INIT;
    init.port_num = static_cast<uint8_t>(port.number);
    status = device.ModifyQp(ends.qp.get(), init,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                             "RESET to INIT");
    if (!status) return status;
  }
  status = device.ModifyQp(ends.qp.get(), attributes, kMask, "INIT to RTR");
  if (!status) return status;
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;
  attributes.retry_cnt = 6;
  attributes.rnr_retry = 6;
  attributes.max_rd_atomic = 1;
  return device.ModifyQp(ends.qp.get(), attributes,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                         "RTR to RTS");
}

// Posts one receive and one send to itself and takes both completions by event.
void SendOnce(Device& device, Ends& ends) {
  const auto memory = ends.buffer->bytes();
  std::memset(memory.data(), 'a', 64);
  ibv_sge target = {reinterpret_cast<uint64_t>(memory.data() + 64), 64, ends.mr->lkey};
  ibv_sge source = {reinterpret_cast<uint64_t>(memory.data()), 64, ends.mr->lkey};
  ibv_recv_wr receive = {};
  receive.sg_list = &target;
  receive.num_sge = 1;
  ibv_send_wr send = {};
  send.sg_list = &source;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_recv_wr* bad_receive = nullptr;
  ibv_send_wr* bad_send = nullptr;
  Step(ibv_req_notify_cq(ends.cq.get(), 0) == 0, "armed");
  Step(ibv_post_recv(ends.qp.get(), &receive, &bad_receive) == 0, "receive posted");
  Step(ibv_post_send(ends.qp.get(), &send, &bad_send) == 0, "send posted");
  const auto event = device.GetCqEvent(ends.channel.get());
  Step(event && *event == ends.cq.get(), "event of our CQ");
  int completions = 0;
  const Deadline deadline = Deadline::After(std::chrono::seconds(10));
  while (completions < 2 && !deadline.Passed()) {
    ibv_wc completion = {};
    if (ibv_poll_cq(ends.cq.get(), 1, &completion) != 1) continue;
    Step(completion.status == IBV_WC_SUCCESS,
         fmt::format("completion {}", static_cast<int>(completion.opcode)));
    ++completions;
  }
  Step(std::memcmp(memory.data(), memory.data() + 64, 64) == 0, "64 bytes arrived");
  // The event is not acknowledged, on purpose: destroying the CQ must not hang.
}

Expected<Ends*> Create(Device& device, Ends& ends) {
  auto buffer = device.AllocateBuffer({.bytes = 4096});
  if (!buffer) return Fail(buffer.error());
  ends.buffer = std::move(*buffer);
  auto pd = device.AllocatePd();
  if (!pd) return Fail(pd.error());
  ends.pd = std::move(*pd);
  auto mr = device.RegisterMemory(ends.pd.get(), ends.buffer->bytes(), IBV_ACCESS_LOCAL_WRITE);
  if (!mr) return Fail(mr.error());
  ends.mr = std::move(*mr);
  auto channel = device.CreateCompChannel();
  if (!channel) return Fail(channel.error());
  ends.channel = std::move(*channel);
  auto cq = device.CreateCq({.cqe = 16, .channel = ends.channel.get()});
  if (!cq) return Fail(cq.error());
  ends.cq = std::move(*cq);
  auto qp = device.CreateQp({.pd = ends.pd.get(),
                             .send_cq = ends.cq.get(),
                             .recv_cq = ends.cq.get(),
                             .max_send_wr = 8,
                             .max_recv_wr = 8});
  if (!qp) return Fail(qp.error());
  ends.qp = std::move(qp->qp);
  return &ends;
}

void TryLimits(Device& device, Ends& ends) {
  const auto limit = device.MaxInlineBytes();
  Step(limit.has_value(), fmt::format("inline limit {}", limit.value_or(0)));
  QpOptions options = {.pd = ends.pd.get(),
                       .send_cq = ends.cq.get(),
                       .recv_cq = ends.cq.get(),
                       .max_inline_bytes = limit.value_or(0)};
  Step(device.CreateQp(options).has_value(), "QP with the largest inline size");
  ++options.max_inline_bytes;
  MustFail(device.CreateQp(options), "above the device's limit", "inline size + 1");
  options.max_inline_bytes = 0;
  options.max_send_wr = device.info().limits.max_qp_wr + 1;
  MustFail(device.CreateQp(options), "max_send_wr", "send queue + 1");
  MustFail(device.CreateCq({.cqe = device.info().limits.max_cqe + 1}),
           "is above the device's limit", "CQ + 1");
  MustFail(device.CreateCq({.cqe = 1, .comp_vector = 10000}), "completion vectors", "vector");
  MustFail(device.QueryPort(9), "no port 9", "port 9");
  MustFail(ends.pd.Close(), "still used by", "PD in use");
  MustFail(ends.cq.Close(), "still used by", "CQ in use");
  MustFail(ends.channel.Close(), "still used by", "channel in use");
}

// Only bites without CAP_IPC_LOCK, so run it once as a user other than root.
void TryMemlock(Device& device, Ends& ends) {
  const rlimit low = {65536, 65536};
  ::setrlimit(RLIMIT_MEMLOCK, &low);
  auto buffer = device.AllocateBuffer({.bytes = 1 << 20});
  if (!buffer) return Step(false, buffer.error().ToText());
  const auto mr = device.RegisterMemory(ends.pd.get(), (*buffer)->bytes(), IBV_ACCESS_LOCAL_WRITE);
  if (::geteuid() == 0) {
    Step(mr.has_value(), "1 MiB above the limit as root");
  } else {
    MustFail(mr, "limit of locked memory is too low", "1 MiB above the limit");
  }
}

int Run(const std::string& asked) {
  IbverbsProvider provider;
  const std::string first = FirstUsable(provider);
  const std::string name = asked.empty() ? first : asked;
  MustFail(provider.Open("no_such_device"), "no RDMA device named", "wrong name");
  if (name.empty()) return Step(false, "no usable device"), 1;
  auto opened = provider.Open(name);
  if (!opened) {
    Step(false, opened.error().ToText());
    return 1;
  }
  Device& device = **opened;
  PrintedReport report;
  device.set_teardown_report(&report);
  {
    Ends ends;
    const auto created = Create(device, ends);
    Step(created.has_value(), created ? "objects" : created.error().ToText());
    if (!created) return 1;
    const PortInfo& port = device.info().ports.front();
    if (port.gids.empty()) return Step(false, "the port has no GID"), 1;
    TryLimits(device, ends);
    const Status connected = Connect(device, ends, port, port.gids.back());
    Step(connected.has_value(), connected ? "connected" : connected.error().ToText());
    const auto state = device.QueryQpState(ends.qp.get());
    Step(state == IBV_QPS_RTS, "state RTS");
    if (connected) SendOnce(device, ends);
    TryMemlock(device, ends);
    ibv_qp_attr error_state = {};
    error_state.qp_state = IBV_QPS_ERR;
    Step(device.ModifyQp(ends.qp.get(), error_state, IBV_QP_STATE, "to ERR").has_value(), "ERR");
    const auto event = device.NextAsyncEvent(Deadline::After(std::chrono::milliseconds(10)));
    Step(event.has_value(), fmt::format("async event: {}", !event ? event.error().ToText()
                                                           : event->has_value() ? (*event)->text
                                                                                : "none"));
  }
  Step(report.lines.size() == 1 && report.lines[0].find("1 event(s)") != std::string::npos,
       "torn down; the one event left owing was reported");
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace verbscope

int main(int argc, char** argv) {
  const int code = verbscope::Run(argc > 1 ? argv[1] : "");
  fmt::print("{}\n", code == 0 ? "passed" : "failed");
  return code;
}
