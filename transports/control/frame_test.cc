#include "transports/control/frame.h"

#include <gtest/gtest.h>

#include <string>

namespace verbscope {
namespace {

using nlohmann::json;

std::string Framed(std::string_view body) {
  std::string bytes(4, '\0');
  bytes[1] = static_cast<char>(body.size() >> 16);
  bytes[2] = static_cast<char>(body.size() >> 8);
  bytes[3] = static_cast<char>(body.size());
  return bytes.append(body);
}

// The error of a decoder that was given these bytes at once; fails the test when there is none.
Error ErrorOf(FrameDecoder& decoder, std::string_view bytes) {
  decoder.Feed(bytes);
  const auto next = decoder.Next();
  EXPECT_FALSE(next.has_value());
  return next ? Error{} : next.error();
}

TEST(EncodeFrameTest, LengthIsFourBytesBigEndianBeforeTheText) {
  const auto bytes = EncodeFrame({{"type", "heartbeat"}});
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(*bytes, std::string("\x00\x00\x00\x14", 4) + R"({"type":"heartbeat"})");
}

TEST(EncodeFrameTest, InvalidUtf8IsReplacedAndNeverThrown) {
  const auto bytes = EncodeFrame({{"type", "x"}, {"host", "caf\xe9"}});
  ASSERT_TRUE(bytes.has_value());
  FrameDecoder decoder;
  decoder.Feed(*bytes);
  const auto frame = decoder.Next();
  ASSERT_TRUE(frame.has_value() && frame->has_value());
  EXPECT_EQ((**frame)["host"], "caf\xef\xbf\xbd");
}

TEST(EncodeFrameTest, TheLimitIsOneMebibyteOfText) {
  json frame = {{"type", "x"}, {"pad", ""}};
  const size_t empty = frame.dump().size();
  frame["pad"] = std::string(kMaxFrameBytes - empty, 'p');
  EXPECT_TRUE(EncodeFrame(frame).has_value());
  frame["pad"] = std::string(kMaxFrameBytes - empty + 1, 'p');
  const auto refused = EncodeFrame(frame);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().error_class, ErrorClass::kInternal);
  EXPECT_EQ(refused.error().message,
            "frame \"x\" has 1048577 bytes, more than the limit of 1048576");
}

TEST(EncodeFrameTest, WhatThePeerWouldRefuseIsRefusedHere) {
  EXPECT_FALSE(EncodeFrame(json::array({1})).has_value());
  EXPECT_FALSE(EncodeFrame({{"kind", "x"}}).has_value());
  EXPECT_FALSE(EncodeFrame({{"type", 1}}).has_value());
  json nested = 0;
  for (int i = 0; i < kMaxJsonDepth - 1; ++i) nested = json::array({nested});
  EXPECT_TRUE(EncodeFrame({{"type", "x"}, {"n", nested}}).has_value());
  EXPECT_FALSE(EncodeFrame({{"type", "x"}, {"n", json::array({nested})}}).has_value());
}

TEST(FrameDecoderTest, FramesComeOutAsSentHoweverTheStreamIsCut) {
  const json first = {{"type", "a"}, {"text", "ü \" \\ \n"}, {"n", -5}};
  const json second = {{"type", "b"}, {"list", {1.5, nullptr, true, json::object()}}};
  const std::string stream = *EncodeFrame(first) + *EncodeFrame(second);
  for (size_t step = 1; step <= stream.size(); ++step) {
    FrameDecoder decoder;
    std::vector<json> frames;
    for (size_t at = 0; at < stream.size(); at += step) {
      decoder.Feed(std::string_view(stream).substr(at, step));
      while (true) {
        auto next = decoder.Next();
        ASSERT_TRUE(next.has_value()) << next.error().message;
        if (!*next) break;
        frames.push_back(**next);
      }
    }
    ASSERT_EQ(frames, (std::vector<json>{first, second})) << "step " << step;
    EXPECT_FALSE(decoder.mid_frame());
  }
}

TEST(FrameDecoderTest, TellsWhenItHoldsAPartOfAFrame) {
  const std::string bytes = *EncodeFrame({{"type", "a"}});
  FrameDecoder decoder;
  EXPECT_FALSE(decoder.mid_frame());
  decoder.Feed(bytes.substr(0, 7));
  EXPECT_FALSE(decoder.Next()->has_value());
  EXPECT_TRUE(decoder.mid_frame());
  decoder.Feed(bytes.substr(7));
  EXPECT_TRUE(decoder.Next()->has_value());
  EXPECT_FALSE(decoder.mid_frame());
  EXPECT_EQ(decoder.last_frame_bytes(), bytes.size() - kFrameHeaderBytes);
}

TEST(FrameDecoderTest, AddressesAboveTwoToThe63AndWideIntegersAreExact) {
  FrameDecoder decoder;
  decoder.Feed(Framed(R"({"type":"e","big":18446744073709551615,"neg":-9223372036854775808})"));
  const auto frame = decoder.Next();
  ASSERT_TRUE(frame.has_value() && frame->has_value());
  EXPECT_EQ((**frame)["big"].get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ((**frame)["neg"].get<int64_t>(), INT64_MIN);
}

TEST(FrameDecoderTest, ForeignPeersAreRecognisedByTheirFirstBytes) {
  const struct {
    std::string bytes;
    ForeignPeer peer;
    std::string message;
  } kCases[] = {
      {"GET / HTTP/1.1\r\n\r\n", ForeignPeer::kHttp, "the peer speaks HTTP"},
      {"HTTP/1.1 400 Bad Request\r\n", ForeignPeer::kHttp, "the peer speaks HTTP"},
      {"PRI * HTTP/2.0\r\n\r\nSM", ForeignPeer::kHttp, "the peer speaks HTTP"},
      {"\x16\x03\x01\x02\x00\x01", ForeignPeer::kTls, "the peer speaks TLS"},
      {std::string("\x15\x03\x03\x00\x02\x02\x46", 7), ForeignPeer::kTls, "the peer speaks TLS"},
      {"SSH-2.0-OpenSSH_9.2p1\r\n", ForeignPeer::kSsh, "the peer speaks SSH"},
      {std::string("6.29\0\0\0\0\0\0\0\0\0\0\0\0", 16), ForeignPeer::kPerftest,
       "the peer is a perftest program (ib_send_lat, ib_write_bw and the like)"},
      {std::string("5.9\0", 4), ForeignPeer::kPerftest,
       "the peer is a perftest program (ib_send_lat, ib_write_bw and the like)"},
      {"hello?\n", ForeignPeer::kUnknown,
       "the peer sent bytes that are no verbscope frame (frame length 1751477356)"},
      {std::string(8, '\0'), ForeignPeer::kUnknown,
       "the peer sent bytes that are no verbscope frame (frame length 0)"},
      {std::string("\0\0\0\x08\x01", 5), ForeignPeer::kUnknown,
       "the peer sent bytes that are no verbscope frame (a body that starts with byte 0x01)"},
  };
  for (const auto& c : kCases) {
    FrameDecoder decoder;
    const Error error = ErrorOf(decoder, c.bytes);
    EXPECT_EQ(error.message, c.message);
    EXPECT_EQ(error.error_class, ErrorClass::kSetup);
    EXPECT_EQ(decoder.foreign(), c.peer) << c.message;
  }
}

TEST(FrameDecoderTest, ALengthAboveTheLimitIsRefusedBeforeTheBodyComes) {
  FrameDecoder decoder;
  EXPECT_EQ(ErrorOf(decoder, std::string("\x00\x10\x00\x01", 4)).message,
            "the peer sent bytes that are no verbscope frame (frame length 1048577)");
  FrameDecoder at_limit;
  at_limit.Feed(std::string("\x00\x10\x00\x00", 4));
  EXPECT_TRUE(at_limit.Next().has_value());
}

TEST(FrameDecoderTest, MalformedBodiesAreNamed) {
  const struct {
    std::string body;
    std::string detail;
  } kCases[] = {
      {R"({"type":"a")", "invalid JSON"},
      {R"({"type":"a"}x)", "invalid JSON"},
      {"{\"type\":\"\xff\"}", "invalid JSON"},
      {R"({"type":"a","n":1e999})", "invalid JSON"},
      {R"({"kind":"a"})", "no object with a string \"type\""},
      {R"({"type":5})", "no object with a string \"type\""},
      {R"({"type":"a","x":{"k":1,"j":2,"k":3}})", "key \"k\" twice"},
  };
  for (const auto& c : kCases) {
    FrameDecoder first;
    EXPECT_EQ(ErrorOf(first, Framed(c.body)).message,
              "the peer sent bytes that are no verbscope frame (" + c.detail + ")");
    FrameDecoder later;
    later.Feed(Framed(R"({"type":"good"})"));
    EXPECT_TRUE(later.Next()->has_value());
    const Error error = ErrorOf(later, Framed(c.body));
    EXPECT_EQ(error.message, "the peer sent a malformed frame: " + c.detail);
    EXPECT_EQ(error.error_class, ErrorClass::kRun);
    EXPECT_EQ(later.foreign(), ForeignPeer::kNone);
  }
}

TEST(FrameDecoderTest, TheSameKeyInDifferentObjectsIsFine) {
  FrameDecoder decoder;
  decoder.Feed(Framed(R"({"type":"a","x":{"type":1,"l":[{"k":1},{"k":2}]},"k":0})"));
  EXPECT_TRUE(decoder.Next()->has_value());
}

TEST(FrameDecoderTest, NestingIsBoundedBeforeTheParserRuns) {
  const auto nested = [](int depth) {
    const auto n = static_cast<size_t>(depth - 1);
    return Framed(R"({"type":"a","s":"[[[[[[[[[[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[","n":)" +
                  std::string(n, '[') + std::string(n, ']') + "}");
  };
  FrameDecoder fits;
  fits.Feed(nested(kMaxJsonDepth));
  EXPECT_TRUE(fits.Next()->has_value());
  FrameDecoder deep;
  EXPECT_EQ(ErrorOf(deep, nested(kMaxJsonDepth + 1)).message,
            "the peer sent bytes that are no verbscope frame (JSON nested deeper than 32)");
  FrameDecoder bomb;
  ErrorOf(bomb, Framed("{\"type\":" + std::string(kMaxFrameBytes - 9, '[') + "}"));
}

TEST(FrameDecoderTest, AnErrorIsFinal) {
  FrameDecoder decoder;
  const Error error = ErrorOf(decoder, "GET / HTTP/1.1\r\n");
  EXPECT_EQ(ErrorOf(decoder, Framed(R"({"type":"good"})")).message, error.message);
  EXPECT_FALSE(decoder.mid_frame()) << "bytes after an error are not kept";
}

}  // namespace
}  // namespace verbscope
