#include "transports/control/client_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <vector>

#include "transports/control/test_support.h"

namespace verbscope {
namespace {

using control_test::ConnectTo;
using control_test::Contains;
using control_test::Late;
using control_test::ListenOn;
using control_test::ReadToEnd;
using control_test::SendRaw;
using nlohmann::json;
using std::chrono::milliseconds;

LocalHello Local() {
  LocalHello local;
  local.tool_version = "0.1.0";
  return local;
}

json Hello() {
  return {{"type", "hello"},
          {"magic", "verbscope"},
          {"protocol", {{"min", 1}, {"max", 1}}},
          {"tool", {{"name", "verbscope"}, {"version", "0.1.0"}}}};
}

json Queued(int position) { return {{"type", "queued"}, {"position", position}}; }

// A queue under test. Its limits are out of reach unless a test sets them.
class Room {
 public:
  explicit Room(ClientQueueOptions options = Patient()) {
    options.on_rejected = [this](const std::string&, const Error& error) {
      const std::lock_guard lock(mutex_);
      rejections_.push_back(error.message);
      changed_.notify_all();
    };
    auto queue = ClientQueue::Start(ListenOn("127.0.0.1"), options);
    EXPECT_TRUE(queue.has_value());
    queue_ = std::move(*queue);
  }

  static ClientQueueOptions Patient() {
    ClientQueueOptions options;
    options.local = Local();
    options.hello_timeout = std::chrono::minutes(1);
    options.queued_interval = std::chrono::minutes(1);
    return options;
  }

  // A client that has said hello.
  Connection Client() {
    Connection client = ConnectTo(queue_->port());
    EXPECT_TRUE(client.Send(Hello(), Late()).has_value());
    return client;
  }
  Connection Stranger() { return ConnectTo(queue_->port()); }

  AcceptedClient Take() {
    auto client = queue_->Next(-1);
    EXPECT_TRUE(client.has_value());
    return std::move(*client);
  }

  // The message of the n-th rejection, counted from 0; waits for it.
  std::string Rejection(size_t n) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_until(lock, Late().when(), [&] { return rejections_.size() > n; });
    return came ? rejections_[n] : "no rejection";
  }

  ClientQueue& queue() { return *queue_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> rejections_;
  std::unique_ptr<ClientQueue> queue_;  // last: its thread uses the others
};

json Next(Connection& client) {
  auto frame = client.Receive(Late());
  return frame ? std::move(*frame) : json{{"type", "none: " + frame.error().message}};
}

std::string RefusalOf(Connection& client) {
  json frame = Next(client);
  while (frame["type"] == "queued") frame = Next(client);
  return frame["type"] == "refuse" ? frame["error"]["message"].get<std::string>() : frame.dump();
}

TEST(ClientQueueTest, AClientOfAnIdleServerIsServedWithoutAWordOfAQueue) {
  Room room;
  Connection client = room.Client();
  AcceptedClient taken = room.Take();
  EXPECT_EQ(taken.address, client.local_address().ToText());
  EXPECT_EQ(taken.hello.tool_version, "0.1.0");
  ASSERT_TRUE(SendServerHello(taken.connection, Local(), taken.hello, Late()).has_value());
  EXPECT_EQ(Next(client)["type"], "hello");
}

TEST(ClientQueueTest, WhoComesWhileAnotherIsServedHearsItsPlaceAndMovesUp) {
  Room room;
  Connection first = room.Client();
  const AcceptedClient serving = room.Take();
  Connection second = room.Client();
  EXPECT_EQ(Next(second), Queued(1));
  Connection third = room.Client();
  EXPECT_EQ(Next(third), Queued(2));
  EXPECT_EQ(room.Take().address, second.local_address().ToText());
  EXPECT_EQ(Next(third), Queued(1));
  EXPECT_EQ(room.Take().address, third.local_address().ToText());
}

TEST(ClientQueueTest, ThePlaceIsSaidAgainAtAnInterval) {
  ClientQueueOptions options = Room::Patient();
  options.queued_interval = milliseconds(1);
  Room room(options);
  Connection first = room.Client();
  const AcceptedClient serving = room.Take();
  Connection second = room.Client();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Next(second), Queued(1));
}

TEST(ClientQueueTest, TheDefaultIntervalKeepsAClientsHelloTimeoutFromPassing) {
  EXPECT_LE(3 * ClientQueueOptions().queued_interval, kHelloTimeout);
}

TEST(ClientQueueTest, TheClientHandshakeWaitsInTheQueueAndIsServed) {
  Room room;
  Connection first = room.Client();
  const AcceptedClient serving = room.Take();
  ClientHandshakeOptions options;
  options.local = Local();
  options.hello_timeout = std::chrono::seconds(30);
  std::promise<int> queued;
  options.on_queued = [&queued](int position) { queued.set_value(position); };
  Connection second = room.Stranger();
  auto handshake = std::async(std::launch::async, [&] { return ClientHandshake(second, options); });
  EXPECT_EQ(queued.get_future().get(), 1);
  AcceptedClient taken = room.Take();
  ASSERT_TRUE(SendServerHello(taken.connection, Local(), taken.hello, Late()).has_value());
  EXPECT_TRUE(handshake.get().has_value());
}

TEST(ClientQueueTest, AWaitingClientThatGoesAwayIsNoticedAndOthersMoveUp) {
  Room room;
  Connection first = room.Client();
  const AcceptedClient serving = room.Take();
  std::optional<Connection> second = room.Client();
  EXPECT_EQ(Next(*second), Queued(1));
  Connection third = room.Client();
  EXPECT_EQ(Next(third), Queued(2));
  second.reset();
  EXPECT_TRUE(Contains(room.Rejection(0), "closed the connection"));
  EXPECT_EQ(Next(third), Queued(1));
}

TEST(ClientQueueTest, ClientsAreServedInTheOrderOfTheirHellos) {
  Room room;
  Connection first = room.Client();
  const AcceptedClient serving = room.Take();
  Connection slow = room.Stranger();
  Connection quick = room.Client();
  EXPECT_EQ(Next(quick), Queued(1));
  ASSERT_TRUE(slow.Send(Hello(), Late()).has_value());
  EXPECT_EQ(Next(slow), Queued(2));
  EXPECT_EQ(room.Take().address, quick.local_address().ToText());
}

TEST(ClientQueueTest, StrangersAreToldAtOnceAndHoldUpNobody) {
  Room room;
  Connection silent = room.Stranger();
  Connection browser = room.Stranger();
  SendRaw(browser.fd(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(Contains(ReadToEnd(browser.fd()), "verbscope control protocol"));
  EXPECT_TRUE(Contains(room.Rejection(0), "speaks HTTP, not verbscope"));
  Connection perftest = room.Stranger();
  SendRaw(perftest.fd(), std::string("6.29") + std::string(12, '\0'));
  EXPECT_TRUE(Contains(ReadToEnd(perftest.fd()), "verbscope control protocol"));
  EXPECT_TRUE(Contains(room.Rejection(1), "is a perftest program"));
  Connection client = room.Client();
  EXPECT_EQ(room.Take().address, client.local_address().ToText());
}

TEST(ClientQueueTest, ALongForeignRequestDoesNotResetTheAnswerAway) {
  Room room;
  Connection browser = room.Stranger();
  SendRaw(browser.fd(), "POST / HTTP/1.1\r\n" + std::string(200'000, 'x'));
  EXPECT_TRUE(Contains(ReadToEnd(browser.fd()), "verbscope control protocol"));
}

TEST(ClientQueueTest, WhoSaysNothingIsDroppedAfterTheHelloTimeout) {
  ClientQueueOptions options = Room::Patient();
  options.hello_timeout = milliseconds(10);
  Room room(options);
  Connection silent = room.Stranger();
  EXPECT_TRUE(Contains(ReadToEnd(silent.fd()), "verbscope control protocol"));
  EXPECT_TRUE(Contains(room.Rejection(0), "sent no hello within 0.01 s"));
}

TEST(ClientQueueTest, WhoConnectsAndClosesIsReportedOnly) {
  Room room;
  { const Connection probe = room.Stranger(); }
  EXPECT_TRUE(Contains(room.Rejection(0), "closed the connection"));
}

TEST(ClientQueueTest, AnotherVersionIsRefusedWithBothNamed) {
  Room room;
  Connection client = room.Stranger();
  json hello = Hello();
  hello["protocol"] = {{"min", 7}, {"max", 8}};
  ASSERT_TRUE(client.Send(hello, Late()).has_value());
  const std::string refusal = RefusalOf(client);
  EXPECT_TRUE(Contains(refusal, "versions 7 to 8")) << refusal;
  EXPECT_TRUE(Contains(refusal, "version 1")) << refusal;
  EXPECT_EQ(room.Rejection(0), refusal);
}

TEST(ClientQueueTest, AWaitLongerThanTheQueueTimeoutIsRefused) {
  ClientQueueOptions options = Room::Patient();
  options.queue_timeout = milliseconds(20);
  Room room(options);
  Connection client = room.Client();
  EXPECT_TRUE(Contains(RefusalOf(client), "busy for 0.02 s"));
}

TEST(ClientQueueTest, MoreWaitingClientsThanAllowedAreRefused) {
  ClientQueueOptions options = Room::Patient();
  options.max_waiting = 2;
  Room room(options);
  Connection first = room.Client();
  const AcceptedClient serving = room.Take();
  Connection second = room.Client();
  EXPECT_EQ(Next(second), Queued(1));
  Connection third = room.Client();
  EXPECT_EQ(Next(third), Queued(2));
  Connection fourth = room.Client();
  EXPECT_TRUE(Contains(RefusalOf(fourth), "2 clients wait already"));
  EXPECT_EQ(room.Take().address, second.local_address().ToText());
}

TEST(ClientQueueTest, SilentConnectionsMakeRoomForNewOnes) {
  ClientQueueOptions options = Room::Patient();
  options.max_unidentified = 2;
  Room room(options);
  Connection oldest = room.Stranger();
  Connection silent = room.Stranger();
  Connection client = room.Stranger();
  EXPECT_TRUE(Contains(ReadToEnd(oldest.fd()), "verbscope control protocol"));
  EXPECT_TRUE(Contains(room.Rejection(0), "2 connections wait to be identified"));
  ASSERT_TRUE(client.Send(Hello(), Late()).has_value());
  EXPECT_EQ(room.Take().address, client.local_address().ToText());
}

TEST(ClientQueueTest, AClientThatSpeaksBeforeItsTurnIsRefused) {
  Room room;
  Connection first = room.Client();
  const AcceptedClient serving = room.Take();
  Connection client = room.Client();
  EXPECT_EQ(Next(client), Queued(1));
  ASSERT_TRUE(client.Send({{"type", "plan"}}, Late()).has_value());
  EXPECT_TRUE(Contains(RefusalOf(client), "before the server's hello"));
}

TEST(ClientQueueTest, InterruptEndsNextAndLeavesTheQueueUsable) {
  Room room;
  WakeEvent interrupt = *WakeEvent::Make();
  auto next = std::async(std::launch::async, [&] { return room.queue().Next(interrupt.fd()); });
  interrupt.Notify();
  const auto result = next.get();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().error_class, ErrorClass::kInterrupted);
  Connection client = room.Client();
  EXPECT_EQ(room.Take().address, client.local_address().ToText());
}

TEST(ClientQueueTest, StopWakesNextAndRefusesWhoWaits) {
  Room room;
  Connection first = room.Client();
  const AcceptedClient serving = room.Take();
  Connection waiting = room.Client();
  EXPECT_EQ(Next(waiting), Queued(1));
  room.queue().Stop();
  EXPECT_EQ(RefusalOf(waiting), "the server stops");
  EXPECT_FALSE(room.queue().Next(-1).has_value());
  Room empty;
  auto next = std::async(std::launch::async, [&] { return empty.queue().Next(-1); });
  empty.queue().Stop();
  EXPECT_EQ(next.get().error().error_class, ErrorClass::kInterrupted);
}

// Runs back to back, a tenth of the clients killed at some step: every other one is served.
TEST(ClientQueueTest, ManyClientsOneAfterTheOtherWithSomeKilledOnTheWay) {
  constexpr int kClients = 200;
  Room room;
  std::atomic<int> served = 0;
  auto server = std::async(std::launch::async, [&] {
    while (true) {
      auto client = room.queue().Next(-1);
      if (!client) return;
      if (!SendServerHello(client->connection, Local(), client->hello, Late())) continue;
      const auto frame = client->connection.Receive(Late());
      if (!frame) continue;
      if (client->connection.Send({{"type", "done"}}, Late())) ++served;
    }
  });
  for (int i = 0; i < kClients; ++i) {
    Connection client = room.Stranger();
    if (i % 20 == 7) continue;  // killed before its hello
    ASSERT_TRUE(client.Send(Hello(), Late()).has_value());
    if (i % 20 == 17) continue;  // killed while it waits or is being served
    json answer = Next(client);
    while (answer["type"] == "queued") answer = Next(client);
    ASSERT_EQ(answer["type"], "hello") << "client " << i << ": " << answer;
    ASSERT_TRUE(client.Send({{"type", "work"}}, Late()).has_value());
    ASSERT_EQ(Next(client)["type"], "done") << "client " << i;
  }
  room.queue().Stop();
  server.get();
  EXPECT_EQ(served, kClients - kClients / 10);
}

}  // namespace
}  // namespace verbscope
