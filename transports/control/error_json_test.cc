#include "transports/control/error_json.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace verbscope {
namespace {

using nlohmann::json;

TEST(ErrorJsonTest, EveryMemberSurvivesTheWay) {
  Error error;
  error.error_class = ErrorClass::kVerification;
  error.side = Side::kPeer;
  error.message = "ibv_modify_qp(RTR) failed: Invalid argument";
  error.cause = "GID 3 does not exist";
  error.next_step = "use --gid-index 1";
  error.status = "RETRY_EXC_ERR";
  error.errno_value = EINVAL;
  const Error back = ErrorFromWire(json::parse(ErrorToWire(error).dump()));
  EXPECT_EQ(back.error_class, error.error_class);
  EXPECT_EQ(back.side, error.side);
  EXPECT_EQ(back.message, error.message);
  EXPECT_EQ(back.cause, error.cause);
  EXPECT_EQ(back.next_step, error.next_step);
  EXPECT_EQ(back.status, error.status);
  EXPECT_EQ(back.errno_value, error.errno_value);
}

TEST(ErrorJsonTest, MissingMembersKeepTheirDefaults) {
  const Error error = ErrorFromWire({{"message", "m"}});
  EXPECT_EQ(error.message, "m");
  EXPECT_EQ(error.error_class, ErrorClass::kInternal);
  EXPECT_EQ(error.side, Side::kLocal);
  EXPECT_EQ(error.cause, "");
  EXPECT_EQ(error.errno_value, 0);
}

TEST(ErrorJsonTest, WhatIsNoErrorStillHasAMessage) {
  for (const json& value : {json::object(), json::array({1}), json("text"), json(nullptr)}) {
    EXPECT_EQ(ErrorFromWire(value).message, "an error without a message") << value;
  }
}

TEST(ErrorJsonTest, MembersOfAWrongTypeAreIgnored) {
  const Error error = ErrorFromWire({{"class", 3},
                                     {"side", json::array()},
                                     {"message", "m"},
                                     {"cause", 7.5},
                                     {"next_step", json::object()},
                                     {"errno", "EINVAL"}});
  EXPECT_EQ(error.message, "m");
  EXPECT_EQ(error.cause, "");
  EXPECT_EQ(error.next_step, "");
  EXPECT_EQ(error.errno_value, 0);
}

TEST(ErrorJsonTest, ErrnoOutsideItsRangeIsDropped) {
  EXPECT_EQ(ErrorFromWire({{"errno", 4095}}).errno_value, 4095);
  EXPECT_EQ(ErrorFromWire({{"errno", 4096}}).errno_value, 0);
  EXPECT_EQ(ErrorFromWire({{"errno", -1}}).errno_value, 0);
  EXPECT_EQ(ErrorFromWire({{"errno", UINT64_MAX}}).errno_value, 0);
  EXPECT_EQ(ErrorFromWire({{"errno", 1.5}}).errno_value, 0);
}

TEST(ErrorJsonTest, TextIsBoundedAndFreeOfTerminalControl) {
  const Error error =
      ErrorFromWire({{"message", std::string(5000, 'x')}, {"cause", "\x1b[2Jgone"}});
  EXPECT_EQ(error.message, std::string(kMaxErrorTextBytes, 'x'));
  EXPECT_EQ(error.cause, "[2Jgone");
}

}  // namespace
}  // namespace verbscope
