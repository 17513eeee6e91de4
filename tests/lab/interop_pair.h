// Two devices of different kinds or places, and QPs between them: the soft device over UDP in a
// network namespace of its own, beside the kernel's rxe0 in the first one, or two soft devices in
// two namespaces. What the lab's suite has set up (rxe_interop_suite.py):
//
//   rxe0 on v0     10.9.0.1, fd09::1      first namespace
//   v1             10.9.0.2, fd09::2      namespace "peer", the other end of v0's cable
//   w0, w1         10.9.1.1, 10.9.1.2     namespaces "left" and "right", a cable of their own
//
// One thread.
#ifndef VERBSCOPE_TESTS_LAB_INTEROP_PAIR_H_
#define VERBSCOPE_TESTS_LAB_INTEROP_PAIR_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/error.h"
#include "transports/device.h"
#include "transports/soft/device/device_fixture.h"
#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

// A device, and where and as whom it is on the network.
struct Party {
  std::unique_ptr<Device> device = {};
  std::string network = {};  // the namespace of its control calls; empty: the first one
  ibv_gid gid = {};
  uint8_t gid_index = 0;
};

// Where the packets of the running test are kept for the judges of captures, in the folder that
// VERBSCOPE_CAPTURES names; empty: nowhere.
std::string CapturePath();

// Failures of opening are failures of the test, and the device is null.
Party OpenRxe(const char* address);
// Tireless: a retry count of 7 is for ever, as in rxe, because an emulated machine may stand still
// for longer than seven timeouts of a millisecond. It takes the rule book of rxe for that.
SoftOptions Tireless();
Party OpenSoft(const std::string& network, const char* address, SoftOptions options = {});

// Through INIT and RTR to RTS, both.
Status ConnectParties(Party& one, End& end_of_one, Party& two, End& end_of_two,
                      const ConnectOptions& options);
// Requester and responder have swapped roles in half of all runs.
struct InteropParam {
  bool soft_requests = true;  // else rxe0 does
  bool ipv6 = false;
  ibv_mtu mtu = IBV_MTU_1024;
  static std::string NameOf(const testing::TestParamInfo<InteropParam>& info);
};

// One connected pair at a time: requests go from from() to to().
class InteropTest : public testing::TestWithParam<InteropParam> {
 protected:
  void SetUp() override;
  // A new pair of QPs. The MTU is the parameter's.
  void ConnectEnds(ConnectOptions options = {}, const EndOptions& memory = {});
  bool soft_requests() const { return GetParam().soft_requests; }
  Device& soft() { return *soft_.device; }
  End& from() { return soft_requests() ? soft_end_ : rxe_end_; }
  End& to() { return soft_requests() ? rxe_end_ : soft_end_; }

 private:
  NoTeardownFailures report_;
  Party soft_;
  Party rxe_;
  End soft_end_;
  End rxe_end_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TESTS_LAB_INTEROP_PAIR_H_
