#include "core/checks/ask.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/plan/json_fields.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

using nlohmann::json;

constexpr size_t kMaxEventBytes = 256;

// A number that stands for an enumerator, at most `last`.
template <class T>
void GetNumber(JsonFields& fields, const char* key, T last, T& value) {
  auto number = static_cast<uint64_t>(value);
  fields.GetOr(key, number);
  if (number > static_cast<uint64_t>(last)) {
    fields.Complain(key, "is not known");
  } else {
    value = static_cast<T>(number);
  }
}

template <class T>
void GetAtMost(JsonFields& fields, const char* key, T most, T& value) {
  fields.GetOr(key, value);
  if (value > most) fields.Complain(key, "is too large");
}

// A nested object, if it is there.
template <class T, class Parse>
void GetNested(JsonFields& fields, const char* key, Parse parse, T& value) {
  const json* object = fields.Object(key);
  if (object == nullptr) return;
  Expected<T> parsed = parse(*object);
  if (!parsed) return fields.Adopt(std::move(parsed.error()));
  value = std::move(*parsed);
}

template <class T>
json OrNull(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json PiecesJson(const std::vector<Piece>& pieces) {
  json array = json::array();
  for (const Piece& piece : pieces) {
    array.push_back(piece.offset);
    array.push_back(piece.bytes);
  }
  return array;
}

void GetPieces(JsonFields& fields, std::vector<Piece>& pieces) {
  std::vector<uint64_t> numbers;
  fields.GetArray("pieces", numbers, 2 * kMaxPieces);
  if (numbers.size() % 2 != 0) fields.Complain("pieces", "is not a list of pairs");
  for (size_t i = 0; i + 1 < numbers.size(); i += 2) {
    if (std::max(numbers[i], numbers[i + 1]) > kMaxEndBytes) {
      fields.Complain("pieces", "lies outside of any buffer");
    }
    pieces.push_back({numbers[i], numbers[i + 1]});
  }
}

json MakeJson(const FreshQpOptions& options) {
  return {{"buffer_bytes", options.buffer_bytes},
          {"send_depth", options.send_depth},
          {"receive_depth", options.receive_depth},
          {"max_send_sge", options.max_send_sge},
          {"max_recv_sge", options.max_recv_sge},
          {"cqe", options.cqe},
          {"shared_receives", options.shared_receives},
          {"foreign_region", options.foreign_region},
          {"memory_access", options.memory_access},
          {"qp_access", options.qp_access},
          {"timeout_code", OrNull(options.timeout_code)},
          {"retry_count", OrNull(options.retry_count)},
          {"rnr_retry", OrNull(options.rnr_retry)},
          {"rnr_timer_code", OrNull(options.rnr_timer_code)}};
}

Expected<FreshQpOptions> MakeFromJson(const json& object) {
  FreshQpOptions options;
  JsonFields fields(object, "ask.make", ErrorClass::kRun);
  GetAtMost<size_t>(fields, "buffer_bytes", kMaxEndBytes, options.buffer_bytes);
  for (const auto& [key, depth] :
       {std::pair("send_depth", &options.send_depth),
        std::pair("receive_depth", &options.receive_depth), std::pair("cqe", &options.cqe)}) {
    GetAtMost(fields, key, kMaxEndDepth, *depth);
  }
  GetAtMost(fields, "max_send_sge", uint32_t{kMaxPieces}, options.max_send_sge);
  GetAtMost(fields, "max_recv_sge", uint32_t{kMaxPieces}, options.max_recv_sge);
  fields.GetOr("shared_receives", options.shared_receives);
  fields.GetOr("foreign_region", options.foreign_region);
  fields.GetOr("memory_access", options.memory_access);
  fields.GetOr("qp_access", options.qp_access);
  fields.Get("timeout_code", options.timeout_code);
  fields.Get("retry_count", options.retry_count);
  fields.Get("rnr_retry", options.rnr_retry);
  fields.Get("rnr_timer_code", options.rnr_timer_code);
  if (!fields.ok()) return Fail(fields.TakeError());
  return options;
}

json ReceiveJson(const ReceiveSpec& spec) {
  return {{"wr_id", spec.wr_id},
          {"pieces", PiecesJson(spec.pieces)},
          {"lkey", static_cast<int>(spec.lkey)}};
}

Expected<ReceiveSpec> ReceiveFromJson(const json& object) {
  ReceiveSpec spec;
  JsonFields fields(object, "ask.receive", ErrorClass::kRun);
  fields.Get("wr_id", spec.wr_id);
  GetPieces(fields, spec.pieces);
  GetNumber(fields, "lkey", Key::kForeign, spec.lkey);
  if (!fields.ok()) return Fail(fields.TakeError());
  return spec;
}

json SendJson(const SendSpec& spec) {
  return {{"wr_id", spec.wr_id},
          {"opcode", static_cast<int>(spec.opcode)},
          {"flags", spec.flags},
          {"pieces", PiecesJson(spec.pieces)},
          {"lkey", static_cast<int>(spec.lkey)},
          {"remote_offset", spec.remote_offset},
          {"rkey", static_cast<int>(spec.rkey)},
          {"imm", spec.imm},
          {"compare_add", spec.compare_add},
          {"swap", spec.swap}};
}

Expected<SendSpec> SendFromJson(const json& object) {
  SendSpec spec;
  JsonFields fields(object, "ask.send", ErrorClass::kRun);
  fields.Get("wr_id", spec.wr_id);
  GetNumber(fields, "opcode", IBV_WR_ATOMIC_FETCH_AND_ADD, spec.opcode);
  // An inline payload is read by the post call itself, whatever the address.
  GetAtMost<unsigned>(fields, "flags", IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
                      spec.flags);
  GetPieces(fields, spec.pieces);
  GetNumber(fields, "lkey", Key::kForeign, spec.lkey);
  fields.Get("remote_offset", spec.remote_offset);
  GetNumber(fields, "rkey", Key::kForeign, spec.rkey);
  fields.Get("imm", spec.imm);
  fields.Get("compare_add", spec.compare_add);
  fields.Get("swap", spec.swap);
  if (!fields.ok()) return Fail(fields.TakeError());
  return spec;
}

json CompletionJson(const ibv_wc& wc) {
  return {{"wr_id", wc.wr_id},       {"status", static_cast<int>(wc.status)},
          {"opcode", wc.opcode},     {"vendor_err", wc.vendor_err},
          {"byte_len", wc.byte_len}, {"imm", ntohl(wc.imm_data)},
          {"qp_num", wc.qp_num},     {"flags", wc.wc_flags}};
}

Expected<ibv_wc> CompletionFromJson(const json& object) {
  ibv_wc wc = {};
  uint32_t status = 0;
  uint32_t opcode = 0;
  uint32_t imm = 0;
  JsonFields fields(object, "answer.completion", ErrorClass::kRun);
  fields.Get("wr_id", wc.wr_id);
  fields.Get("status", status);
  fields.Get("opcode", opcode);
  fields.Get("vendor_err", wc.vendor_err);
  fields.Get("byte_len", wc.byte_len);
  fields.Get("imm", imm);
  fields.Get("qp_num", wc.qp_num);
  fields.Get("flags", wc.wc_flags);
  if (!fields.ok()) return Fail(fields.TakeError());
  wc.status = static_cast<ibv_wc_status>(status);
  wc.opcode = static_cast<ibv_wc_opcode>(opcode);
  wc.imm_data = htonl(imm);
  return wc;
}

}  // namespace

json ToJson(const Ask& ask) {
  json object = {{"call", static_cast<int>(ask.call)},
                 {"end", ask.end},
                 {"offset", ask.piece.offset},
                 {"bytes", ask.piece.bytes},
                 {"seed", ask.seed},
                 {"value", ask.value},
                 {"prefix", ask.prefix},
                 {"state", static_cast<int>(ask.state)},
                 {"packets", static_cast<int>(ask.packets)},
                 {"limit_ns", ask.limit.count()}};
  if (ask.call == Call::kMake) object["make"] = MakeJson(ask.make);
  if (ask.call == Call::kPostReceive) object["receive"] = ReceiveJson(ask.receive);
  if (ask.call == Call::kPostSend) object["send"] = SendJson(ask.send);
  return object;
}

Expected<Ask> AskFromJson(const json& object) {
  Ask ask;
  int64_t limit_ns = 0;
  JsonFields fields(object, "ask", ErrorClass::kRun);
  GetNumber(fields, "call", Call::kDone, ask.call);
  GetAtMost(fields, "end", kMaxEnds, ask.end);
  fields.Get("offset", ask.piece.offset);
  fields.Get("bytes", ask.piece.bytes);
  fields.Get("seed", ask.seed);
  fields.Get("value", ask.value);
  fields.Get("prefix", ask.prefix);
  GetNumber(fields, "state", IBV_QPS_ERR, ask.state);
  GetNumber(fields, "packets", LossyPacket::kReadResponse, ask.packets);
  GetAtMost(fields, "limit_ns", kMaxAskLimitNs, limit_ns);
  GetNested(fields, "make", MakeFromJson, ask.make);
  GetNested(fields, "receive", ReceiveFromJson, ask.receive);
  GetNested(fields, "send", SendFromJson, ask.send);
  if (!fields.ok()) return Fail(fields.TakeError());
  ask.limit = std::chrono::nanoseconds(limit_ns);
  return ask;
}

json ToJson(const Answer& answer) {
  json object = {{"value", answer.value}, {"found", answer.found}, {"text", OrNull(answer.text)}};
  if (answer.completion) object["completion"] = CompletionJson(*answer.completion);
  return object;
}

Expected<Answer> AnswerFromJson(const json& object) {
  Answer answer;
  ibv_wc completion = {};
  JsonFields fields(object, "answer", ErrorClass::kRun);
  fields.Get("value", answer.value);
  fields.Get("found", answer.found);
  fields.Get("text", answer.text);
  const bool completed = fields.Object("completion") != nullptr;
  GetNested(fields, "completion", CompletionFromJson, completion);
  if (!fields.ok()) return Fail(fields.TakeError());
  if (completed) answer.completion = completion;
  if (answer.text) answer.text = Printable(*answer.text, kMaxEventBytes);
  return answer;
}

}  // namespace verbscope
