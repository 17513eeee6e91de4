#include "cmd/output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "cmd/version.h"
#include "core/base/file_descriptor.h"
#include "core/host/host.h"
#include "core/record/record_json.h"
#include "reporters/json.h"
#include "reporters/text.h"

namespace verbscope {
namespace {

bool Utf8Locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view text(value);
    return text.find("UTF-8") != std::string_view::npos ||
           text.find("utf8") != std::string_view::npos;
  }
  return false;
}

int TerminalWidth() {
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return size.ws_col;
  return 80;
}

// All of it, or an errno.
int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace

void WriteStandardError(const std::string& line) {
  (void)!WriteAll(STDERR_FILENO, "verbscope: " + line + "\n");
}

std::string TextReport(const Record& record, const OutputOptions& options) {
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  const TextOptions text{
      .unicode = Utf8Locale(),
      .color = terminal && !options.no_color && std::getenv("NO_COLOR") == nullptr,
      .width = terminal ? TerminalWidth() : 80,
      .verbose = options.verbose};
  return record.command == "devices" ? RenderDevices(record, text) : RenderText(record, text);
}

Output::Output(const OutputOptions& options, std::string command,
               const std::vector<std::string>& argv, Record& record)
    : options_(options), record_(record), start_(std::chrono::steady_clock::now()) {
  record_.tool_version = kVersion;
  record_.tool_build = kBuild;
  record_.command = std::move(command);
  record_.argv = argv;
  record_.started_at = Rfc3339UtcNow();
  record_.local = DescribeHost("local");
}

void Output::Notice(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    record_.notices.push_back(text);
  }
  Say("note: " + text);
}

void Output::Say(const std::string& text) const {
  EndProgress();
  if (!options_.quiet) WriteStandardError(text);
}

void Output::Progress(const std::string& text) {
  if (options_.quiet || ::isatty(STDERR_FILENO) == 0) return;
  // To the beginning of the line, and what stood there is cleared behind the new text.
  (void)!WriteAll(STDERR_FILENO, "\r" + text + "\x1b[K");
  progress_shown_ = true;
}

void Output::EndProgress() const {
  if (!progress_shown_) return;
  progress_shown_ = false;
  (void)!WriteAll(STDERR_FILENO, "\r\x1b[K");
}

int Output::Fail(Error error, bool text) {
  record_.verdict = "error";
  record_.exit_code = ExitCode(error.error_class);
  record_.error = std::move(error);
  return Finish(text);
}

int Output::Finish(bool text) {
  EndProgress();
  record_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::string document;
  if (!options_.json_file.empty() && !file_refused_) {
    document = RenderJson(record_);
    if (Status status = WriteJsonFile(document); !status) {
      // A result that could not be kept is no success; a worse code stands.
      if (record_.exit_code != 0) {
        WriteStandardError("error: " + status.error().ToText());
      } else {
        record_.exit_code = ExitCode(status.error().error_class);
        record_.verdict = "error";
        record_.error = status.error();
      }
    }
  }
  if (record_.error) {
    WriteStandardError(fmt::format("error: {}{}",
                                   record_.error->side == Side::kPeer ? "the peer reports: " : "",
                                   record_.error->ToText()));
  }
  for (const CheckRow& check : record_.checks) {
    if (check.status != "fail") continue;
    WriteStandardError(fmt::format(
        "check failed: {}: {}{}; expected {}", Printable(check.name), Printable(check.observed),
        check.why.empty() ? "" : " (" + Printable(check.why) + ")", Printable(check.expected)));
    break;
  }
  // A failure without results leaves standard output empty: its one sentence is on standard error.
  std::string out;
  if (options_.json) {
    out = RenderJson(record_);
  } else if (text && (!record_.results.empty() || !record_.checks.empty() || record_.comparison ||
                      (record_.command == "devices" && !record_.error))) {
    out = TextReport(record_, options_);
  }
  if (const int error = WriteAll(STDOUT_FILENO, out); error != 0) {
    WriteStandardError("error: cannot write to standard output: " + ErrnoText(error));
    if (record_.exit_code == 0) return ExitCode(ErrorClass::kUsage);
  }
  return record_.exit_code;
}

Error Output::CannotWrite(std::string_view call, int errno_value) const {
  Error error = CallError(ErrorClass::kUsage, call, options_.json_file, errno_value);
  error.next_step = "give --json-file a path in a folder you can write to";
  return error;
}

std::string Output::Temporary() const {
  return fmt::format("{}.{}.tmp", options_.json_file, ::getpid());
}

Status Output::CheckDestinations() {
  if (options_.json_file.empty()) return {};
  struct stat target = {};
  const bool there = ::lstat(options_.json_file.c_str(), &target) == 0;
  int error = 0;
  if (there && !S_ISREG(target.st_mode)) {
    // Opening a pipe would wait for its reader.
    if (S_ISDIR(target.st_mode)) {
      error = EISDIR;
    } else if (::access(options_.json_file.c_str(), W_OK) != 0 && errno != ENOENT) {
      error = errno;
    }
  } else {
    // Permissions do not say it all (read-only or special file systems): the beginning of writing
    // does.
    const std::string temporary = Temporary();
    const FileDescriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file) error = errno;
    if (file) ::unlink(temporary.c_str());
  }
  if (error == 0) return {};
  file_refused_ = true;
  return verbscope::Fail(CannotWrite("open", error));
}

// Beside the target and renamed, so that a reader sees the old document or the new one, whole.
Status Output::WriteJsonFile(const std::string& document) const {
  struct stat target = {};
  // A device, a pipe or a link is written to, not replaced by a file.
  if (::lstat(options_.json_file.c_str(), &target) == 0 && !S_ISREG(target.st_mode)) {
    return WriteInPlace(document);
  }
  const std::string& path = options_.json_file;
  const std::string temporary = Temporary();
  const auto fail = [&](std::string_view call, int error) {
    ::unlink(temporary.c_str());
    return verbscope::Fail(CannotWrite(call, error));
  };
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return fail("open", errno);
  if (const int error = WriteAll(file.get(), document); error != 0) return fail("write", error);
  if (::fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS) return fail("fsync", errno);
  file.Reset();
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail("rename", errno);
  return {};
}

Status Output::WriteInPlace(const std::string& document) const {
  const std::string& path = options_.json_file;
  // A pipe that nobody reads is an error and no reason to wait.
  FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0666));
  if (file) ::fcntl(file.get(), F_SETFL, O_WRONLY);
  const int error = file ? WriteAll(file.get(), document) : errno;
  if (error == 0) return {};
  return verbscope::Fail(CannotWrite(file ? "write" : "open", error));
}

}  // namespace verbscope
