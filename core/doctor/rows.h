// The rows of a preflight while they are made. One thread.
#ifndef VERBSCOPE_CORE_DOCTOR_ROWS_H_
#define VERBSCOPE_CORE_DOCTOR_ROWS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/doctor/host_tree.h"
#include "core/record/preflight.h"

namespace verbscope {

// What a row says on every host. In `fix`, NAME stands for the subject of the place.
struct RowText {
  std::string_view name;
  std::string_view good;
  std::string_view symptom = {};
  std::string_view fix = {};
};

// Where a value is from and what it is about.
struct Place {
  std::string about = "host";
  std::string file = {};
  std::string subject = {};  // network or RDMA device that the fix is for
};

class PreflightRows {
 public:
  void Ok(const RowText& text, const Place& place, std::string value) {
    Add(text, "ok", place, std::move(value));
  }
  void Warn(const RowText& text, const Place& place, std::string value) {
    Add(text, "warn", place, std::move(value));
  }
  void Fail(const RowText& text, const Place& place, std::string value) {
    Add(text, "fail", place, std::move(value));
  }
  void Skip(const RowText& text, const Place& place, std::string why) {
    Add(text, "skip", place, std::move(why));
  }
  // Ok, or a warning.
  void OkIf(bool good, const RowText& text, const Place& place, std::string value) {
    Add(text, good ? "ok" : "warn", place, std::move(value));
  }

  std::vector<PreflightRow> Take() { return std::move(rows_); }

 private:
  void Add(const RowText& text, std::string_view status, const Place& place, std::string value);

  std::vector<PreflightRow> rows_;
};

// The text of the place's file; without one, or with an empty one, a row is skipped and says why.
std::optional<std::string> TextOrSkip(const HostTree& tree, const RowText& text, const Place& place,
                                      PreflightRows& rows);
// The same of a decimal number; rubbish is a skip too.
std::optional<int> NumberOrSkip(const HostTree& tree, const RowText& text, const Place& place,
                                PreflightRows& rows);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_DOCTOR_ROWS_H_
