#include "core/causes/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "core/causes/completion_failure.h"

namespace verbscope {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

GidRecord Gid(std::string value, std::string type) {
  return {.index = 1, .value = std::move(value), .type = std::move(type), .netdev = "eth0"};
}

// Both sides well: packets went both ways, and nothing else rose.
Evidence Well() {
  Evidence evidence;
  evidence.requester.gid = Gid("::ffff:10.0.0.1", "RoCE v2");
  evidence.responder.gid = Gid("::ffff:10.0.0.2", "RoCE v2");
  evidence.requester.counters = {{"sent_pkts", 900}, {"rcvd_pkts", 900}, {"packet_seq_err", 0}};
  evidence.responder.counters = {{"sent_pkts", 900}, {"rcvd_pkts", 900}, {"out_of_sequence", 0}};
  evidence.plan = Plan{};
  return evidence;
}

Evidence Failed(ibv_wc_status status) {
  Evidence evidence = Well();
  CompletionFailure failure;
  failure.status = status;
  failure.link_layer = LinkLayer::kEthernet;
  failure.op = "SEND";
  failure.size_bytes = 64;
  evidence.error = ExplainCompletion(failure);
  evidence.error_side = "requester";
  return evidence;
}

std::string FirstCause(const Evidence& evidence) {
  const std::vector<CauseRow> rows = Diagnose(evidence);
  return rows.empty() ? "" : rows.front().cause;
}

TEST(DiagnosisTest, ARunThatIsWellHasNoCause) { EXPECT_THAT(Diagnose(Well()), IsEmpty()); }

TEST(DiagnosisTest, EveryStatusHasACauseWithAStepAndAtMostThree) {
  for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status) {
    const std::vector<CauseRow> rows = Diagnose(Failed(static_cast<ibv_wc_status>(status)));
    ASSERT_FALSE(rows.empty()) << status;
    EXPECT_LE(rows.size(), kMaxCauses);
    for (const CauseRow& row : rows) {
      EXPECT_FALSE(row.cause.empty()) << status;
      EXPECT_FALSE(row.next_step.empty()) << status;
      EXPECT_THAT(row.cause, Not(HasSubstr("; or "))) << "one cause a row";
      EXPECT_EQ(row.side, "requester");
    }
  }
}

TEST(DiagnosisTest, TheErrorsOwnCauseComesFirstWhereNothingDecides) {
  EXPECT_THAT(FirstCause(Failed(IBV_WC_REM_ACCESS_ERR)), HasSubstr("remote key"));
  EXPECT_THAT(FirstCause(Failed(IBV_WC_LOC_PROT_ERR)), HasSubstr("local key"));
  EXPECT_THAT(FirstCause(Failed(IBV_WC_REM_INV_REQ_ERR)), HasSubstr("longer than the receive"));
  EXPECT_THAT(FirstCause(Failed(IBV_WC_RNR_RETRY_EXC_ERR)), HasSubstr("too few receives"));
  EXPECT_THAT(FirstCause(Failed(IBV_WC_RETRY_EXC_ERR)), HasSubstr("4791"));
}

TEST(DiagnosisTest, CausesAndStepsThatDoNotPairStayTogether) {
  Evidence evidence = Well();
  evidence.error = SetupError("ibv_reg_mr failed", "a; or b", "one step");
  ASSERT_THAT(Diagnose(evidence), SizeIs(1));
  EXPECT_EQ(FirstCause(evidence), "a; or b");
}

TEST(DiagnosisTest, LockedMemoryIsTheErrorsOwn) {
  Evidence evidence;
  evidence.error = SetupError("ibv_reg_mr failed", "the limit of locked memory is 64 KiB",
                              "ulimit -l unlimited");
  evidence.error->errno_value = ENOMEM;
  evidence.error_side = "local";
  const std::vector<CauseRow> rows = Diagnose(evidence);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_THAT(rows[0].cause, HasSubstr("locked memory"));
  EXPECT_EQ(rows[0].side, "local");
}

TEST(DiagnosisTest, GidsOfOtherTypesOrScopes) {
  Evidence types = Failed(IBV_WC_RETRY_EXC_ERR);
  types.responder.gid->type = "RoCE v1";
  EXPECT_THAT(FirstCause(types), HasSubstr("different types"));
  Evidence scopes = Failed(IBV_WC_RETRY_EXC_ERR);
  scopes.requester.gid->value = "fe80::1";
  EXPECT_THAT(FirstCause(scopes), HasSubstr("link-local"));
  scopes.responder.gid->value = "fe80::2";
  EXPECT_THAT(FirstCause(scopes), HasSubstr("4791")) << "two of one network";
  Evidence refused = Failed(IBV_WC_REM_ACCESS_ERR);
  refused.requester.gid->value = "fe80::1";
  EXPECT_THAT(FirstCause(refused), Not(HasSubstr("link-local"))) << "the peer did answer";
}

TEST(DiagnosisTest, NothingArrivesAtThePeer) {
  Evidence evidence = Failed(IBV_WC_RETRY_EXC_ERR);
  evidence.requester.counters = {{"sent_pkts", 7}};
  evidence.responder.counters = {{"rcvd_pkts", 0}};
  const std::vector<CauseRow> rows = Diagnose(evidence);
  EXPECT_THAT(rows.front().cause, HasSubstr("no packet of the requester reached the responder"));
  EXPECT_THAT(rows.front().evidence, HasSubstr("sent_pkts +7 of the requester"));
  EXPECT_EQ(rows.front().side, "responder");
  // A device that does not count what it receives proves nothing.
  evidence.responder.counters = {{"out_of_sequence", 0}};
  EXPECT_THAT(FirstCause(evidence), Not(HasSubstr("reached")));
  evidence.responder.counters = {{"rcvd_pkts", 7}};
  EXPECT_THAT(FirstCause(evidence), Not(HasSubstr("reached the responder")));
}

TEST(DiagnosisTest, OneDeviceForBothSidesCannotTellWhatArrived) {
  Evidence evidence = Failed(IBV_WC_RETRY_EXC_ERR);
  evidence.one_device = true;
  evidence.requester.counters = evidence.responder.counters = {{"sent_pkts", 7}, {"rcvd_pkts", 0}};
  EXPECT_THAT(FirstCause(evidence), Not(HasSubstr("reached")));
}

TEST(DiagnosisTest, SilenceAboveASizeIsThePathMtu) {
  Evidence evidence = Well();
  CompletionFailure failure;
  failure.status = IBV_WC_RETRY_EXC_ERR;
  failure.size_bytes = 4096;
  failure.path_mtu_bytes = 4096;
  failure.passed_bytes = 1024;
  failure.message_number = 1;
  evidence.error = ExplainCompletion(failure);
  evidence.requester.counters["local_ack_timeout_err"] = 7;
  EXPECT_THAT(FirstCause(evidence), HasSubstr("carries less than the path MTU"));
}

TEST(DiagnosisTest, AStarvedReceiverIsSeenOnBothSides) {
  Evidence evidence = Failed(IBV_WC_RNR_RETRY_EXC_ERR);
  evidence.responder.counters["out_of_buffer"] = 7;
  evidence.requester.counters["rnr_nak_retry_err"] = 6;
  const CauseRow row = Diagnose(evidence).front();
  EXPECT_THAT(row.cause, HasSubstr("too few receives"));
  EXPECT_THAT(row.evidence, HasSubstr("out_of_buffer +7 of the responder"));
  EXPECT_EQ(row.side, "responder");
  evidence.error.reset();
  EXPECT_THAT(FirstCause(evidence), HasSubstr("RNR timer")) << "a run that passed with waits";
  evidence.provokes = true;
  EXPECT_THAT(Diagnose(evidence), IsEmpty()) << "rnr-test starves on purpose";
}

TEST(DiagnosisTest, LossHasItsDirection) {
  Evidence evidence = Well();
  evidence.responder.counters["out_of_sequence"] = 812;
  evidence.requester.counters["packet_seq_err"] = 809;
  std::vector<CauseRow> rows = Diagnose(evidence);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_THAT(rows[0].cause, HasSubstr("from the requester to the responder are lost"));
  EXPECT_THAT(rows[0].evidence, HasSubstr("packet_seq_err +809 of the requester"));
  EXPECT_THAT(rows[0].evidence, HasSubstr("out_of_sequence +812 of the responder"));
  evidence = Well();
  evidence.requester.counters["implied_nak_seq_err"] = 3;
  EXPECT_THAT(FirstCause(evidence), HasSubstr("from the responder to the requester are lost"));
  evidence.one_device = true;
  evidence.responder.counters = evidence.requester.counters;
  EXPECT_THAT(FirstCause(evidence), Not(HasSubstr("from the")));
  EXPECT_THAT(FirstCause(evidence), HasSubstr("lost"));
}

TEST(DiagnosisTest, TimeoutsAloneAreLossWithoutADirection) {
  Evidence evidence = Well();
  evidence.requester.counters["local_ack_timeout_err"] = 2;
  EXPECT_THAT(FirstCause(evidence), HasSubstr("or came after the timeout"));
}

TEST(DiagnosisTest, DamageOnTheWayGoesBeforeTheLossItMakes) {
  Evidence evidence = Well();
  evidence.responder.counters["rx_icrc_encapsulated"] = 4;
  evidence.responder.counters["out_of_sequence"] = 4;
  EXPECT_THAT(FirstCause(evidence), HasSubstr("damaged"));
}

TEST(DiagnosisTest, RetriesThatOutlastTheDeadline) {
  Evidence evidence = Well();
  Error error;
  error.error_class = ErrorClass::kDeadline;
  error.message = "the deadline has passed";
  evidence.error = error;
  evidence.plan->deadline_ns = 5'000'000'000;
  EXPECT_THAT(FirstCause(evidence), Not(HasSubstr("retries")));
  evidence.plan->timeout_code = 31;
  EXPECT_THAT(FirstCause(evidence), HasSubstr("longer than the deadline"));
}

TEST(DiagnosisTest, ATailOfTheHostsOwn) {
  Evidence evidence = Well();
  evidence.p50_ns = 2'000;
  evidence.p99_9_ns = 90'000;
  EXPECT_THAT(Diagnose(evidence), IsEmpty());
  evidence.responder.jitter_floor = JitterFloor{.max_gap_ns = 20'000};
  EXPECT_THAT(Diagnose(evidence), IsEmpty()) << "the host is quieter than the tail";
  evidence.responder.jitter_floor->max_gap_ns = 120'000;
  EXPECT_THAT(FirstCause(evidence), HasSubstr("the host's"));
  evidence.responder.jitter_floor.reset();
  evidence.requester.governor = "performance";
  EXPECT_THAT(Diagnose(evidence), IsEmpty());
  evidence.requester.governor = "powersave";
  EXPECT_THAT(FirstCause(evidence), HasSubstr("saves power"));
  evidence.p99_9_ns = 4'000;
  EXPECT_THAT(Diagnose(evidence), IsEmpty()) << "a short tail needs no cause";
}

TEST(DiagnosisTest, LinkAndCongestionAndDrops) {
  Evidence evidence = Well();
  evidence.requester.counters["netdev.carrier_changes"] = 2;
  evidence.requester.counters["np_ecn_marked_roce_packets"] = 9;
  evidence.requester.counters["netdev.rx_dropped"] = 1;
  const std::vector<CauseRow> rows = Diagnose(evidence);
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_THAT(rows[0].cause, HasSubstr("link"));
  EXPECT_THAT(rows[1].cause, HasSubstr("congested"));
  EXPECT_THAT(rows[2].cause, HasSubstr("dropped"));
}

TEST(DiagnosisTest, AnInterruptionNeedsNoOtherCause) {
  Evidence evidence = Well();
  evidence.error.emplace().error_class = ErrorClass::kInterrupted;
  evidence.responder.counters["rx_icrc_encapsulated"] = 4;
  EXPECT_THAT(Diagnose(evidence), IsEmpty());
}

TEST(DiagnosisTest, ARecordGivesTheEvidenceOfBothSides) {
  Record record;
  record.local.role = "responder";
  record.local.host = "a";
  record.local.device.emplace().name = "mlx5_0";
  record.local.counters = {{"out_of_sequence", 5}};
  record.remote.emplace().role = "requester";
  record.remote->host = "b";
  record.remote->device.emplace().name = "mlx5_0";
  record.remote->counters = {{"packet_seq_err", 4}};
  AddCauses(record);
  ASSERT_THAT(record.causes, SizeIs(1));
  EXPECT_THAT(record.causes[0].cause, HasSubstr("from the requester to the responder"));
  ASSERT_THAT(record.counter_notes, SizeIs(2));
  EXPECT_EQ(record.counter_notes[0].side, "responder");
  record.remote->host = "a";
  AddCauses(record);
  EXPECT_THAT(record.causes[0].cause, Not(HasSubstr("from the requester"))) << "one device";
}

}  // namespace
}  // namespace verbscope
