// Reads the members of one JSON object into plain data, and keeps the first problem. The bytes may
// come from another host or from a file, so nothing is assumed: every type and range is checked,
// and the error names the member. Unknown members are ignored.
//
//   JsonFields fields(json, "plan", ErrorClass::kSetup);
//   fields.Get("qps", plan.qps);          // must be there
//   fields.GetOr("repeat", plan.repeat);  // absent: stays as it is
//   fields.Get("iterations", optional);   // an optional: null or absent is no value
//   if (!fields.ok()) return Fail(fields.TakeError());
//
// Refers to the json it was made from; use it in one function of one thread.
#ifndef VERBSCOPE_CORE_PLAN_JSON_FIELDS_H_
#define VERBSCOPE_CORE_PLAN_JSON_FIELDS_H_

#include <cmath>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace verbscope {

class JsonFields {
 public:
  // `where` leads every message: "plan", "local.device".
  JsonFields(const nlohmann::json& json, std::string_view where, ErrorClass error_class)
      : json_(json), where_(where), error_class_(error_class) {
    if (!json.is_object()) Complain("", "is not an object");
  }

  bool ok() const { return !error_; }
  Error TakeError() { return std::move(*error_); }

  // A member of a scalar type: bool, integers (within the range of T), double (finite), string.
  template <class T>
  void Get(const char* key, T& value) {
    if (const nlohmann::json* member = Find(key, /*required=*/true)) Store(key, *member, value);
  }
  template <class T>
  void GetOr(const char* key, T& value) {
    if (const nlohmann::json* member = Find(key, /*required=*/false)) Store(key, *member, value);
  }
  template <class T>
  void Get(const char* key, std::optional<T>& value) {
    value.reset();
    const nlohmann::json* member = Find(key, /*required=*/false);
    if (member == nullptr || member->is_null()) return;
    T scalar{};
    Store(key, *member, scalar);
    if (ok()) value = std::move(scalar);
  }
  // An array of scalars, at most `max_count`.
  template <class T>
  void GetArray(const char* key, std::vector<T>& values, size_t max_count) {
    const nlohmann::json* array = Array(key, max_count);
    if (array == nullptr) return;
    values.clear();
    for (const nlohmann::json& element : *array) {
      T value{};
      Store(key, element, value);
      values.push_back(std::move(value));
    }
  }

  // The member itself, checked for its kind: null when absent, null in JSON, or wrong (latched).
  const nlohmann::json* Object(const char* key) {
    const nlohmann::json* member = Find(key, /*required=*/false);
    if (member == nullptr || member->is_null()) return nullptr;
    if (!member->is_object()) return Complain(key, "is not an object");
    return member;
  }
  const nlohmann::json* Array(const char* key, size_t max_count) {
    const nlohmann::json* member = Find(key, /*required=*/true);
    if (member == nullptr) return nullptr;
    if (!member->is_array()) return Complain(key, "is not an array");
    if (member->size() > max_count) return Complain(key, "has too many elements");
    return member;
  }

  // Latches "WHERE.KEY WHAT" unless there is an error already. Returns null for use in a return.
  const nlohmann::json* Complain(std::string_view key, std::string_view what) {
    if (error_) return nullptr;
    error_.emplace();
    error_->error_class = error_class_;
    error_->message = where_;
    if (!key.empty()) error_->message.append(".").append(key);
    error_->message.append(" ").append(what);
    return nullptr;
  }
  // Takes over the error of a nested object.
  void Adopt(Error error) {
    if (error_) return;
    error_ = std::move(error);
    error_->error_class = error_class_;
  }

 private:
  const nlohmann::json* Find(const char* key, bool required) {
    if (!ok()) return nullptr;
    const auto member = json_.find(key);
    if (member != json_.end()) return &*member;
    if (required) Complain(key, "is missing");
    return nullptr;
  }

  void Store(const char* key, const nlohmann::json& json, bool& value) {
    if (!json.is_boolean()) return void(Complain(key, "is neither true nor false"));
    value = json.get<bool>();
  }
  void Store(const char* key, const nlohmann::json& json, std::string& value) {
    if (!json.is_string()) return void(Complain(key, "is not a text"));
    value = json.get_ref<const std::string&>();
  }
  void Store(const char* key, const nlohmann::json& json, double& value) {
    if (!json.is_number() || !std::isfinite(json.get<double>())) {
      return void(Complain(key, "is not a finite number"));
    }
    value = json.get<double>();
  }
  template <std::integral T>
  void Store(const char* key, const nlohmann::json& json, T& value) {
    // nlohmann keeps what does not fit 64 bits as a double, which is then no integer here.
    if (!json.is_number_integer()) return void(Complain(key, "is not a whole number"));
    const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<uint64_t>())
                                                : std::in_range<T>(json.get<int64_t>());
    if (!fits) return void(Complain(key, "is outside its range: " + json.dump()));
    value = json.get<T>();
  }

  const nlohmann::json& json_;
  std::string where_;
  ErrorClass error_class_;
  std::optional<Error> error_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_PLAN_JSON_FIELDS_H_
