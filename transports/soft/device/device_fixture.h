// What the conformance tests of this folder share: one or two soft devices in this process, QPs
// that are connected as a program connects them, work requests in one line, and waits that end.
//
//   class SendTest : public DeviceTest {};
//   TEST_P(SendTest, Arrives) {
//     auto [a, b] = ConnectedPair();
//     PostReceive(b, 1, 64);
//     EXPECT_EQ(Post(a, Send(a, 2, 64)), 0);
//     EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
//   }
//   INSTANTIATE_TEST_SUITE_P(, SendTest, kAllDevices, DeviceParam::NameOf);
//
// Every failure to tear down something fails the test. One thread, the test's.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_DEVICE_FIXTURE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_DEVICE_FIXTURE_H_

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "transports/device.h"
#include "transports/soft/device/soft_device.h"
#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

// Where the rule books differ: what a test expects, by profile.
struct Expectations {
  // Requester and responder, for a SEND longer than the receive and for a receive into bad memory.
  ibv_wc_status too_long_requester;
  ibv_wc_status too_long_responder;
  ibv_wc_status bad_receive_responder;
  bool error_events;        // QP_ACCESS_ERR, QP_REQ_ERR, QP_FATAL, COMM_EST, QP_LAST_WQE_REACHED
  bool retry_7_is_forever;  // retry_cnt 7
};
const Expectations& ExpectationsOf(Profile profile);

// One run of a test: the rule book, whether a QP's peer is on the same device, and the link.
struct DeviceParam {
  Profile profile = Profile::kIbta;
  bool one_device = false;
  LinkKind link = LinkKind::kMemory;
  static std::string NameOf(const testing::TestParamInfo<DeviceParam>& info);
};
inline const auto kMemoryDevices =
    testing::Values(DeviceParam{Profile::kIbta, false}, DeviceParam{Profile::kIbta, true},
                    DeviceParam{Profile::kRxe61, false}, DeviceParam{Profile::kRxe61, true});
inline const auto kAllDevices =
    testing::Values(DeviceParam{Profile::kIbta, false}, DeviceParam{Profile::kIbta, true},
                    DeviceParam{Profile::kRxe61, false}, DeviceParam{Profile::kRxe61, true},
                    DeviceParam{Profile::kIbta, false, LinkKind::kUdp},
                    DeviceParam{Profile::kIbta, true, LinkKind::kUdp});
inline const auto kIbtaDevices =
    testing::Values(DeviceParam{Profile::kIbta, false}, DeviceParam{Profile::kIbta, true});

constexpr int kFullAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

// A limit for what happens in milliseconds.
inline Deadline Soon() { return Deadline::After(std::chrono::seconds(20)); }

// How one end is made.
struct EndOptions {
  uint32_t cqe = 128;
  bool channel = false;  // the CQs raise events
  bool one_cq = false;   // for sends and receives
  bool signal_all = false;
  uint32_t max_send_wr = 64;
  uint32_t max_recv_wr = 64;
  uint32_t max_sge = 4;
  uint32_t max_inline_bytes = 0;
  ibv_srq* srq = nullptr;
  size_t bytes = 64 * 1024;  // of registered memory
  int access = kFullAccess;  // of the memory
};

// One QP with everything it needs, on one device.
struct End {
  Device* device = nullptr;
  Pd pd;
  std::unique_ptr<Buffer> buffer;
  Mr mr;
  CompChannel channel;
  Cq send_cq_owner;
  Cq recv_cq_owner;  // empty when there is one CQ
  Qp qp;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;

  std::byte* at(size_t offset) const { return buffer->bytes().data() + offset; }
  uint64_t address(size_t offset = 0) const { return reinterpret_cast<uintptr_t>(at(offset)); }
  // Everything goes, in the reverse order of its making.
  void Close() { const End gone = std::move(*this); }
};

struct ConnectOptions {
  ibv_mtu mtu = IBV_MTU_1024;
  unsigned access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  uint8_t timeout = 14;  // 67 ms
  uint8_t retry_cnt = 6;
  uint8_t rnr_retry = 6;
  uint8_t min_rnr_timer = 1;  // 10 us
  uint8_t rd_atomic = 4;
  uint32_t psn = 0xfffff0;  // so that every test wraps
};

// The masks of the three transitions.
constexpr int kInitMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsMask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
ibv_qp_attr InitAttributes(const ConnectOptions& options = {});
// `peer_device`: of `peer`, if it is another one than `device`.
ibv_qp_attr RtrAttributes(Device& device, const ibv_qp& peer, const ConnectOptions& options = {},
                          Device* peer_device = nullptr);
ibv_qp_attr RtsAttributes(const ConnectOptions& options = {});
// The steps of a program, with the blobs exchanged.
Status ToInit(End& end, const ConnectOptions& options = {});
Status ToRtr(End& end, End& peer, const ConnectOptions& options = {});
Status ToRts(End& end, const ConnectOptions& options = {});
Status ToState(End& end, ibv_qp_state state);  // RESET, ERR, SQD, or back to RTS from SQD
Status Connect(End& a, End& b, const ConnectOptions& options = {});

// A work request with its one SGE. Change what a test needs before posting it.
struct SendWork {
  ibv_sge sge = {};
  ibv_send_wr wr = {};
};
SendWork Send(const End& from, uint64_t id, uint32_t bytes, size_t offset = 0);
SendWork SendImmediate(const End& from, uint64_t id, uint32_t bytes, uint32_t immediate);
SendWork Write(const End& from, const End& to, uint64_t id, uint32_t bytes, size_t offset = 0);
SendWork WriteImmediate(const End& from, const End& to, uint64_t id, uint32_t bytes,
                        uint32_t immediate);
SendWork Read(const End& from, const End& to, uint64_t id, uint32_t bytes, size_t offset = 0);
SendWork FetchAdd(const End& from, const End& to, uint64_t id, uint64_t add);
SendWork CompareSwap(const End& from, const End& to, uint64_t id, uint64_t compare, uint64_t swap);
// The result of ibv_post_send and ibv_post_recv.
int Post(End& end, SendWork work);
int PostReceive(End& end, uint64_t id, uint32_t bytes, size_t offset = 0);
int PostSharedReceive(ibv_srq* srq, const End& memory, uint64_t id, uint32_t bytes);

// The next completion, within Soon. A failure of the test, and an impossible completion, otherwise.
ibv_wc Wait(ibv_cq* cq);
std::vector<ibv_wc> WaitFor(ibv_cq* cq, size_t count);
// Polls a while, and expects nothing: neither completions nor an error.
void ExpectEmpty(ibv_cq* cq);
// Polls `cq`, which stays empty, until `done` or Soon. Returns what `done` says at the end.
template <class F>
bool PollUntil(ibv_cq* cq, F&& done) {
  const Deadline deadline = Soon();
  ibv_wc wc = {};
  while (!done() && !deadline.Passed()) {
    const int got = ibv_poll_cq(cq, 1, &wc);
    EXPECT_EQ(got, 0);
    if (got != 0) break;
  }
  return done();
}
// The same, driving nothing.
template <class F>
bool AwaitUntil(F&& done) {
  const Deadline deadline = Soon();
  while (!done() && !deadline.Passed()) ::sched_yield();
  return done();
}

// Messages from `from` wake the sleeper at `to`, until the device of `from` has learnt of the
// channel and writes to it itself. No event is left.
void AwaitDirectWake(End& from, End& to);
bool Readable(int fd, std::chrono::milliseconds wait = {});
void SetNonBlocking(ibv_comp_channel* channel);
uint64_t Counter(Device& device, std::string_view name);
// Up to a null event or `wait`: the texts without what follows the type ("QP_FATAL").
std::vector<std::string> AsyncEvents(Device& device, std::chrono::milliseconds wait = {});
// Waits for one event of the type; others before it are dropped.
bool AwaitAsyncEvent(Device& device, std::string_view type);
ibv_qp_state StateOf(End& end);
std::vector<std::byte> Pattern(size_t bytes, uint32_t seed);

// Fails the test for everything that cannot be torn down.
class NoTeardownFailures final : public TeardownReport {
 public:
  void Add(Error error) override { ADD_FAILURE() << "teardown: " << error.ToText(); }
};

std::unique_ptr<SoftDevice> OpenDevice(const SoftOptions& options);
// An object that the test needs; a failure of the test and an empty one if there is none.
template <class T>
T Must(Expected<T> made) {
  EXPECT_TRUE(made) << (made ? "" : made.error().ToText());
  return made ? std::move(*made) : T();
}
End MakeEnd(Device& device, const EndOptions& options = {});

class DeviceTest : public testing::TestWithParam<DeviceParam> {
 protected:
  // Opens what the parameter wants. Called by the first use of a device.
  void OpenDevices(const SoftOptions& options = {});
  SoftDevice& first() { return Opened(first_); }
  SoftDevice& second() { return GetParam().one_device ? first() : Opened(second_); }
  void CloseSecond() { second_.reset(); }
  bool udp() const { return GetParam().link == LinkKind::kUdp; }
  const Expectations& expected() const { return ExpectationsOf(GetParam().profile); }

  std::pair<End, End> ConnectedPair(const EndOptions& a = {}, const EndOptions& b = {},
                                    const ConnectOptions& options = {});

 private:
  SoftDevice& Opened(std::unique_ptr<SoftDevice>& device);

  NoTeardownFailures report_;
  std::unique_ptr<SoftDevice> first_;
  std::unique_ptr<SoftDevice> second_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_DEVICE_FIXTURE_H_
