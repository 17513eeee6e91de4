// Two connected ends on one fabric, for tests that need traffic and not a way to set it up.
//
// Owned by the test, torn down in the right order by its destructor. Setting up must work: a
// failure prints the error and aborts. Each end may be used by one thread.
#ifndef VERBSCOPE_TRANSPORTS_FAKE_FAKE_PAIR_H_
#define VERBSCOPE_TRANSPORTS_FAKE_FAKE_PAIR_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <type_traits>
#include <utility>

#include "transports/device.h"
#include "transports/fake/fake_device.h"
#include "transports/fake/fake_fabric.h"

namespace verbscope {

// The value of something that cannot fail in a sane test.
template <class T>
T Must(Expected<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().ToText().c_str());
    std::abort();
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

struct FakePairOptions {
  uint32_t cqe = 64;
  uint32_t max_wr = 16;  // of both queues
  uint32_t max_sge = 2;
  uint32_t max_inline_bytes = 64;
  size_t buffer_bytes = 4096;
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
               IBV_ACCESS_REMOTE_ATOMIC;
  uint8_t rnr_retry = 7;
};

struct FakeEnd {
  std::unique_ptr<FakeDevice> device;
  std::unique_ptr<Buffer> buffer;
  Pd pd;
  Mr mr;  // of the whole buffer
  CompChannel channel;
  Cq send_cq;  // on the channel
  Cq recv_cq;  // on the channel
  Qp qp;
};

// One end with its QP in RESET. `host` as in DefaultFakeDevice.
FakeEnd MakeFakeEnd(std::shared_ptr<FakeFabric> fabric, uint8_t host,
                    const FakePairOptions& options = {});
// RESET to RTS in the order INIT, INIT, RTR, RTR, RTS, RTS. Both QPs must be in RESET.
void ConnectFakeEnds(FakeEnd& a, FakeEnd& b, const FakePairOptions& options = {});

struct FakePair {
  explicit FakePair(const FakePairOptions& options = {});

  std::shared_ptr<FakeFabric> fabric;
  FakeEnd a;
  FakeEnd b;
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_FAKE_FAKE_PAIR_H_
