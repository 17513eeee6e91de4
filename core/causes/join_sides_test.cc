#include "core/causes/join_sides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Error Completion(const std::string& status) {
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message = "a request ended with " + status;
  error.cause = "cause of " + status;
  error.next_step = "check for " + status;
  error.status = status;
  return error;
}

Error Finding(ErrorClass error_class, const std::string& message) {
  Error error;
  error.error_class = error_class;
  error.message = message;
  return error;
}

// "I stopped because you told me", "I lost you": seen by the other, not by whoever reports it.
Error Echo(const std::string& message) {
  Error error = Finding(ErrorClass::kRun, message);
  error.side = Side::kPeer;
  return error;
}

TEST(JoinSidesTest, ShortReceiveIsOneFaultWhicheverSideAsks) {
  const Error receiver = Completion("LOC_LEN_ERR");
  const Error sender = Completion("REM_INV_REQ_ERR");

  const Error at_receiver = JoinSides(receiver, sender);
  EXPECT_EQ(at_receiver.status, "LOC_LEN_ERR");
  EXPECT_EQ(at_receiver.side, Side::kLocal);
  EXPECT_EQ(at_receiver.message,
            "a request ended with LOC_LEN_ERR; the peer saw the same fault as REM_INV_REQ_ERR");
  EXPECT_EQ(at_receiver.cause, "cause of LOC_LEN_ERR");

  const Error at_sender = JoinSides(sender, receiver);
  EXPECT_EQ(at_sender.status, "LOC_LEN_ERR");
  EXPECT_EQ(at_sender.side, Side::kPeer);
  EXPECT_EQ(at_sender.message,
            "the peer reports: a request ended with LOC_LEN_ERR; this side saw the same fault as "
            "REM_INV_REQ_ERR");
  EXPECT_THAT(at_sender.cause, HasSubstr("cause of LOC_LEN_ERR"));
  EXPECT_THAT(at_sender.next_step, AllOf(HasSubstr("peer"), HasSubstr("check for LOC_LEN_ERR")));
}

TEST(JoinSidesTest, BothSidesNameTheSameCauseForEveryPairOfStatuses) {
  const std::string statuses[] = {"LOC_LEN_ERR",  "LOC_PROT_ERR",   "LOC_ACCESS_ERR",
                                  "WR_FLUSH_ERR", "REM_ACCESS_ERR", "REM_INV_REQ_ERR",
                                  "REM_OP_ERR",   "RETRY_EXC_ERR",  "RNR_RETRY_EXC_ERR",
                                  "FATAL_ERR",    "STATUS_99"};
  for (const std::string& a : statuses) {
    for (const std::string& b : statuses) {
      EXPECT_EQ(JoinSides(Completion(a), Completion(b)).status,
                JoinSides(Completion(b), Completion(a)).status)
          << a << " " << b;
    }
  }
}

TEST(JoinSidesTest, EchoOfThePeerAddsNothing) {
  const Error own = Completion("REM_ACCESS_ERR");
  for (const char* message : {"the other side told this one to stop", "the other side is gone"}) {
    const Error joined = JoinSides(own, Echo(message));
    EXPECT_EQ(joined.message, own.message);
    EXPECT_EQ(joined.side, Side::kLocal);
    EXPECT_EQ(joined.cause, own.cause);
  }
}

TEST(JoinSidesTest, OwnEchoGivesWayToWhatThePeerSaw) {
  const Error joined = JoinSides(Echo("the peer stopped the run"), Completion("RETRY_EXC_ERR"));
  EXPECT_EQ(joined.status, "RETRY_EXC_ERR");
  EXPECT_EQ(joined.side, Side::kPeer);
  EXPECT_THAT(joined.message, StartsWith("the peer reports: a request ended with RETRY_EXC_ERR"));
  EXPECT_THAT(joined.message, Not(HasSubstr("stopped the run")));
}

TEST(JoinSidesTest, TwoEchoesKeepTheOwnOne) {
  const Error joined = JoinSides(Echo("the peer is gone"), Echo("the other side is gone"));
  EXPECT_EQ(joined.message, "the peer is gone");
}

TEST(JoinSidesTest, FlushAddsNothingToARealError) {
  const Error joined = JoinSides(Completion("REM_ACCESS_ERR"), Completion("WR_FLUSH_ERR"));
  EXPECT_EQ(joined.message, "a request ended with REM_ACCESS_ERR");
}

TEST(JoinSidesTest, FlushHereGivesWayToThePeersFinding) {
  const Error joined = JoinSides(Completion("WR_FLUSH_ERR"),
                                 Finding(ErrorClass::kRun, "asynchronous event QP_FATAL"));
  EXPECT_THAT(joined.message, HasSubstr("QP_FATAL"));
  EXPECT_EQ(joined.side, Side::kPeer);
}

// The silence may well be the consequence of the other's fault.
TEST(JoinSidesTest, SilenceGivesWayToWhatWasSeenOnTheSpot) {
  const Error joined = JoinSides(Completion("RETRY_EXC_ERR"), Completion("LOC_PROT_ERR"));
  EXPECT_EQ(joined.status, "LOC_PROT_ERR");
  EXPECT_THAT(joined.message, HasSubstr("this side reports RETRY_EXC_ERR"));
}

TEST(JoinSidesTest, SameStatusOnBothSidesIsSaidOnce) {
  const Error joined = JoinSides(Completion("RETRY_EXC_ERR"), Completion("RETRY_EXC_ERR"));
  EXPECT_EQ(joined.message, "a request ended with RETRY_EXC_ERR; the peer saw it too");
  EXPECT_EQ(joined.side, Side::kLocal);
}

TEST(JoinSidesTest, InterruptionOfThePeerIsTheCauseAndABrokenRunHere) {
  const Error joined = JoinSides(Completion("RETRY_EXC_ERR"),
                                 Finding(ErrorClass::kInterrupted, "interrupted by SIGINT"));
  EXPECT_EQ(joined.error_class, ErrorClass::kRun);
  EXPECT_EQ(joined.side, Side::kPeer);
  EXPECT_THAT(joined.message, StartsWith("the peer reports: interrupted by SIGINT"));
  EXPECT_THAT(joined.message, Not(HasSubstr("RETRY_EXC_ERR")));
}

TEST(JoinSidesTest, InterruptionHereKeepsItsClass) {
  const Error joined =
      JoinSides(Finding(ErrorClass::kInterrupted, "interrupted"), Completion("RETRY_EXC_ERR"));
  EXPECT_EQ(joined.error_class, ErrorClass::kInterrupted);
  EXPECT_EQ(joined.message, "interrupted");
}

TEST(JoinSidesTest, OtherFindingOfThePeerIsAppendedWithItsText) {
  const Error joined =
      JoinSides(Completion("REM_OP_ERR"), Finding(ErrorClass::kDeadline, "deadline passed"));
  EXPECT_EQ(joined.status, "REM_OP_ERR");
  EXPECT_THAT(joined.message, HasSubstr("the peer reports: deadline passed"));
}

TEST(JoinSidesTest, MissingCauseIsTakenFromTheOtherSide) {
  Error own = Completion("LOC_LEN_ERR");
  own.cause.clear();
  own.next_step.clear();
  const Error joined = JoinSides(own, Completion("REM_INV_REQ_ERR"));
  EXPECT_EQ(joined.cause, "cause of REM_INV_REQ_ERR");
  EXPECT_EQ(joined.next_step, "check for REM_INV_REQ_ERR");
}

}  // namespace
}  // namespace verbscope
