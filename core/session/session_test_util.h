// Whole sessions, both roles in one process over a socket pair, on the fake device.
#ifndef VERBSCOPE_CORE_SESSION_SESSION_TEST_UTIL_H_
#define VERBSCOPE_CORE_SESSION_SESSION_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "core/base/interrupt.h"
#include "core/session/session.h"
#include "transports/control/socket.h"
#include "transports/fake/fake_device.h"

namespace verbscope {

inline Plan SmallPlan() {
  Plan plan;
  plan.iterations = 200;
  plan.warmup_iterations = 20;
  return plan;
}

// Opens a fake device of a kind of the test's own.
template <class AnyDevice>
class ProviderOf : public FakeProvider {
 public:
  ProviderOf(std::shared_ptr<FakeFabric> fabric, const FakeDeviceOptions& device)
      : FakeProvider(fabric, {device}), fabric_(std::move(fabric)), device_(device) {}
  Expected<std::unique_ptr<Device>> Open(const std::string& /*name*/) override {
    return std::make_unique<AnyDevice>(fabric_, device_);
  }

 private:
  const std::shared_ptr<FakeFabric> fabric_;
  const FakeDeviceOptions device_;
};

// One end of a session under test.
struct SessionEnd {
  DeviceProvider& provider;
  Interrupt& interrupt;
  LocalSettings settings = {};
};

struct SessionOutcome {
  Record requester;
  Record responder;
};

inline SessionContext ContextOf(DeviceProvider& provider, Interrupt& interrupt) {
  return {.provider = provider, .interrupt = interrupt, .notice = [](const std::string&) {}};
}

// Two ends of a control connection whose hello is done.
inline std::pair<Connection, Connection> ConnectedPair() {
  auto pair = MakePair();
  EXPECT_TRUE(pair);
  Connection a(std::move(pair->first));
  Connection b(std::move(pair->second));
  a.MarkIdentified();
  b.MarkIdentified();
  return {std::move(a), std::move(b)};
}

// Both roles, the responder on a thread of its own.
inline SessionOutcome RunSession(const Plan& plan, const SessionEnd& requester,
                                 const SessionEnd& responder, const PeerSettings& peer = {},
                                 const ServerLimits& limits = {}) {
  auto [client, server] = ConnectedPair();
  SessionOutcome outcome;
  std::thread thread([&, connection = std::move(server)]() mutable {
    ResponderOptions options;
    options.settings = responder.settings;
    options.limits = limits;
    options.control_path.loopback = true;
    RunResponder(std::move(connection), ContextOf(responder.provider, responder.interrupt), options,
                 outcome.responder);
  });
  RequesterOptions options;
  options.plan = plan;
  options.settings = requester.settings;
  options.peer = peer;
  options.control_path.loopback = true;
  RunRequester(std::move(client), ContextOf(requester.provider, requester.interrupt), options,
               outcome.requester);
  thread.join();
  return outcome;
}

class SessionTest : public testing::Test {
 protected:
  using Outcome = SessionOutcome;

  Outcome RunBoth(const Plan& plan, LocalSettings requester = {}, LocalSettings responder = {}) {
    return RunSession(plan,
                      {.provider = requester_provider_,
                       .interrupt = requester_interrupt_,
                       .settings = std::move(requester)},
                      {.provider = responder_provider_,
                       .interrupt = responder_interrupt_,
                       .settings = std::move(responder)},
                      peer_settings_, limits_);
  }

  std::shared_ptr<FakeFabric> fabric_ = std::make_shared<FakeFabric>();
  FakeProvider requester_provider_{fabric_, {DefaultFakeDevice("fake0", 1)}};
  FakeProvider responder_provider_{fabric_, {DefaultFakeDevice("fake1", 2)}};
  Interrupt requester_interrupt_;
  Interrupt responder_interrupt_;
  ServerLimits limits_;
  PeerSettings peer_settings_;
};

inline uint64_t Samples(const Record& record, const std::string& side) {
  uint64_t samples = 0;
  for (const Result& result : record.results) {
    if (result.side == side && result.metrics.latency) samples += result.metrics.latency->samples;
  }
  return samples;
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_SESSION_TEST_UTIL_H_
