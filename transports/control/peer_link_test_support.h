// What the tests of PeerLink share: a link whose peer is played by the test, and a signal to await.
#ifndef VERBSCOPE_TRANSPORTS_CONTROL_PEER_LINK_TEST_SUPPORT_H_
#define VERBSCOPE_TRANSPORTS_CONTROL_PEER_LINK_TEST_SUPPORT_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "transports/control/peer_link.h"
#include "transports/control/test_support.h"

namespace verbscope::control_test {

// Options under which only what a test does can lose the peer.
inline PeerLinkOptions Patient() {
  PeerLinkOptions options;
  options.silence_limit = std::chrono::minutes(1);
  return options;
}

inline PeerLinkOptions Impatient() {
  PeerLinkOptions options;
  options.heartbeat_interval = std::chrono::milliseconds(5);
  options.silence_limit = std::chrono::milliseconds(40);
  return options;
}

inline std::unique_ptr<PeerLink> LinkOn(Connection connection,
                                        const PeerLinkOptions& options = Patient()) {
  auto link = PeerLink::Start(std::move(connection), options);
  EXPECT_TRUE(link.has_value());
  return std::move(*link);
}

// A link at one end; the test plays the peer at the other.
struct LinkAndPeer {
  explicit LinkAndPeer(const PeerLinkOptions& options = Patient(),
                       std::pair<Connection, Connection> ends = ConnectedPair())
      : peer(std::move(ends.second)), link(LinkOn(std::move(ends.first), options)) {}

  // The next frame from the link that is no heartbeat.
  nlohmann::json NextFrame() {
    while (true) {
      auto frame = peer.Receive(Late());
      if (!frame) return {{"type", "none: " + frame.error().message}};
      if ((*frame)["type"] != "heartbeat") return std::move(*frame);
    }
  }
  void Say(const nlohmann::json& frame) { EXPECT_TRUE(peer.Send(frame, Late()).has_value()); }

  Connection peer;
  std::unique_ptr<PeerLink> link;
};

inline Error ErrorOf(const Expected<nlohmann::json>& received) {
  EXPECT_FALSE(received.has_value());
  return received ? Error{} : received.error();
}

// Set once, awaited by the test.
class Signal {
 public:
  std::function<void()> Setter() {
    return [this] {
      ++count_;
      if (count_ == 1) first_.set_value();
    };
  }
  void Await() {
    ASSERT_EQ(first_.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  }
  int count() const { return count_; }

 private:
  std::atomic<int> count_ = 0;
  std::promise<void> first_;
};

}  // namespace verbscope::control_test

#endif  // VERBSCOPE_TRANSPORTS_CONTROL_PEER_LINK_TEST_SUPPORT_H_
