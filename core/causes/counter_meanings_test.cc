#include "core/causes/counter_meanings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace verbscope {
namespace {

using testing::SizeIs;

TEST(CounterMeaningsTest, EachNameStandsOnceAndHasAMeaning) {
  std::set<std::string_view> names;
  for (const CounterMeaning& row : CounterMeanings()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_GT(row.meaning.size(), 5u) << row.name;
  }
}

// What the drivers count (kernel sources) and what this program's own device does.
TEST(CounterMeaningsTest, KnowsTheDriversNames) {
  for (const char* name : {"out_of_buffer",
                           "rnr_nak_retry_err",
                           "req_rnr_retries_exceeded",
                           "out_of_sequence",
                           "packet_seq_err",
                           "implied_nak_seq_err",
                           "local_ack_timeout_err",
                           "duplicate_request",
                           "roce_adp_retrans",
                           "roce_slow_restart",
                           "np_ecn_marked_roce_packets",
                           "np_cnp_sent",
                           "rp_cnp_handled",
                           "rp_cnp_ignored",
                           "rx_icrc_encapsulated",
                           "req_cqe_error",
                           "req_remote_access_errors",
                           "resp_local_length_error",
                           "out_of_seq_request",
                           "send_rnr_err",
                           "rcvd_rnr_err",
                           "rcvd_seq_err",
                           "retry_exceeded_err",
                           "completer_retry_err",
                           "to_retransmits",
                           "seq_err_naks_rcvd",
                           "rnr_naks_rcvd",
                           "oos_drop_count",
                           "rx_drops",
                           "icrc_errors",
                           "netdev.rx_dropped",
                           "port_xmit_wait",
                           "port_rcv_data_bytes"}) {
    EXPECT_NE(FindCounter(name), nullptr) << name;
  }
  EXPECT_EQ(FindCounter("no_such_counter"), nullptr);
}

TEST(CounterMeaningsTest, OnlyTroubleThatRoseIsNoted) {
  const std::vector<CounterNote> notes =
      NotesOf({{"sent_pkts", 900}, {"packet_seq_err", 0}, {"rnr_nak_retry_err", 3}},
              {{"out_of_sequence", 5}, {"unknown_thing", 7}});
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_EQ(notes[0].name, "rnr_nak_retry_err");
  EXPECT_EQ(notes[0].side, "requester");
  EXPECT_EQ(notes[1].name, "out_of_sequence");
  EXPECT_EQ(notes[1].change, 5);
}

TEST(CounterMeaningsTest, AHandfulIsEnough) {
  std::map<std::string, int64_t> all;
  for (const CounterMeaning& row : CounterMeanings()) all[std::string(row.name)] = 1;
  const std::vector<CounterNote> notes = NotesOf(all, all);
  ASSERT_THAT(notes, SizeIs(kMaxCounterNotes));
  EXPECT_EQ(notes[0].name, notes[1].name) << "neither side pushes the other out";
}

}  // namespace
}  // namespace verbscope
