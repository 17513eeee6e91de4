// Single values of options as users write them. Each reader takes the whole text or nothing; the
// caller says what is allowed. Free functions without state, any thread. For this folder only.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_VALUE_TEXT_H_
#define VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_VALUE_TEXT_H_

#include <infiniband/verbs.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "transports/soft/link/fault_options.h"
#include "transports/soft/link/udp_gso.h"
#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

// A value that is one of a few words.
template <class T>
struct Choice {
  std::string_view name;
  T value;
};

template <class T>
std::optional<T> FindChoice(std::string_view text, std::span<const Choice<T>> choices) {
  for (const Choice<T>& choice : choices) {
    if (choice.name == text) return choice.value;
  }
  return std::nullopt;
}

template <class T>
std::vector<std::string_view> NamesOf(std::span<const Choice<T>> choices) {
  std::vector<std::string_view> names;
  names.reserve(choices.size());
  for (const Choice<T>& choice : choices) names.push_back(choice.name);
  return names;
}

inline constexpr std::array<Choice<LinkKind>, 3> kLinks = {
    {{"auto", LinkKind::kAuto}, {"memory", LinkKind::kMemory}, {"udp", LinkKind::kUdp}}};
inline constexpr std::array<Choice<UdpGso>, 3> kGsoChoices = {
    {{"auto", UdpGso::kAuto}, {"on", UdpGso::kOn}, {"off", UdpGso::kOff}}};
inline constexpr std::array<Choice<Profile>, 2> kProfiles = {
    {{"ibta", Profile::kIbta}, {"rxe-6.1", Profile::kRxe61}}};
inline constexpr std::array<Choice<FaultAction>, 6> kFaultActions = {
    {{"drop", FaultAction::kDrop},
     {"duplicate", FaultAction::kDuplicate},
     {"reorder", FaultAction::kReorder},
     {"delay", FaultAction::kDelay},
     {"corrupt", FaultAction::kCorrupt},
     {"stall", FaultAction::kStall}}};
inline constexpr std::array<Choice<FaultDirection>, 3> kFaultDirections = {
    {{"send", FaultDirection::kSend},
     {"receive", FaultDirection::kReceive},
     {"both", FaultDirection::kBoth}}};
inline constexpr std::array<Choice<FaultClass>, 10> kFaultClasses = {
    {{"any", FaultClass::kAny},
     {"request", FaultClass::kRequest},
     {"send", FaultClass::kSend},
     {"write", FaultClass::kWrite},
     {"read", FaultClass::kRead},
     {"atomic", FaultClass::kAtomic},
     {"ack", FaultClass::kAck},
     {"nak", FaultClass::kNak},
     {"read_response", FaultClass::kReadResponse},
     {"atomic_ack", FaultClass::kAtomicAck}}};
inline constexpr std::array<Choice<ibv_port_state>, 4> kPortStates = {{{"ACTIVE", IBV_PORT_ACTIVE},
                                                                       {"DOWN", IBV_PORT_DOWN},
                                                                       {"INIT", IBV_PORT_INIT},
                                                                       {"ARMED", IBV_PORT_ARMED}}};
inline constexpr std::array<Choice<LinkLayer>, 2> kLinkLayers = {
    {{"Ethernet", LinkLayer::kEthernet}, {"InfiniBand", LinkLayer::kInfiniBand}}};
inline constexpr std::array<std::string_view, 3> kGidTypes = {"RoCE v2", "RoCE v1", "IB"};
inline constexpr std::array<Choice<CompletionKind>, 2> kCompletionKinds = {
    {{"send", CompletionKind::kSend}, {"receive", CompletionKind::kReceive}}};
// The names of ibv_wc_opcode without IBV_WC_.
inline constexpr std::array<Choice<ibv_wc_opcode>, 9> kCompletionOpcodes = {
    {{"SEND", IBV_WC_SEND},
     {"RDMA_WRITE", IBV_WC_RDMA_WRITE},
     {"RDMA_READ", IBV_WC_RDMA_READ},
     {"COMP_SWAP", IBV_WC_COMP_SWAP},
     {"FETCH_ADD", IBV_WC_FETCH_ADD},
     {"BIND_MW", IBV_WC_BIND_MW},
     {"LOCAL_INV", IBV_WC_LOCAL_INV},
     {"RECV", IBV_WC_RECV},
     {"RECV_RDMA_WITH_IMM", IBV_WC_RECV_RDMA_WITH_IMM}}};
inline constexpr std::array<Choice<Defect>, kDefects.size()> kDefectChoices = [] {
  std::array<Choice<Defect>, kDefects.size()> choices = {};
  for (size_t i = 0; i < choices.size(); ++i) {
    choices[i] = {.name = kDefects[i].name, .value = kDefects[i].defect};
  }
  return choices;
}();
// The names of ibv_wc_status without IBV_WC_, in order of value.
extern const std::array<std::string_view, 24> kCompletionStatuses;

inline constexpr uint64_t kLargestMaxCqe = uint64_t{1} << 24;

inline constexpr std::string_view kLinkAllowed = "allowed: auto, memory or udp";
inline constexpr std::string_view kMtuAllowed = "allowed: 256, 512, 1024, 2048 or 4096";
inline constexpr std::string_view kChanceAllowed =
    "allowed: a chance from 0 to 1 such as 0.01, or a percentage such as 1%";
inline constexpr std::string_view kDelayAllowed =
    "allowed: 0 to 60s, as a number with ns, us, ms or s, such as 10us";
inline constexpr std::string_view kAddressAllowed =
    "allowed: the IPv4 or IPv6 address of one host, such as 10.0.0.1, without a zone";
inline constexpr std::string_view kPathAllowed =
    "allowed: a file name of 1 to 4095 bytes without control characters";
inline constexpr std::string_view kErrnoAllowed =
    "allowed: a name such as ENOMEM, or a number from 1 to 4095";

// Decimal digits only, within the range.
std::optional<uint64_t> CountFromText(std::string_view text, uint64_t min, uint64_t max);
bool IsMtu(uint64_t bytes);
std::optional<double> ChanceFromText(std::string_view text);
// Exact: what does not come to whole nanoseconds is refused.
std::optional<std::chrono::nanoseconds> DelayFromText(std::string_view text);
// Any numeric address, also the zero one.
std::optional<ibv_gid> GidFromText(std::string_view text);
// The address that one host can have.
std::optional<ibv_gid> AddressFromText(std::string_view text);
std::optional<int> ErrnoFromText(std::string_view name);
std::optional<ibv_wc_status> CompletionStatusFromText(std::string_view name);
bool IsPath(std::string_view text);

// `text` in quotes for an error message: at most 64 bytes, and what is not printable ASCII as '?'.
std::string Quoted(std::string_view text);
// "a, b or c".
std::string Listed(std::span<const std::string_view> names);
// The one of `names` that `text` was probably meant to be; empty when none is near.
std::string_view Nearest(std::string_view text, std::span<const std::string_view> names);
// "write 'drop'" when a name is near, for Error::next_step; empty otherwise.
std::string Suggestion(std::string_view text, std::span<const std::string_view> names);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_VALUE_TEXT_H_
