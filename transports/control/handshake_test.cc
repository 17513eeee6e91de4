#include "transports/control/handshake.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <future>
#include <vector>

#include "transports/control/test_support.h"

namespace verbscope {
namespace {

using control_test::CloseWithReset;
using control_test::ConnectedPair;
using control_test::Contains;
using control_test::Late;
using control_test::ReadToEnd;
using control_test::SendRaw;
using control_test::Soon;
using control_test::TcpPair;
using nlohmann::json;
using std::chrono::milliseconds;

LocalHello Local(int min = 1, int max = 1) {
  LocalHello local;
  local.protocol_min = min;
  local.protocol_max = max;
  local.tool_version = "0.1.0";
  return local;
}

ClientHandshakeOptions ClientOptions(LocalHello local = Local()) {
  ClientHandshakeOptions options;
  options.local = std::move(local);
  options.hello_timeout = std::chrono::seconds(30);
  return options;
}

json Hello() {
  return {{"type", "hello"},
          {"magic", "verbscope"},
          {"protocol", {{"min", 1}, {"max", 1}}},
          {"tool", {{"name", "verbscope"}, {"version", "0.1.0"}}},
          {"capabilities", json::array()}};
}

// Both sides of a handshake; client first.
std::pair<Expected<PeerHello>, Expected<PeerHello>> Shake(const LocalHello& client,
                                                          const LocalHello& server) {
  auto [a, b] = TcpPair();
  auto answer = std::async(std::launch::async,
                           [&b = b, &server] { return ServerHandshake(b, server, Late()); });
  auto asked = ClientHandshake(a, ClientOptions(client));
  return {std::move(asked), answer.get()};
}

TEST(HandshakeTest, BothSidesLearnVersionToolAndCapabilities) {
  LocalHello client = Local();
  client.tool_version = "0.2.0-rc1";
  client.capabilities = {"trace", "from-the-future"};
  LocalHello server = Local();
  server.capabilities = {"trace"};
  const auto [at_client, at_server] = Shake(client, server);
  ASSERT_TRUE(at_client.has_value()) << at_client.error().message;
  ASSERT_TRUE(at_server.has_value()) << at_server.error().message;
  EXPECT_EQ(at_server->tool_name, "verbscope");
  EXPECT_EQ(at_server->tool_version, "0.2.0-rc1");
  EXPECT_EQ(at_client->tool_version, "0.1.0");
  EXPECT_TRUE(at_server->Has("from-the-future"));
  EXPECT_TRUE(at_client->Has("trace"));
  EXPECT_FALSE(at_client->Has("from-the-future"));
}

TEST(HandshakeTest, TheHighestCommonVersionIsChosen) {
  const auto [at_client, at_server] = Shake(Local(1, 5), Local(2, 3));
  ASSERT_TRUE(at_client.has_value() && at_server.has_value());
  EXPECT_EQ(at_client->protocol, 3);
  EXPECT_EQ(at_server->protocol, 3);
}

TEST(HandshakeTest, WithoutACommonVersionBothSidesNameBoth) {
  for (const auto& [client, server] :
       {std::pair(Local(1, 2), Local(3, 4)), std::pair(Local(3, 4), Local(1, 2))}) {
    const auto [at_client, at_server] = Shake(client, server);
    ASSERT_FALSE(at_client.has_value());
    ASSERT_FALSE(at_server.has_value());
    for (const Error& error : {at_client.error(), at_server.error()}) {
      EXPECT_EQ(error.error_class, ErrorClass::kSetup);
      EXPECT_TRUE(Contains(error.message, "versions 1 to 2")) << error.message;
      EXPECT_TRUE(Contains(error.message, "versions 3 to 4")) << error.message;
      EXPECT_TRUE(Contains(error.message, "verbscope 0.1.0")) << error.message;
    }
    EXPECT_EQ(at_client.error().side, Side::kPeer);
  }
}

TEST(HandshakeTest, ErrorsAfterItAreThoseOfARun) {
  auto [a, b] = TcpPair();
  auto answer =
      std::async(std::launch::async, [&c = b] { return ServerHandshake(c, Local(), Late()); });
  ASSERT_TRUE(ClientHandshake(a, ClientOptions()).has_value());
  ASSERT_TRUE(answer.get().has_value());
  EXPECT_EQ(a.Receive(Soon()).error().error_class, ErrorClass::kRun);
  EXPECT_EQ(b.Receive(Soon()).error().error_class, ErrorClass::kRun);
}

TEST(ReadClientHelloTest, UnknownMembersAreIgnored) {
  json hello = Hello();
  hello["new"] = {{"thing", 1}};
  hello["tool"]["build"] = "abc";
  EXPECT_TRUE(ReadClientHello(hello, Local()).has_value());
}

TEST(ReadClientHelloTest, CapabilitiesAreOptional) {
  json hello = Hello();
  hello.erase("capabilities");
  EXPECT_TRUE(ReadClientHello(hello, Local()).has_value());
  hello["capabilities"] = {1, "a", nullptr};
  EXPECT_EQ(ReadClientHello(hello, Local())->capabilities, std::vector<std::string>{"a"});
}

TEST(ReadClientHelloTest, MissingOrWrongMembersAreRefusedByName) {
  const auto refused = [](const char* member, const json& value) {
    json hello = Hello();
    if (value.is_discarded()) {
      hello.erase(member);
    } else {
      hello[member] = value;
    }
    const auto read = ReadClientHello(hello, Local());
    return read ? "accepted " + value.dump() : read.error().message;
  };
  for (const json& value : {json(json::value_t::discarded), json("other"), json(7)}) {
    EXPECT_EQ(refused("magic", value), "the peer's hello has no valid \"magic\"");
  }
  for (const json& value :
       {json(json::value_t::discarded), json(1), json::object(), json{{"min", 1}},
        json{{"min", 2}, {"max", 1}}, json{{"min", 0}, {"max", 1}}, json{{"min", 1}, {"max", "1"}},
        json{{"min", -1}, {"max", 1}}, json{{"min", 1}, {"max", 1e3}},
        json{{"min", 1}, {"max", UINT64_MAX}}}) {
    EXPECT_EQ(refused("protocol", value), "the peer's hello has no valid \"protocol\"");
  }
  for (const json& value : {json(json::value_t::discarded), json("verbscope"),
                            json{{"name", "verbscope"}}, json{{"name", 1}, {"version", 2}}}) {
    EXPECT_EQ(refused("tool", value), "the peer's hello has no valid \"tool\"");
  }
  EXPECT_EQ(refused("type", "plan"), "protocol: expected \"hello\" first, got \"plan\"");
}

TEST(ReadClientHelloTest, TextOfThePeerIsBoundedAndSafeToPrint) {
  json hello = Hello();
  hello["tool"] = {{"name", "\x1b[2Jverb"}, {"version", std::string(500, '9')}};
  hello["capabilities"] = std::vector<std::string>(1000, std::string(1000, 'c'));
  const auto read = ReadClientHello(hello, Local());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->tool_name, "[2Jverb");
  EXPECT_EQ(read->tool_version, std::string(64, '9'));
  EXPECT_EQ(read->capabilities, std::vector<std::string>(64, std::string(64, 'c')));
}

TEST(ClientHandshakeTest, EachQueuedRefreshesTheDeadlineAndIsTold) {
  auto [a, b] = TcpPair();
  ClientHandshakeOptions options = ClientOptions();
  std::vector<int> positions;
  std::promise<void> both;
  options.on_queued = [&](int position) {
    positions.push_back(position);
    if (positions.size() == 2) both.set_value();
  };
  auto client = std::async(std::launch::async, [&, &c = a] { return ClientHandshake(c, options); });
  const auto hello = b.Receive(Late());
  ASSERT_TRUE(hello.has_value());
  ASSERT_TRUE(b.Send({{"type", "queued"}, {"position", 2}}, Late()).has_value());
  ASSERT_TRUE(b.Send({{"type", "queued"}, {"position", 1}}, Late()).has_value());
  both.get_future().wait();
  ASSERT_TRUE(SendServerHello(b, Local(), *ReadClientHello(*hello, Local()), Late()).has_value());
  EXPECT_TRUE(client.get().has_value());
  EXPECT_EQ(positions, (std::vector<int>{2, 1}));
}

TEST(ClientHandshakeTest, AServerThatSaysNothingIsASetupError) {
  auto [a, b] = TcpPair();
  ClientHandshakeOptions options = ClientOptions();
  options.hello_timeout = milliseconds(20);
  const auto hello = ClientHandshake(a, options);
  ASSERT_FALSE(hello.has_value());
  EXPECT_EQ(hello.error().error_class, ErrorClass::kSetup);
  EXPECT_EQ(hello.error().message, "server " + a.remote_address().ToText() +
                                       " accepted the connection but said nothing for 0.02 s");
  EXPECT_TRUE(Contains(hello.error().cause, "stopped process"));
}

TEST(ClientHandshakeTest, SilenceAfterQueuedEndsTheWait) {
  auto [a, b] = TcpPair();
  ClientHandshakeOptions options = ClientOptions();
  options.hello_timeout = milliseconds(20);
  ASSERT_TRUE(b.Send({{"type", "queued"}, {"position", 1}}, Late()).has_value());
  const auto hello = ClientHandshake(a, options);
  ASSERT_FALSE(hello.has_value());
  EXPECT_EQ(hello.error().errno_value, ETIMEDOUT);
}

TEST(ClientHandshakeTest, TheWaitInTheQueueCanBeInterrupted) {
  auto [a, b] = TcpPair();
  WakeEvent interrupt = *WakeEvent::Make();
  ClientHandshakeOptions options = ClientOptions();
  options.interrupt_fd = interrupt.fd();
  options.on_queued = [&interrupt](int) { interrupt.Notify(); };
  ASSERT_TRUE(b.Send({{"type", "queued"}, {"position", 1}}, Late()).has_value());
  const auto hello = ClientHandshake(a, options);
  ASSERT_FALSE(hello.has_value());
  EXPECT_EQ(hello.error().error_class, ErrorClass::kInterrupted);
}

TEST(ClientHandshakeTest, ARefusalCarriesTheServersReason) {
  auto [a, b] = TcpPair();
  ASSERT_TRUE(b.Send({{"type", "refuse"},
                      {"error", {{"class", "run"}, {"message", "busy"}, {"next_step", "wait"}}}},
                     Late())
                  .has_value());
  const auto hello = ClientHandshake(a, ClientOptions());
  ASSERT_FALSE(hello.has_value());
  EXPECT_EQ(hello.error().error_class, ErrorClass::kSetup) << "a refusal is exit code 2";
  EXPECT_EQ(hello.error().side, Side::kPeer);
  EXPECT_EQ(hello.error().message, "server " + a.remote_address().ToText() + " refused: busy");
  EXPECT_EQ(hello.error().next_step, "wait");
}

TEST(ClientHandshakeTest, ForeignServersAreNamed) {
  const std::pair<std::string, std::string> kCases[] = {
      {"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks HTTP, not verbscope"},
      {"SSH-2.0-OpenSSH_9.2p1\r\n", "speaks SSH, not verbscope"},
      {std::string("6.29") + std::string(12, '\0'), "is a perftest program"},
      {std::string("\x15\x03\x01\x00\x02\x02\x46", 7), "speaks TLS, not verbscope"},
      {"220 mail.example ESMTP\r\n", "no verbscope frame"},
  };
  for (const auto& [bytes, what] : kCases) {
    auto [a, b] = TcpPair();
    SendRaw(b.fd(), bytes);
    const auto hello = ClientHandshake(a, ClientOptions());
    ASSERT_FALSE(hello.has_value());
    EXPECT_EQ(hello.error().error_class, ErrorClass::kSetup);
    EXPECT_TRUE(Contains(hello.error().message, what)) << hello.error().message;
    EXPECT_TRUE(Contains(hello.error().next_step, "verbscope serve"));
  }
}

TEST(ClientHandshakeTest, AServerThatClosesWithoutAWordMayBePerftest) {
  auto [a, b] = TcpPair();
  b.Shutdown(/*both=*/false);
  const auto closed = ClientHandshake(a, ClientOptions());
  ASSERT_FALSE(closed.has_value());
  EXPECT_EQ(closed.error().error_class, ErrorClass::kSetup);
  EXPECT_TRUE(Contains(closed.error().message, "closed the connection"));
  EXPECT_TRUE(Contains(closed.error().cause, "perftest"));

  auto [c, d] = TcpPair();
  CloseWithReset(std::move(d));
  EXPECT_EQ(WaitFd(c.fd(), POLLIN, Late(), -1), WaitResult::kReady);
  const auto reset = ClientHandshake(c, ClientOptions());
  ASSERT_FALSE(reset.has_value());
  EXPECT_TRUE(Contains(reset.error().message, "reset the connection"));
}

TEST(ClientHandshakeTest, AVersionThatThisSideDoesNotSpeakIsRefused) {
  auto [a, b] = TcpPair();
  json hello = Hello();
  hello["protocol"] = {{"min", 1}, {"max", 9}, {"chosen", 9}};
  ASSERT_TRUE(b.Send(hello, Late()).has_value());
  const auto at_client = ClientHandshake(a, ClientOptions());
  ASSERT_FALSE(at_client.has_value());
  EXPECT_TRUE(Contains(at_client.error().message, "chose protocol version 9"));
  EXPECT_TRUE(Contains(at_client.error().message, "speaks version 1"));
}

TEST(ServerHandshakeTest, AForeignClientReadsOneLineOfText) {
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
                                   std::string("6.29") + std::string(12, '\0')}) {
    auto [a, b] = TcpPair();
    SendRaw(a.fd(), bytes);
    const auto hello = ServerHandshake(b, Local(), Late());
    ASSERT_FALSE(hello.has_value());
    EXPECT_EQ(hello.error().error_class, ErrorClass::kSetup);
    const std::string farewell = ReadToEnd(a.fd());
    EXPECT_TRUE(Contains(farewell, "verbscope: this port speaks the verbscope control protocol"));
    EXPECT_EQ(farewell.find('\n'), farewell.size() - 1) << "one line";
  }
}

TEST(ServerHandshakeTest, AClientThatSaysNothingReadsWhereItIs) {
  auto [a, b] = TcpPair();
  const auto hello = ServerHandshake(b, Local(), Soon());
  ASSERT_FALSE(hello.has_value());
  EXPECT_EQ(hello.error().errno_value, ETIMEDOUT);
  EXPECT_TRUE(Contains(ReadToEnd(a.fd()), "verbscope control protocol"));
}

}  // namespace
}  // namespace verbscope
