#include "reporters/json.h"

#include <algorithm>
#include <string_view>

#include "core/record/record_json.h"

namespace verbscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxColumns = 100;

// Never throws, whatever the text: what is not UTF-8 is replaced.
std::string Dump(const Json& value) {
  return value.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// "{"a": 1, "b": [2, 3]}" on one line, or empty when there is more in it than plain values and, in
// an object, pairs of them.
std::string OneLine(const Json& value) {
  std::string line(1, value.is_object() ? '{' : '[');
  std::string_view separator;
  for (const auto& [key, member] : value.items()) {
    const bool is_pair = value.is_object() && member.is_array() && member.size() == 2;
    const bool is_plain = !member.is_structured() || member.empty();
    if (!is_plain && !is_pair) return "";
    const std::string text = is_plain ? Dump(member) : OneLine(member);
    if (text.empty()) return "";
    line += separator;
    if (value.is_object()) line += Dump(key) + ": ";
    line += text;
    separator = ", ";
    if (line.size() > kMaxColumns) return "";
  }
  return line + (value.is_object() ? '}' : ']');
}

// `indent` is that of the lines within; `column` is where the value begins.
void Write(const Json& value, size_t indent, size_t column, std::string& text) {
  if (!value.is_structured() || value.empty()) {
    text += Dump(value);
    return;
  }
  if (const std::string line = OneLine(value);
      !line.empty() && column + line.size() < kMaxColumns) {
    text += line;
    return;
  }
  text += value.is_object() ? '{' : '[';
  std::string_view separator = "\n";
  for (const auto& [key, member] : value.items()) {
    const std::string head = value.is_object() ? Dump(key) + ": " : "";
    text.append(separator).append(indent + 2, ' ').append(head);
    Write(member, indent + 2, indent + 2 + head.size(), text);
    separator = ",\n";
  }
  text.append("\n").append(indent, ' ');
  text += value.is_object() ? '}' : ']';
}

}  // namespace

std::string RenderJson(const Record& record) {
  std::string text;
  Write(ToJson(record), 0, 0, text);
  text += '\n';
  return text;
}

}  // namespace verbscope
