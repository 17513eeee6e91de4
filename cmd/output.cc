#include "cmd/output.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include "cmd/judgement_lines.h"
#include "cmd/version.h"
#include "core/causes/diagnosis.h"
#include "core/host/host.h"
#include "core/record/outcome.h"
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
    : options_(options),
      record_(record),
      files_(options.files),
      start_(std::chrono::steady_clock::now()) {
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
    // What several runs of one command have to say alike is said once.
    const bool known = std::ranges::find(record_.notices, text) != record_.notices.end();
    if (known) return;
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
  SetError(std::move(error), record_);
  AddCauses(record_);
  return Finish(text);
}

int Output::Finish(bool text) {
  EndProgress();
  record_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  WriteFiles();
  if (record_.error) {
    WriteStandardError(fmt::format("error: {}{}",
                                   record_.error->side == Side::kPeer ? "the peer reports: " : "",
                                   record_.error->ToText()));
  }
  for (const std::string& line : JudgementLines(record_)) WriteStandardError(line);
  // A failure without results leaves standard output empty: its one sentence is on standard error.
  std::string out;
  if (options_.json) {
    out = RenderJson(record_);
  } else if (text && (!record_.results.empty() || !record_.checks.empty() || record_.comparison ||
                      !record_.catalog.empty() || !record_.preflight.empty() ||
                      (record_.command == "devices" && !record_.error))) {
    out = TextReport(record_, options_);
  }
  if (const int error = WriteAll(STDOUT_FILENO, out); error != 0) {
    WriteStandardError("error: cannot write to standard output: " + ErrnoText(error));
    if (record_.exit_code == 0) return ExitCode(ErrorClass::kUsage);
  }
  return record_.exit_code;
}

// A result that could not be kept is no success; a worse code stands.
void Output::WriteFiles() {
  const std::span<const Record> records(&record_, 1);
  std::vector<Error> problems = files_.Write(records);
  for (Error& problem : problems) {
    if (record_.exit_code != 0) {
      WriteStandardError("error: " + problem.ToText());
      continue;
    }
    SetError(std::move(problem), record_);
  }
  // The other files say what became of the command, not what it was before.
  if (!problems.empty()) files_.Replace(records);
}

Status Output::CheckDestinations(std::span<const std::string> inputs) {
  if (Status status = files_.CheckInputs(inputs); !status) {
    files_ = ResultFiles({});  // not even what went wrong is written there
    return status;
  }
  return files_.Check();
}

}  // namespace verbscope
