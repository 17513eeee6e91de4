#include "transports/control/error_json.h"

#include <string>

#include "transports/control/sanitize.h"

namespace verbscope {
namespace {

using nlohmann::json;

std::string TextMember(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return {};
  return Sanitize(it->get_ref<const std::string&>(), kMaxErrorTextBytes);
}

// Largest errno a kernel can return (MAX_ERRNO of Linux' err.h).
constexpr int kMaxErrno = 4095;

int ErrnoMember(const json& object) {
  const auto it = object.find("errno");
  if (it == object.end() || !it->is_number_integer()) return 0;
  if (it->is_number_unsigned() && it->get<uint64_t>() > kMaxErrno) return 0;
  const auto value = it->get<int64_t>();
  return value >= 0 && value <= kMaxErrno ? static_cast<int>(value) : 0;
}

}  // namespace

json ErrorToWire(const Error& error) {
  return {{"class", Name(error.error_class)}, {"side", Name(error.side)},
          {"message", error.message},         {"cause", error.cause},
          {"next_step", error.next_step},     {"status", error.status},
          {"errno", error.errno_value}};
}

Error ErrorFromWire(const json& json) {
  Error error;
  if (json.is_object()) {
    error.error_class = ErrorClassFromName(TextMember(json, "class"));
    error.side = TextMember(json, "side") == Name(Side::kPeer) ? Side::kPeer : Side::kLocal;
    error.message = TextMember(json, "message");
    error.cause = TextMember(json, "cause");
    error.next_step = TextMember(json, "next_step");
    error.status = TextMember(json, "status");
    error.errno_value = ErrnoMember(json);
  }
  if (error.message.empty()) error.message = "an error without a message";
  return error;
}

}  // namespace verbscope
