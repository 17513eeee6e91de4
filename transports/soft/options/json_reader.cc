#include "transports/soft/options/json_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

namespace verbscope::soft {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 8;

// Sees the file while it is parsed: what the finished document no longer shows.
class Watch {
 public:
  explicit Watch(ConfigFile& file) : file_(file) {}

  bool See(int depth, json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end && !keys_.empty()) keys_.pop_back();
    if (event == Event::key && !keys_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) {
        file_.Complain("the key " + Quoted(key) + " is given twice in one object", "");
      }
    }
    const bool deep =
        depth > kMaxDepth && (event == Event::object_start || event == Event::array_start);
    if (deep) file_.Complain("is nested too deeply", "no option needs more than 8 levels");
    return !deep;
  }

 private:
  ConfigFile& file_;
  std::vector<std::set<std::string>> keys_;  // of the open objects
};

// "line 3, column 5" of the byte, which counts from 1.
std::string PositionOf(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t newline = before.rfind('\n');
  const size_t column = newline == before.npos ? before.size() : before.size() - newline - 1;
  return fmt::format("line {}, column {}", line, column + 1);
}

std::string Shown(const json& value) {
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  if (value.is_object()) return "{...}";
  if (value.is_array()) return "[...]";
  return value.dump();
}

}  // namespace

void ConfigFile::Complain(std::string message, std::string cause, std::string next_step) {
  if (error_) return;
  error_ = UsageError(where_ + std::move(message), std::move(cause), std::move(next_step));
}

json ReadJson(std::string_view text, ConfigFile& file) {
  Watch watch(file);
  const auto see = [&watch](int depth, json::parse_event_t event, json& parsed) {
    return watch.See(depth, event, parsed);
  };
  json document;
  try {
    document = json::parse(text, see);
  } catch (const json::parse_error& error) {
    file.Complain("is not JSON", "the problem is at " + PositionOf(text, error.byte));
  } catch (const json::exception&) {
    file.Complain("is not JSON", "a number is too large for any option");
  }
  if (file.error()) return nullptr;
  return document;
}

ObjectReader::ObjectReader(const json& value, std::string path, ConfigFile& file)
    : json_(value), path_(std::move(path)), file_(file) {
  if (!value.is_object()) Complain("", "is not an object", "");
}

std::string ObjectReader::PathOf(std::string_view key) const {
  if (key.empty()) return path_.empty() ? "the document" : path_;
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

std::string ObjectReader::ElementOf(std::string_view key, size_t index) {
  return fmt::format("{}[{}]", key, index);
}

void ObjectReader::Complain(std::string_view key, std::string_view what, std::string cause) {
  file_.Complain(fmt::format("{} {}", PathOf(key), what), std::move(cause));
}

bool ObjectReader::Refuse(std::string_view key, const json& value, std::string_view allowed,
                          std::string next_step) {
  file_.Complain(fmt::format("{}={} is refused", PathOf(key), Shown(value)), std::string(allowed),
                 std::move(next_step));
  return false;
}

bool ObjectReader::RefuseWord(std::string_view key, const json& value,
                              std::span<const std::string_view> names) {
  return Refuse(key, value, "allowed: " + Listed(names),
                value.is_string() ? Suggestion(TextOf(value), names) : "");
}

const json* ObjectReader::Find(std::string_view key) {
  known_.push_back(key);
  if (!json_.is_object()) return nullptr;
  const auto member = json_.find(key);
  return member == json_.end() ? nullptr : &*member;
}

std::optional<uint64_t> ObjectReader::CountOf(std::string_view key, uint64_t min, uint64_t max) {
  const json* member = Find(key);
  if (member == nullptr) return std::nullopt;
  if (member->is_number_unsigned()) {
    const auto count = member->get<uint64_t>();
    if (count >= min && count <= max) return count;
  }
  Refuse(key, *member, fmt::format("allowed: a whole number from {} to {}", min, max));
  return std::nullopt;
}

bool ObjectReader::Integer(std::string_view key, int64_t& value, int64_t min, int64_t max) {
  const json* member = Find(key);
  if (member == nullptr) return false;
  const bool fits = member->is_number_integer() &&
                    !(member->is_number_unsigned() && member->get<uint64_t>() > INT64_MAX);
  if (!fits || member->get<int64_t>() < min || member->get<int64_t>() > max) {
    return Refuse(key, *member, fmt::format("allowed: a whole number from {} to {}", min, max));
  }
  value = member->get<int64_t>();
  return true;
}

bool ObjectReader::Flag(std::string_view key, bool& value) {
  const json* member = Find(key);
  if (member == nullptr) return false;
  if (!member->is_boolean()) return Refuse(key, *member, "allowed: true or false");
  value = member->get<bool>();
  return true;
}

bool ObjectReader::Mtu(std::string_view key, uint32_t& value) {
  const json* member = Find(key);
  if (member == nullptr) return false;
  if (!member->is_number_unsigned() || !IsMtu(member->get<uint64_t>())) {
    return Refuse(key, *member, kMtuAllowed);
  }
  value = member->get<uint32_t>();
  return true;
}

bool ObjectReader::Chance(std::string_view key, double& value) {
  const json* member = Find(key);
  if (member == nullptr) return false;
  std::optional<double> chance;
  if (member->is_string()) chance = ChanceFromText(TextOf(*member));
  if (member->is_number()) chance = member->get<double>();
  if (!chance || *chance < 0 || *chance > 1) return Refuse(key, *member, kChanceAllowed);
  value = *chance;
  return true;
}

bool ObjectReader::Errno(std::string_view key, int& value) {
  constexpr uint64_t kMaxErrno = 4095;
  const json* member = Find(key);
  if (member == nullptr) return false;
  std::optional<int> code;
  if (member->is_string()) code = ErrnoFromText(TextOf(*member));
  if (member->is_number_unsigned() && member->get<uint64_t>() <= kMaxErrno) {
    code = member->get<int>();
  }
  if (!code || *code == 0) return Refuse(key, *member, kErrnoAllowed);
  value = *code;
  return true;
}

void ObjectReader::Object(std::string_view key, const std::function<void(ObjectReader&)>& read) {
  const json* member = Find(key);
  if (member == nullptr) return;
  ObjectReader reader(*member, PathOf(key), file_);
  read(reader);
  reader.Finish();
}

bool ObjectReader::Array(std::string_view key, size_t max_count,
                         const std::function<void(ObjectReader&)>& read) {
  const json* member = Find(key);
  if (member == nullptr) return false;
  if (!member->is_array()) return Refuse(key, *member, "allowed: an array");
  if (member->size() > max_count) {
    Complain(key, fmt::format("has {} elements", member->size()),
             fmt::format("at most {} are allowed", max_count));
    return false;
  }
  for (size_t i = 0; i < member->size(); ++i) {
    ObjectReader reader((*member)[i], fmt::format("{}[{}]", PathOf(key), i), file_);
    read(reader);
    reader.Finish();
  }
  return true;
}

void ObjectReader::Require(std::string_view key) {
  if (!Has(key)) Complain(key, "is missing", "");
}

void ObjectReader::Finish() {
  if (!json_.is_object()) return;
  for (const auto& [key, value] : json_.items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string path = path_.empty() ? key : fmt::format("{}.{}", path_, key);
    file_.Complain("unknown key " + Quoted(path), "the keys here are " + Listed(known_),
                   Suggestion(key, known_));
  }
}

}  // namespace verbscope::soft
