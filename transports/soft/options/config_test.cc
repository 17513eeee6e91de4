#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "transports/soft/options/parse.h"

namespace verbscope::soft {
namespace {

using std::chrono::nanoseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::optional<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(Config, AnEmptyObjectIsTheDefault) {
  const auto options = ParseConfig("{}");
  ASSERT_TRUE(options) << options.error().ToText();
  EXPECT_EQ(options->port.active_mtu_bytes, 4096u);
  EXPECT_FALSE(options->port.gids);
  EXPECT_FALSE(options->fault.Active());
}

void ExpectExampleLimits(const SoftLimits& limits) {
  EXPECT_EQ(limits.device.max_qp, 64u);
  EXPECT_EQ(limits.device.max_cq, 64u);
  EXPECT_EQ(limits.device.max_qp_wr, 1024u);
  EXPECT_EQ(limits.device.max_sge, 4u);
  EXPECT_EQ(limits.device.max_cqe, 4096u);
  EXPECT_EQ(limits.device.max_mr, 128u);
  EXPECT_EQ(limits.device.max_pd, 16u);
  EXPECT_EQ(limits.device.max_srq, 8u);
  EXPECT_EQ(limits.max_srq_wr, 1024u);
  EXPECT_EQ(limits.device.max_rd_atomic_initiator, 4);
  EXPECT_EQ(limits.device.max_rd_atomic_responder, 4);
  EXPECT_EQ(limits.device.comp_vectors, 1u);
  EXPECT_TRUE(limits.device.atomics);
  EXPECT_EQ(limits.device.max_mr_bytes, 1073741824u);
  EXPECT_EQ(limits.max_message_bytes, 8388608u);
  EXPECT_EQ(limits.max_registered_bytes, 67108864u);
  EXPECT_EQ(limits.max_inline_bytes, 220u);
  EXPECT_EQ(limits.reported_inline_bytes, 64u);
}

void ExpectExampleFault(const FaultOptions& fault) {
  EXPECT_EQ(fault.drop, 0.001);
  EXPECT_EQ(fault.duplicate, 0.001);
  EXPECT_EQ(fault.delay, nanoseconds(10'000));
  EXPECT_EQ(fault.seed, 7u);
  ASSERT_THAT(fault.rules, SizeIs(4));
  EXPECT_EQ(fault.rules[0].action, FaultAction::kDrop);
  EXPECT_EQ(fault.rules[0].direction, FaultDirection::kReceive);
  EXPECT_EQ(fault.rules[0].packets, FaultClass::kAck);
  EXPECT_EQ(fault.rules[0].nth, 3u);
  EXPECT_EQ(fault.rules[1].action, FaultAction::kDelay);
  EXPECT_EQ(fault.rules[1].direction, FaultDirection::kBoth);
  EXPECT_EQ(fault.rules[1].delay, nanoseconds(1'000'000));
  EXPECT_EQ(fault.rules[1].hits, 10u);
  EXPECT_EQ(fault.rules[2].min_bytes, 1024u);
  EXPECT_EQ(fault.rules[2].transmission, 1u);
  EXPECT_EQ(fault.rules[3].action, FaultAction::kStall);
  EXPECT_EQ(fault.rules[3].delay, nanoseconds(10'000'000));
}

TEST(Config, TheExampleOfTheDocumentSetsEverything) {
  const auto text = ReadText("testdata/soft/example.json");
  ASSERT_TRUE(text);
  const auto options = ParseConfig(*text);
  ASSERT_TRUE(options) << options.error().ToText();
  EXPECT_EQ(options->link, LinkKind::kMemory);
  EXPECT_EQ(options->gso, UdpGso::kOff);
  EXPECT_EQ(options->port.active_mtu_bytes, 1024u);
  EXPECT_EQ(options->pcap_path, "/tmp/soft0.pcap");
  ExpectExampleLimits(options->limits);
  ExpectExampleFault(options->fault);
  ASSERT_TRUE(options->port.gids);
  ASSERT_THAT(*options->port.gids, SizeIs(4));
  EXPECT_EQ((*options->port.gids)[2].unreadable_errno, EIO);
  EXPECT_EQ((*options->port.gids)[3].index, 5);
  EXPECT_EQ((*options->port.gids)[3].netdev, "eth0");
  EXPECT_THAT(options->hooks.control,
              ElementsAre(ControlFault{.call = "modify_qp", .nth = 2, .errno_value = ETIMEDOUT},
                          ControlFault{.call = "", .nth = 40, .errno_value = ENOMEM}));
  EXPECT_THAT(
      options->hooks.completions,
      ElementsAre(
          CompletionFault{
              .nth = 1000, .status = IBV_WC_RETRY_EXC_ERR, .vendor_err = 129, .garbage = true},
          CompletionFault{.nth = 5,
                          .kind = CompletionKind::kReceive,
                          .byte_len_add = -4,
                          .imm_swap = true,
                          .hold_behind = true}));
  EXPECT_EQ(
      options->hooks.data,
      (DataFault{.flip_bit = 10, .skip_last = 20, .write_past = 30, .max_access_bytes = 65536}));
  EXPECT_EQ(options->defects, (Defects{Defect::kNoFence, Defect::kSignalAll}));
  EXPECT_EQ(options->hooks.events, (EventTiming{.late = nanoseconds(50'000), .coalesce = true}));
}

TEST(Config, TheDocumentQuotesTheExample) {
  const auto document = ReadText("docs/soft_device.md");
  ASSERT_TRUE(document);
  EXPECT_THAT(*document, HasSubstr("```json\n" +
                                   ReadText("testdata/soft/example.json").value_or("?") + "```"));
}

TEST(Config, SortsGidsAndKeepsZeroOnes) {
  const auto options = ParseConfig(R"({"port": {"gids": [
      {"index": 7, "gid": "10.0.0.1", "type": "RoCE v2"},
      {"index": 0, "gid": "::", "type": "RoCE v1", "netdev": "eth0.100"}]}})");
  ASSERT_TRUE(options) << options.error().ToText();
  ASSERT_THAT(*options->port.gids, SizeIs(2));
  EXPECT_EQ((*options->port.gids)[0].index, 0);
  EXPECT_EQ((*options->port.gids)[1].index, 7);
}

TEST(Config, AnEmptyGidTableIsNotTheDefault) {
  const auto options = ParseConfig(R"({"port": {"gids": []}})");
  ASSERT_TRUE(options);
  ASSERT_TRUE(options->port.gids);
  EXPECT_TRUE(options->port.gids->empty());
}

TEST(Config, MtuFollowsASmallerMaximum) {
  const auto options = ParseConfig(R"({"port": {"max_mtu": 1024}})");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->port.active_mtu_bytes, 1024u);
}

TEST(Config, InfiniBandHasALidUnlessItIsTakenAway) {
  const auto by_default = ParseConfig(R"({"port": {"link_layer": "InfiniBand"}})");
  ASSERT_TRUE(by_default);
  EXPECT_EQ(by_default->port.lid, 1);
  EXPECT_EQ(by_default->port.sm_lid, 1);
  const auto none = ParseConfig(R"({"port": {"link_layer": "InfiniBand", "lid": 0}})");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->port.lid, 0);
}

TEST(Config, NumbersOfErrnoAreTakenToo) {
  const auto options = ParseConfig(R"({"hooks": {"control": [{"call": "any", "errno": 200}]}})");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->hooks.control[0].errno_value, 200);
  EXPECT_EQ(options->hooks.control[0].nth, 1u);
}

TEST(Config, RefusesWhatItDoesNotUnderstand) {
  const std::string chance =
      "allowed: a chance from 0 to 1 such as 0.01, or a percentage such as 1%.";
  const std::pair<std::string, std::string> kCases[] = {
      {"", "is not JSON: the problem is at line 1, column 1."},
      {"{\n  \"mtu\": x}", "is not JSON: the problem is at line 2, column 10."},
      {R"({"mtu": 1e999})", "is not JSON: a number is too large for any option."},
      {"[]", "the document is not an object."},
      {"null", "the document is not an object."},
      {R"({"mtu": 256, "mtu": 512})", "the key 'mtu' is given twice in one object."},
      {R"({"drop": 0.1})",
       "unknown key 'drop': the keys here are name, link, addr, gso, mtu, inline, profile, "
       "pcap, limits, port, fault, hooks or defects."},
      {R"({"faults": {}})",
       "unknown key 'faults': the keys here are name, link, addr, gso, mtu, inline, profile, "
       "pcap, limits, port, fault, hooks or defects. Next: write 'fault'."},
      {R"({"port": {"lids": 1}})",
       "unknown key 'port.lids': the keys here are state, link_layer, lid, sm_lid, max_mtu or "
       "gids. Next: write 'lid'."},
      {R"({"port": []})", "port is not an object."},
      {R"({"link": "rdma"})", "link='rdma' is refused: allowed: auto, memory or udp."},
      {R"({"gso": "yes"})", "gso='yes' is refused: allowed: auto, on or off."},
      {R"({"profile": "rxe"})",
       "profile='rxe' is refused: allowed: ibta or rxe-6.1. Next: write 'rxe-6.1'."},
      {R"({"inline": 1025})", "inline=1025 is refused: allowed: a whole number from 0 to 1024."},
      {R"({"inline": -1})", "inline=-1 is refused: allowed: a whole number from 0 to 1024."},
      {R"({"inline": 1.5})", "inline=1.5 is refused: allowed: a whole number from 0 to 1024."},
      {R"({"inline": "1"})", "inline='1' is refused: allowed: a whole number from 0 to 1024."},
      {R"({"inline": null})", "inline=null is refused: allowed: a whole number from 0 to 1024."},
      {R"({"inline": [1]})", "inline=[...] is refused: allowed: a whole number from 0 to 1024."},
      {R"({"name": "a b"})",
       "name='a b' is refused: allowed: 1 to 63 letters, digits, underscores or hyphens."},
      {R"({"limits": {"max_qp": 0}})",
       "limits.max_qp=0 is refused: allowed: a whole number from 1 to 65536."},
      {R"({"limits": {"atomics": 1}})", "limits.atomics=1 is refused: allowed: true or false."},
      {R"({"limits": {"max_rd_atomic_initiator": 256}})",
       "limits.max_rd_atomic_initiator=256 is refused: allowed: a whole number from 0 to 255."},
      {R"({"port": {"state": "UP"}})",
       "port.state='UP' is refused: allowed: ACTIVE, DOWN, INIT or ARMED."},
      {R"({"port": {"link_layer": "ethernet"}})",
       "port.link_layer='ethernet' is refused: allowed: Ethernet or InfiniBand. Next: write "
       "'Ethernet'."},
      {R"({"port": {"max_mtu": 1500}})",
       "port.max_mtu=1500 is refused: allowed: 256, 512, 1024, 2048 or 4096."},
      {R"({"port": {"gids": {}}})", "port.gids={...} is refused: allowed: an array."},
      {R"({"port": {"gids": [{"gid": "::1", "type": "RoCE v2"}]}})",
       "port.gids[0].index is missing."},
      {R"({"port": {"gids": [{"index": 256, "gid": "::1", "type": "RoCE v2"}]}})",
       "port.gids[0].index=256 is refused: allowed: a whole number from 0 to 255."},
      {R"({"port": {"gids": [{"index": 0, "type": "RoCE v2"}]}})", "port.gids[0].gid is missing."},
      {R"({"port": {"gids": [{"index": 0, "gid": "x", "type": "RoCE v2"}]}})",
       "port.gids[0].gid='x' is refused: allowed: 16 bytes written as an IPv6 address, or an IPv4 "
       "address."},
      {R"({"port": {"gids": [{"index": 0, "gid": "::1"}]}})", "port.gids[0].type is missing."},
      {R"({"port": {"gids": [{"index": 0, "gid": "::1", "type": "v2"}]}})",
       "port.gids[0].type='v2' is refused: allowed: RoCE v2, RoCE v1 or IB."},
      {R"({"port": {"gids": [{"index": 0, "gid": "::1", "unreadable": "EIO"}]}})",
       "port.gids[0].gid is refused: a slot with unreadable has no value."},
      {R"({"port": {"gids": [{"index": 0, "unreadable": "EIO"},
                             {"index": 0, "unreadable": "EIO"}]}})",
       "port.gids[1].index 0 is given twice."},
      {R"({"addr": "10.0.0.1", "port": {"gids": []}})",
       "addr is refused: the file also has port.gids, and both make the GID table."},
      {R"({"fault": {"drop": 2}})", "fault.drop=2 is refused: " + chance},
      {R"({"fault": {"drop": "200%"}})", "fault.drop='200%' is refused: " + chance},
      {R"({"fault": {"delay": 10}})",
       "fault.delay=10 is refused: allowed: 0 to 60s, as a number with ns, us, ms or s, such as "
       "10us."},
      {R"({"fault": {"rules": [{}]}})", "fault.rules[0].action is missing."},
      {R"({"fault": {"rules": [{"action": "drop"}, {"action": "dropp"}]}})",
       "fault.rules[1].action='dropp' is refused: allowed: drop, duplicate, reorder, delay, "
       "corrupt "
       "or stall. Next: write 'drop'."},
      {R"({"fault": {"rules": [{"action": "stall"}]}})", "fault.rules[0].delay is missing."},
      {R"({"fault": {"rules": [{"action": "delay"}]}})", "fault.rules[0].delay is missing."},
      {R"({"fault": {"rules": [{"action": "drop", "delay": "1us"}]}})",
       "fault.rules[0].delay is refused: only the actions delay and stall have one."},
      {R"({"fault": {"rules": [3]}})", "fault.rules[0] is not an object."},
      {R"({"hooks": {"control": [{"call": "alloc_pd"}]}})", "hooks.control[0].errno is missing."},
      {R"({"hooks": {"control": [{"call": "any", "errno": "ENOPE"}]}})",
       "hooks.control[0].errno='ENOPE' is refused: allowed: a name such as ENOMEM, or a number "
       "from "
       "1 to 4095."},
      {R"({"hooks": {"control": [{"call": "any", "errno": 0}]}})",
       "hooks.control[0].errno=0 is refused: allowed: a name such as ENOMEM, or a number from 1 to "
       "4095."},
      {R"({"hooks": {"completions": [{"nth": 1}]}})",
       "hooks.completions[0] changes nothing: it says only which completions it means."},
      {R"({"hooks": {"completions": [{"kind": "recv", "drop": true}]}})",
       "hooks.completions[0].kind='recv' is refused: allowed: send or receive."},
      {R"({"hooks": {"completions": [{"kind": "receive", "byte_len_add": 0}]}})",
       "hooks.completions[0] changes nothing: it says only which completions it means."},
      {R"({"hooks": {"completions": [{"byte_len_add": 4294967296}]}})",
       "hooks.completions[0].byte_len_add=4294967296 is refused: allowed: a whole number from "
       "-4294967295 to 4294967295."},
      {R"({"hooks": {"completions": [{"byte_len_add": 18446744073709551615}]}})",
       "hooks.completions[0].byte_len_add=18446744073709551615 is refused: allowed: a whole number "
       "from -4294967295 to 4294967295."},
      {R"({"hooks": {"completions": [{"byte_len": -1}]}})",
       "hooks.completions[0].byte_len=-1 is refused: allowed: a whole number from 0 to "
       "4294967295."},
      {R"({"hooks": {"completions": [{"byte_len": 1, "byte_len_add": 1}]}})",
       "hooks.completions[0].byte_len_add is refused: byte_len says the length already."},
      {R"({"hooks": {"completions": [{"imm_xor": 0}]}})",
       "hooks.completions[0].imm_xor=0 is refused: allowed: a whole number from 1 to 4294967295."},
      {R"({"hooks": {"completions": [{"kind": "send", "imm_swap": true}]}})",
       "hooks.completions[0].imm_swap is refused: only receives have an immediate."},
      {R"({"hooks": {"completions": [{"opcode": "WRITE"}]}})",
       "hooks.completions[0].opcode='WRITE' is refused: allowed: SEND, RDMA_WRITE, RDMA_READ, "
       "COMP_SWAP, FETCH_ADD, BIND_MW, LOCAL_INV, RECV or RECV_RDMA_WITH_IMM."},
      {R"({"hooks": {"completions": [{"drop": true, "hold_behind": true}]}})",
       "hooks.completions[0].drop is refused: of a completion that never comes nothing else is "
       "seen."},
      {R"({"hooks": {"completions": [{"vendor_err": 1, "garbage": true}]}})",
       "hooks.completions[0].vendor_err is refused: it goes with status."},
      {R"({"hooks": {"data": {"flip_bit": true}}})",
       "hooks.data.flip_bit=true is refused: allowed: a whole number from 0 to "
       "18446744073709551615."},
      {R"({"hooks": {"data": {"max_access_bytes": 0}}})",
       "hooks.data.max_access_bytes=0 is refused: allowed: a whole number from 1 to "
       "18446744073709551615."},
      {R"({"hooks": {"data": {"flip_bit": 2, "skip_last": 2}}})",
       "hooks.data.flip_bit is refused: of the same message skip_last stores nothing."},
      {R"({"hooks": {"data": {"flip": 2}}})",
       "unknown key 'hooks.data.flip': the keys here are flip_bit, skip_last, write_past or "
       "max_access_bytes. Next: write 'flip_bit'."},
      {R"({"hooks": {"completions": [{"qp_num_xor": 16777216}]}})",
       "hooks.completions[0].qp_num_xor=16777216 is refused: allowed: a whole number from 1 to "
       "16777215."},
      {R"({"defects": "no-fence"})", "defects='no-fence' is refused: allowed: an array."},
      {R"({"hooks": {"events": {"coalesce": "yes"}}})",
       "hooks.events.coalesce='yes' is refused: allowed: true or false."},
  };
  for (const auto& [text, sentence] : kCases) {
    const auto options = ParseConfig(text, "f.json");
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(options.error().ToText(), "config 'f.json': " + sentence) << text;
    EXPECT_EQ(ExitCode(options.error().error_class), 1) << text;
  }
}

TEST(Config, NamesTheNearCallAndStatus) {
  const auto call = ParseConfig(R"({"hooks": {"control": [{"call": "modifyqp", "errno": 5}]}})");
  ASSERT_FALSE(call);
  EXPECT_THAT(call.error().message, HasSubstr("hooks.control[0].call='modifyqp' is refused"));
  EXPECT_EQ(call.error().next_step, "write 'modify_qp'");
  const auto status = ParseConfig(R"({"hooks": {"completions": [{"status": "RETRY_EXC"}]}})");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().next_step, "write 'RETRY_EXC_ERR'");
}

TEST(Config, DefectsAreAClosedSet) {
  std::string every = "[";
  Defects all;
  for (const DefectRow& row : kDefects) {
    every += (every.size() > 1 ? ", \"" : "\"") + std::string(row.name) + "\"";
    all.Add(row.defect);
  }
  const auto options = ParseConfig(R"({"defects": )" + every + "]}");
  ASSERT_TRUE(options) << options.error().ToText();
  EXPECT_EQ(options->defects, all);
  EXPECT_EQ(ParseConfig(R"({"defects": []})")->defects, Defects{});
  for (const char* wrong : {R"({"defects": ["no-fence", "no-fense"]})", R"({"defects": [3]})"}) {
    const auto refused = ParseConfig(wrong);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("defects["));
    EXPECT_EQ(ExitCode(refused.error().error_class), 1);
    for (const DefectRow& row : kDefects) {
      EXPECT_THAT(refused.error().cause, HasSubstr(std::string(row.name)));
    }
  }
  EXPECT_EQ(ParseConfig(R"({"defects": ["no-fense"]})").error().next_step, "write 'no-fence'");
}

TEST(Config, CompletionsLieInEachField) {
  const auto options = ParseConfig(R"({"hooks": {"completions": [
      {"nth": 5, "kind": "receive", "imm_xor": 1, "imm_swap": true, "drop_imm_flag": true,
       "opcode": "RECV", "wr_id_xor": 18446744073709551615, "qp_num_xor": 1,
       "byte_len_add": -4},
      {"nth": 0, "kind": "send", "byte_len": 7, "hold_behind": true},
      {"drop": true}]}})");
  ASSERT_TRUE(options) << options.error().ToText();
  EXPECT_THAT(
      options->hooks.completions,
      ElementsAre(CompletionFault{.nth = 5,
                                  .kind = CompletionKind::kReceive,
                                  .opcode = IBV_WC_RECV,
                                  .wr_id_xor = UINT64_MAX,
                                  .qp_num_xor = 1,
                                  .byte_len_add = -4,
                                  .imm_xor = 1,
                                  .imm_swap = true,
                                  .drop_imm_flag = true},
                  CompletionFault{
                      .nth = 0, .kind = CompletionKind::kSend, .byte_len = 7, .hold_behind = true},
                  CompletionFault{.drop = true}));
}

TEST(Config, RefusesGidTypesOfTheOtherLinkLayer) {
  const auto ib =
      ParseConfig(R"({"port": {"gids": [{"index": 1, "gid": "fe80::1", "type": "IB"}]}})");
  ASSERT_FALSE(ib);
  EXPECT_EQ(ib.error().ToText(),
            "soft device: the type 'IB' of GID index 1 is refused: port.link_layer is Ethernet.");
}

TEST(Config, HasBoundsOfSizeAndDepth) {
  const auto large = ParseConfig(std::string(kMaxConfigBytes + 1, ' '));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().ToText(), "config 'config': is larger than 1 MiB.");
  const auto deep = ParseConfig(std::string(kMaxConfigBytes, '['));
  ASSERT_FALSE(deep);
  EXPECT_THAT(deep.error().ToText(), HasSubstr("is nested too deeply"));
  std::string closed = R"({"port":)" + std::string(1000, '[') + std::string(1000, ']') + "}";
  EXPECT_THAT(ParseConfig(closed).error().ToText(), HasSubstr("is nested too deeply"));
  std::string many = R"({"fault": {"rules": [{"action": "drop"})";
  for (int i = 0; i < 1024; ++i) many += R"(, {"action": "drop"})";
  EXPECT_EQ(ParseConfig(many + "]}}").error().ToText(),
            "config 'config': fault.rules has 1025 elements: at most 1024 are allowed.");
}

}  // namespace
}  // namespace verbscope::soft
