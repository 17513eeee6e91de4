// Two endpoints on one fabric, connected, for tests of endpoints and loops.
#ifndef VERBSCOPE_CORE_ENDPOINT_ENDPOINT_TEST_UTIL_H_
#define VERBSCOPE_CORE_ENDPOINT_ENDPOINT_TEST_UTIL_H_

#include <memory>

#include "core/endpoint/endpoint.h"
#include "transports/fake/fake_device.h"
#include "transports/fake/fake_pair.h"

namespace verbscope {

struct EndpointPair {
  std::shared_ptr<FakeFabric> fabric = std::make_shared<FakeFabric>();
  std::unique_ptr<FakeDevice> device_a;
  std::unique_ptr<FakeDevice> device_b;
  std::unique_ptr<Endpoint> a;
  std::unique_ptr<Endpoint> b;

  explicit EndpointPair(const Plan& plan = {}, uint64_t size = 64, WaitMode wait = {}) {
    device_a = std::make_unique<FakeDevice>(fabric, DefaultFakeDevice("fake0", 1));
    device_b = std::make_unique<FakeDevice>(fabric, DefaultFakeDevice("fake1", 2));
    a = Must(Endpoint::Create(*device_a, plan, Options(*device_a, size, wait)));
    b = Must(Endpoint::Create(*device_b, plan, Options(*device_b, size, wait)));
    Must(a->PostReceives());
    Must(b->PostReceives());
    Must(a->Connect(b->Info()));
    Must(b->Connect(a->Info()));
  }

  static EndpointOptions Options(FakeDevice& device, uint64_t size, WaitMode wait = {}) {
    EndpointOptions options;
    options.size_bytes = size;
    options.wait = wait;
    options.path.port = Must(device.QueryPort(1));
    options.path.gid = options.path.port.gids.back();
    options.path.path_mtu_bytes = 1024;
    return options;
  }
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_ENDPOINT_ENDPOINT_TEST_UTIL_H_
