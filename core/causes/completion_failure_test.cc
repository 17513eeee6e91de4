#include "core/causes/completion_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/causes/completion_status.h"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

CompletionFailure Failure(ibv_wc_status status) {
  CompletionFailure failure;
  failure.status = status;
  failure.vendor_err = 0x81;
  failure.wr_id = 7;
  failure.qp_num = 0x11;
  failure.remote_qp_num = 0x12;
  failure.op = "SEND";
  failure.size_bytes = 64;
  failure.message_number = 17;
  failure.qp_state = "ERR";
  failure.link_layer = LinkLayer::kEthernet;
  return failure;
}

TEST(ExplainCompletionTest, EveryStatusGetsNameMeaningCauseAndCheck) {
  for (int number = IBV_WC_LOC_LEN_ERR; number <= IBV_WC_TM_RNDV_INCOMPLETE; ++number) {
    const auto status = static_cast<ibv_wc_status>(number);
    const Error error = ExplainCompletion(Failure(status));
    SCOPED_TRACE(error.ToText());
    EXPECT_EQ(error.error_class, ErrorClass::kRun);
    EXPECT_EQ(error.side, Side::kLocal);
    EXPECT_EQ(error.status, NameOf(status));
    EXPECT_THAT(error.message, HasSubstr(error.status));
    EXPECT_FALSE(error.cause.empty());
    EXPECT_FALSE(error.next_step.empty());
    EXPECT_THAT(error.ToText(), Not(HasSubstr("\n")));
  }
}

TEST(ExplainCompletionTest, MessageHasRequestQueuePairsVendorErrorAndState) {
  const Error error = ExplainCompletion(Failure(IBV_WC_REM_ACCESS_ERR));
  EXPECT_EQ(error.message,
            "SEND of 64 bytes, message 17, on QP 0x000011 (peer's QP 0x000012) ended with "
            "REM_ACCESS_ERR: the peer's device refused access to the memory that the request "
            "names; noticed by the peer's device, by a NAK (vendor error 0x81, wr_id 7, QP state "
            "ERR)");
}

TEST(ExplainCompletionTest, WhatIsNotKnownIsLeftOut) {
  CompletionFailure failure;
  failure.status = IBV_WC_FATAL_ERR;
  failure.qp_num = 0x11;
  const Error error = ExplainCompletion(failure);
  EXPECT_THAT(error.message, HasSubstr("request on QP 0x000011 ended with FATAL_ERR"));
  EXPECT_THAT(error.message, Not(HasSubstr("bytes")));
  EXPECT_THAT(error.message, Not(HasSubstr("QP state")));
  EXPECT_THAT(error.message, Not(HasSubstr("flushed")));
}

TEST(ExplainCompletionTest, ZeroBytesAreAKnownSize) {
  CompletionFailure failure = Failure(IBV_WC_REM_ACCESS_ERR);
  failure.size_bytes = 0;
  EXPECT_THAT(ExplainCompletion(failure).message, HasSubstr("SEND of 0 bytes"));
}

TEST(ExplainCompletionTest, FlushedRequestsAreCountedInOnePlace) {
  CompletionFailure failure = Failure(IBV_WC_REM_ACCESS_ERR);
  failure.flushed = 127;
  EXPECT_THAT(ExplainCompletion(failure).message, HasSubstr("127 more flushed"));
}

TEST(ExplainCompletionTest, SilenceFromTheStartOnEthernetNamesThePortAndTheGids) {
  CompletionFailure failure = Failure(IBV_WC_RETRY_EXC_ERR);
  failure.gid_pair = "index 3 (10.0.0.1) to index 1 (10.0.0.2)";
  const Error error = ExplainCompletion(failure);
  EXPECT_THAT(error.cause, AllOf(HasSubstr("no packet ever came back"), HasSubstr("UDP port 4791"),
                                 HasSubstr(failure.gid_pair)));
  EXPECT_THAT(error.next_step, AllOf(HasSubstr("4791"), HasSubstr("--gid-index")));
}

TEST(ExplainCompletionTest, SilenceFromTheStartOnInfiniBandNamesTheFabric) {
  CompletionFailure failure = Failure(IBV_WC_RETRY_EXC_ERR);
  failure.link_layer = LinkLayer::kInfiniBand;
  const Error error = ExplainCompletion(failure);
  EXPECT_THAT(error.cause, AllOf(HasSubstr("no packet ever came back"), HasSubstr("LID")));
  EXPECT_THAT(error.cause, Not(HasSubstr("4791")));
}

TEST(ExplainCompletionTest, SilenceAfterSuccessSpeaksOfThePeerAndOfLoss) {
  CompletionFailure failure = Failure(IBV_WC_RETRY_EXC_ERR);
  failure.completions_before = 1000;
  const Error error = ExplainCompletion(failure);
  EXPECT_THAT(error.cause, AllOf(HasSubstr("1000 completions"), HasSubstr("lost on the way")));
  EXPECT_THAT(error.cause, Not(HasSubstr("no packet ever came back")));
  EXPECT_THAT(error.cause, Not(HasSubstr("path MTU")));  // 64 bytes pass with any
}

TEST(ExplainCompletionTest, SilenceOfALargeMessageSuspectsThePathMtu) {
  CompletionFailure failure = Failure(IBV_WC_RETRY_EXC_ERR);
  failure.completions_before = 1000;
  failure.size_bytes = 8192;
  failure.path_mtu_bytes = 4096;
  const Error error = ExplainCompletion(failure);
  EXPECT_THAT(error.cause, HasSubstr("less than the path MTU 4096"));
  EXPECT_THAT(error.next_step, HasSubstr("--mtu 256"));
}

// No completion of that size, or only the peer's own message on its way here.
TEST(ExplainCompletionTest, LargerPacketsThatAreLostNameTheLimit) {
  CompletionFailure failure = Failure(IBV_WC_RETRY_EXC_ERR);
  failure.size_bytes = 2048;
  failure.path_mtu_bytes = 4096;
  failure.passed_bytes = 1024;
  for (const uint64_t completions : {0, 1}) {
    failure.completions_before = completions;
    failure.message_number = 1;
    const Error error = ExplainCompletion(failure);
    EXPECT_EQ(
        error.cause,
        "messages up to 1024 bytes passed, 2048 bytes did not: packets with 2048 bytes of "
        "payload are lost on the path, which carries less than the path MTU 4096; or the peer "
        "died, or closed its queue pair, just then");
    EXPECT_EQ(error.next_step,
              "check the MTU of every switch and interface on the path, or run with --mtu 1024; or "
              "read the report of the other side");
  }
}

TEST(ExplainCompletionTest, TheLimitIsOfPacketsAndTheProposedMtuIsOneThatPassed) {
  CompletionFailure failure = Failure(IBV_WC_RETRY_EXC_ERR);
  failure.message_number = 1;
  failure.path_mtu_bytes = 4096;
  struct Row {
    uint64_t passed, size;
    const char* mtu;
  };
  for (const Row& row :
       {Row{0, 512, "--mtu 256"}, Row{1000, 65536, "--mtu 512"}, Row{3000, 4000, "--mtu 2048"}}) {
    failure.passed_bytes = row.passed;
    failure.size_bytes = row.size;
    EXPECT_THAT(ExplainCompletion(failure).next_step, HasSubstr(row.mtu)) << row.size;
  }
  EXPECT_THAT(ExplainCompletion(failure).cause, HasSubstr("packets with 4000 bytes"));
}

// Nothing smaller could be proposed.
TEST(ExplainCompletionTest, TheSmallestPathMtuIsNoSuspect) {
  CompletionFailure failure = Failure(IBV_WC_RETRY_EXC_ERR);
  failure.message_number = 1;
  failure.path_mtu_bytes = 256;
  failure.size_bytes = 1024;
  for (const std::optional<uint64_t> passed : {std::optional<uint64_t>(), {128}, {512}}) {
    failure.passed_bytes = passed;
    EXPECT_THAT(ExplainCompletion(failure).next_step, Not(HasSubstr("--mtu")));
    EXPECT_THAT(ExplainCompletion(failure).cause, Not(HasSubstr("less than the path MTU")));
  }
}

TEST(ExplainCompletionTest, WhenPacketsAsLargePassedThePathMtuIsNoSuspect) {
  CompletionFailure failure = Failure(IBV_WC_RETRY_EXC_ERR);
  failure.path_mtu_bytes = 4096;
  failure.passed_bytes = 4096;
  failure.size_bytes = 8192;
  failure.message_number = 1;
  const Error first = ExplainCompletion(failure);
  EXPECT_THAT(first.cause, AllOf(HasSubstr("the path worked for messages up to 4096 bytes"),
                                 Not(HasSubstr("path MTU")), Not(HasSubstr("no packet ever"))));
  // Of this size as well.
  failure.passed_bytes = 64;
  failure.completions_before = 100;
  failure.message_number = 101;
  EXPECT_THAT(ExplainCompletion(failure).cause,
              AllOf(HasSubstr("100 completions"), Not(HasSubstr("path MTU"))));
}

TEST(ExplainCompletionTest, SilenceFromTheStartOfALargeMessageMentionsThePathMtuAsWell) {
  CompletionFailure failure = Failure(IBV_WC_RETRY_EXC_ERR);
  EXPECT_THAT(ExplainCompletion(failure).cause, Not(HasSubstr("path MTU")));
  failure.size_bytes = 3000;
  failure.path_mtu_bytes = 4096;
  const Error error = ExplainCompletion(failure);
  EXPECT_THAT(error.cause, AllOf(HasSubstr("no packet ever came back"),
                                 HasSubstr("less than the path MTU 4096")));
  EXPECT_THAT(error.next_step, AllOf(HasSubstr("--mtu 256"), HasSubstr("--size 1:4096")));
}

TEST(ExplainCompletionTest, SilenceStatesTheTimeUntilTheDeviceGaveUp) {
  // 4.096 us * 2^14 * 7 = 470 ms; four times that on slow devices.
  EXPECT_THAT(ExplainCompletion(Failure(IBV_WC_RETRY_EXC_ERR)).message,
              HasSubstr("timeout code 14 and retry 6: 470 ms without an answer, up to 1.879 s"));
  CompletionFailure endless = Failure(IBV_WC_RETRY_EXC_ERR);
  endless.timeout_code = 0;
  EXPECT_THAT(ExplainCompletion(endless).message, HasSubstr("retry 6 with timeout code 0"));
}

TEST(ExplainCompletionTest, ReceiverNotReadyStatesTimerAndRetries) {
  const Error error = ExplainCompletion(Failure(IBV_WC_RNR_RETRY_EXC_ERR));
  EXPECT_THAT(error.message,
              HasSubstr("6 retries with RNR timer code 12 (640 us), at least 3.84 ms in all"));
  EXPECT_THAT(error.next_step, HasSubstr("--rx-depth"));
}

TEST(ExplainCompletionTest, ReceiverNotReadyInSpiteOfEndlessRetriesSaysSo) {
  CompletionFailure failure = Failure(IBV_WC_RNR_RETRY_EXC_ERR);
  failure.rnr_retry = 7;
  EXPECT_THAT(ExplainCompletion(failure).message, HasSubstr("yet the device gave up"));
}

TEST(ExplainCompletionTest, ShortReceiveNamesItsRoomAndThePeersStatus) {
  CompletionFailure failure = Failure(IBV_WC_LOC_LEN_ERR);
  failure.op = "receive";
  const Error error = ExplainCompletion(failure);
  EXPECT_THAT(error.cause, HasSubstr("more than the 64 bytes posted here"));
  EXPECT_THAT(error.next_step, HasSubstr("REM_INV_REQ_ERR"));
}

TEST(ExplainCompletionTest, OnlyFlushesPointToTheOtherSideOrAnEvent) {
  CompletionFailure failure = Failure(IBV_WC_WR_FLUSH_ERR);
  failure.flushed = 126;
  const Error error = ExplainCompletion(failure);
  EXPECT_THAT(error.message, AllOf(HasSubstr("nothing but flushes"), HasSubstr("126 more")));
  EXPECT_THAT(error.cause, AllOf(HasSubstr("other side"), HasSubstr("asynchronous event")));
}

TEST(ExplainCompletionTest, UnknownStatusIsStillExplained) {
  const Error error = ExplainCompletion(Failure(static_cast<ibv_wc_status>(kCompletionStatuses)));
  EXPECT_EQ(error.status, "STATUS_24");
  EXPECT_EQ(error.error_class, ErrorClass::kRun);
  EXPECT_FALSE(error.cause.empty());
}

TEST(ExplainCompletionTest, SuccessIsABugOfTheCaller) {
  EXPECT_EQ(ExplainCompletion(Failure(IBV_WC_SUCCESS)).error_class, ErrorClass::kInternal);
}

}  // namespace
}  // namespace verbscope
