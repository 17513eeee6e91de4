#include "core/base/error.h"

#include <fmt/core.h>

#include <array>
#include <system_error>
#include <utility>

namespace verbscope {
namespace {

struct ClassRow {
  ErrorClass error_class;
  std::string_view name;
  int exit_code;
};

constexpr std::array<ClassRow, 8> kClasses = {{
    {ErrorClass::kUsage, "usage", 1},
    {ErrorClass::kInternal, "internal", 1},
    {ErrorClass::kSetup, "setup", 2},
    {ErrorClass::kVerification, "verification", 3},
    {ErrorClass::kInconclusive, "inconclusive", 4},
    {ErrorClass::kRun, "run", 5},
    {ErrorClass::kDeadline, "deadline", 6},
    {ErrorClass::kInterrupted, "interrupted", 130},
}};

const ClassRow& Row(ErrorClass error_class) {
  for (const ClassRow& row : kClasses) {
    if (row.error_class == error_class) return row;
  }
  return kClasses[1];
}

}  // namespace

int ExitCode(ErrorClass error_class) { return Row(error_class).exit_code; }

std::string_view Name(ErrorClass error_class) { return Row(error_class).name; }

std::string_view Name(Side side) { return side == Side::kLocal ? "local" : "peer"; }

ErrorClass ErrorClassFromName(std::string_view name) {
  for (const ClassRow& row : kClasses) {
    if (row.name == name) return row.error_class;
  }
  return ErrorClass::kInternal;
}

std::string Error::ToText() const {
  std::string text = message;
  if (!cause.empty()) text += ": " + cause;
  if (!text.empty() && text.back() != '.') text += '.';
  if (!next_step.empty()) text += " Next: " + next_step;
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

Error SetupError(std::string message, std::string cause, std::string next_step) {
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.message = std::move(message);
  error.cause = std::move(cause);
  error.next_step = std::move(next_step);
  return error;
}

Error UsageError(std::string message, std::string cause, std::string next_step) {
  Error error = SetupError(std::move(message), std::move(cause), std::move(next_step));
  error.error_class = ErrorClass::kUsage;
  return error;
}

Error CallError(ErrorClass error_class, std::string_view call, std::string_view parameter,
                int errno_value) {
  Error error;
  error.error_class = error_class;
  error.errno_value = errno_value;
  error.message = fmt::format("{}({}) failed: {}", call, parameter, ErrnoText(errno_value));
  return error;
}

std::string ErrnoText(int errno_value) { return std::generic_category().message(errno_value); }

}  // namespace verbscope
