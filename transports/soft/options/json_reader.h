// Reads one JSON object of a config file, member by member, and keeps the first problem of the file
// with the path of the member ("fault.rules[2].action"). Members that nobody asked for are refused.
//
//   ConfigFile file("lossy.json");
//   ObjectReader port(json, "port", file);
//   port.Count("lid", options.lid, 0, 65535);   // absent: stays as it is
//   port.Finish();                              // refuses other members
//   if (file.error()) …
//
// Refers to the json it was made from; use it in one function of one thread. For this folder only.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_JSON_READER_H_
#define VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_JSON_READER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "transports/soft/options/value_text.h"

namespace verbscope::soft {

// The name and the first problem of a file.
class ConfigFile {
 public:
  explicit ConfigFile(std::string_view name) : where_("config " + Quoted(name) + ": ") {}

  void Complain(std::string message, std::string cause, std::string next_step = "");
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string where_;
  std::optional<Error> error_;
};

// The text as JSON: an object, not deep, no key twice. Null when it is not (then there is an
// error).
nlohmann::json ReadJson(std::string_view text, ConfigFile& file);

class ObjectReader {
 public:
  // `path` of this object in the file; empty: the outermost.
  ObjectReader(const nlohmann::json& json, std::string path, ConfigFile& file);

  // Scalars. Each does nothing when the member is absent, and complains when it has another type or
  // is not allowed. True: the member was there and is stored.
  template <class T>
  bool Count(std::string_view key, T& value, uint64_t min, uint64_t max) {
    const std::optional<uint64_t> count = CountOf(key, min, max);
    if (count) value = static_cast<T>(*count);
    return count.has_value();
  }
  template <class T>
  bool Word(std::string_view key, T& value, std::span<const Choice<T>> choices) {
    const nlohmann::json* member = Find(key);
    if (member == nullptr) return false;
    const std::optional<T> found =
        member->is_string() ? FindChoice(TextOf(*member), choices) : std::nullopt;
    if (!found) return RefuseWord(key, *member, NamesOf(choices));
    value = *found;
    return true;
  }
  // A text that `parse` takes.
  template <class T, class Parse>
  bool Text(std::string_view key, T& value, Parse parse, std::string_view allowed) {
    const nlohmann::json* member = Find(key);
    if (member == nullptr) return false;
    auto parsed = member->is_string() ? parse(TextOf(*member)) : std::nullopt;
    if (!parsed) return Refuse(key, *member, allowed);
    value = std::move(*parsed);
    return true;
  }
  bool Integer(std::string_view key, int64_t& value, int64_t min, int64_t max);
  bool Flag(std::string_view key, bool& value);
  bool Mtu(std::string_view key, uint32_t& value);
  bool Chance(std::string_view key, double& value);
  bool Errno(std::string_view key, int& value);
  bool Delay(std::string_view key, std::chrono::nanoseconds& value) {
    return Text(key, value, DelayFromText, kDelayAllowed);
  }

  // Calls `read` with the reader of the object of this key, if there is one, and finishes it.
  void Object(std::string_view key, const std::function<void(ObjectReader&)>& read);
  // Calls `read` for each element of the array of this key. True: the array was there.
  bool Array(std::string_view key, size_t max_count,
             const std::function<void(ObjectReader&)>& read);

  // Calls `take` for each element of the array of words of this key.
  template <class T, class Take>
  void Words(std::string_view key, std::span<const Choice<T>> choices, Take take) {
    const nlohmann::json* member = Find(key);
    if (member == nullptr) return;
    if (!member->is_array()) {
      Refuse(key, *member, "allowed: an array");
      return;
    }
    for (size_t i = 0; i < member->size(); ++i) {
      const nlohmann::json& word = (*member)[i];
      const std::optional<T> found =
          word.is_string() ? FindChoice(TextOf(word), choices) : std::nullopt;
      if (found) {
        take(*found);
      } else {
        RefuseWord(ElementOf(key, i), word, NamesOf(choices));
      }
    }
  }

  bool Has(std::string_view key) const { return json_.is_object() && json_.contains(key); }
  // Complains when the member is absent.
  void Require(std::string_view key);
  // Complains about this object or, with a key, about its member.
  void Complain(std::string_view key, std::string_view what, std::string cause);
  // Refuses members that nobody asked for.
  void Finish();

  // As the other readers, for words that are looked up elsewhere. Returns false.
  bool RefuseWord(std::string_view key, const nlohmann::json& value,
                  std::span<const std::string_view> names);
  // The member, noted as known; null when absent.
  const nlohmann::json* Find(std::string_view key);
  static std::string_view TextOf(const nlohmann::json& member) {
    return member.get_ref<const std::string&>();
  }

 private:
  std::optional<uint64_t> CountOf(std::string_view key, uint64_t min, uint64_t max);
  bool Refuse(std::string_view key, const nlohmann::json& value, std::string_view allowed,
              std::string next_step = "");
  std::string PathOf(std::string_view key) const;
  static std::string ElementOf(std::string_view key, size_t index);

  const nlohmann::json& json_;
  const std::string path_;
  ConfigFile& file_;
  std::vector<std::string_view> known_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_JSON_READER_H_
