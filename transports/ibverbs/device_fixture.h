// What the tests of IbverbsDevice share: a device over the fake library, and one of each object.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_DEVICE_FIXTURE_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_DEVICE_FIXTURE_H_

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>

#include "transports/ibverbs/device.h"
#include "transports/ibverbs/fake_verbs.h"

namespace verbscope {

// One of each object, as an endpoint has them, in order of creation. Destroyed in reverse; a move
// assignment would destroy in order, so they live behind a unique_ptr.
struct Objects {
  Pd pd;
  Mr mr;
  CompChannel channel;
  Cq cq;
  Qp qp;
};

// The objects, or the first error.
inline Expected<std::unique_ptr<Objects>> CreateAll(Device& device, std::span<std::byte> memory) {
  auto objects = std::make_unique<Objects>();
  auto pd = device.AllocatePd();
  if (!pd) return Fail(pd.error());
  objects->pd = std::move(*pd);
  auto mr = device.RegisterMemory(objects->pd.get(), memory, IBV_ACCESS_LOCAL_WRITE);
  if (!mr) return Fail(mr.error());
  objects->mr = std::move(*mr);
  auto channel = device.CreateCompChannel();
  if (!channel) return Fail(channel.error());
  objects->channel = std::move(*channel);
  auto cq = device.CreateCq({.cqe = 16, .channel = objects->channel.get()});
  if (!cq) return Fail(cq.error());
  objects->cq = std::move(*cq);
  auto qp = device.CreateQp(
      {.pd = objects->pd.get(), .send_cq = objects->cq.get(), .recv_cq = objects->cq.get()});
  if (!qp) return Fail(qp.error());
  objects->qp = std::move(qp->qp);
  return objects;
}

class IbverbsDeviceTest : public ::testing::Test {
 protected:
  IbverbsDeviceTest() {
    system_.AddDeviceNode("uverbs1");
    listed_ = verbs_.AddDevice("renamed0", "uverbs1");
  }
  ~IbverbsDeviceTest() override {
    device_.reset();
    EXPECT_EQ(verbs_.live_objects(), 0u) << "something was not destroyed";
  }

  Expected<std::unique_ptr<IbverbsDevice>> Open() {
    IbverbsOptions options;
    options.paths = system_.paths;
    return IbverbsDevice::Open(verbs_, listed_, options);
  }
  Device& MustOpen() {
    auto opened = Open();
    if (!opened) {
      ADD_FAILURE() << opened.error().ToText();
      std::abort();
    }
    device_ = std::move(*opened);
    device_->set_teardown_report(&report_);
    return *device_;
  }
  std::unique_ptr<Objects> MustCreateAll() {
    auto objects = CreateAll(*device_, memory_);
    if (!objects) {
      ADD_FAILURE() << objects.error().ToText();
      std::abort();
    }
    return std::move(*objects);
  }

  FakeSystem system_;
  FakeVerbs verbs_;
  ibv_device* listed_ = nullptr;
  CollectedReport report_;
  std::unique_ptr<Device> device_;
  std::array<std::byte, 64> memory_ = {};
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_DEVICE_FIXTURE_H_
