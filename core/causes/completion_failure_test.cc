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
