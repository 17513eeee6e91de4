#include "cmd/result_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/file_descriptor.h"
#include "core/record/record_json.h"
#include "reporters/bmf.h"
#include "reporters/csv.h"
#include "reporters/hdr_log.h"
#include "reporters/html.h"
#include "reporters/json.h"
#include "reporters/junit.h"
#include "reporters/markdown.h"
#include "reporters/openmetrics.h"

namespace verbscope {
namespace {

using Records = std::span<const Record>;

template <std::string (*kRender)(Records)>
std::string Plain(Records records, const std::string& /*path*/) {
  return kRender(records);
}

std::string Json(Records records, const std::string& /*path*/) {
  return records.empty() ? std::string() : RenderJson(records.front());
}

std::string Hdr(Records records, const std::string& path) {
  return path.ends_with(".hgrm") ? RenderHgrm(records) : RenderHdrLog(records);
}

constexpr FileFormat kFormats[] = {
    {"--json-file", "the JSON document into a file", Json, /*several=*/false},
    {"--html", "a page with plots, in one file", Plain<RenderHtml>, true},
    {"--csv", "a table with a row for each result", Plain<RenderCsv>, true},
    {"--junit", "JUnit XML: assertions and checks as test cases", Plain<RenderJunit>, true},
    {"--openmetrics", "OpenMetrics text, also for node_exporter's textfile collector",
     Plain<RenderOpenMetrics>, true},
    {"--hdr", "HdrHistogram interval log; a FILE.hgrm gets a percentile distribution", Hdr, true},
    {"--markdown", "a summary in Markdown for the page of a CI job", Plain<RenderMarkdown>, true},
    {"--bmf", "Bencher Metric Format", Plain<RenderBmf>, true},
    {"--gha-smaller", "latencies for github-action-benchmark (customSmallerIsBetter)",
     Plain<RenderGhaSmaller>, true},
    {"--gha-bigger", "bandwidths for github-action-benchmark (customBiggerIsBetter)",
     Plain<RenderGhaBigger>, true},
};

bool IsRegularOrNew(const std::string& path) {
  struct stat target = {};
  return ::lstat(path.c_str(), &target) != 0 || S_ISREG(target.st_mode);
}

// The file behind a path, whether it is there or not, also where links lead to what is not there.
std::string Canonical(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as many as the kernel follows
  std::error_code problem;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, problem); ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, problem);
    if (problem) break;
    path = path.parent_path() / target;  // an absolute target stands for itself
  }
  // Absolute first: a name of nothing stays relative otherwise.
  const std::filesystem::path canonical =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, problem), problem);
  return problem ? path.string() : canonical.string();
}

// A new file beside `path`, to be renamed to it. What another process left there, or still writes,
// stays as it is.
FileDescriptor CreateBeside(const std::string& path, std::string& name) {
  constexpr int kTries = 100;
  FileDescriptor file;
  for (int i = 0; i < kTries && !file; ++i) {
    name = fmt::format("{}.{}-{}.tmp", path, ::getpid(), i);
    file.Reset(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file && errno != EEXIST) break;
  }
  return file;
}

}  // namespace

std::span<const FileFormat> FileFormats() { return kFormats; }

int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

ResultFiles::ResultFiles(FilePaths paths) : paths_(std::move(paths)) {
  paths_.resize(std::size(kFormats));
}

bool ResultFiles::any() const {
  return std::ranges::any_of(paths_, [](const std::string& path) { return !path.empty(); });
}

std::string ResultFiles::OptionsOfOneRecord() const {
  std::string options;
  for (size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].empty() || kFormats[i].several) continue;
    options += fmt::format("{}{}", options.empty() ? "" : ", ", kFormats[i].option);
  }
  return options;
}

Status ResultFiles::Check() {
  checked_ = true;
  Status first;
  for (size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].empty()) continue;
    Status status = CheckName(i);
    if (status) status = CheckSame(i);
    if (status) status = CheckOpen(i);
    if (status) continue;
    refused_.insert(i);
    if (first) first = std::move(status);
  }
  return first;
}

Status ResultFiles::CheckInputs(std::span<const std::string> inputs) const {
  for (const std::string& input : inputs) {
    for (size_t i = 0; i < paths_.size(); ++i) {
      std::error_code none;  // not there: then they are not the same
      if (paths_[i].empty() || !std::filesystem::equivalent(input, paths_[i], none)) continue;
      return Fail(UsageError(fmt::format("{} {}: this is one of the files to read",
                                         kFormats[i].option, Printable(paths_[i])),
                             {}, fmt::format("give {} another name", kFormats[i].option)));
    }
  }
  return {};
}

Status ResultFiles::CheckName(size_t index) const {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat stream = {};
    struct stat target = {};
    const bool same = ::fstat(fd, &stream) == 0 && S_ISREG(stream.st_mode) &&
                      ::stat(paths_[index].c_str(), &target) == 0 &&
                      stream.st_dev == target.st_dev && stream.st_ino == target.st_ino;
    if (!same) continue;
    return Fail(
        UsageError(fmt::format("{} {} is where standard {} goes, which would be written over it",
                               kFormats[index].option, Printable(paths_[index]),
                               fd == STDOUT_FILENO ? "output" : "error"),
                   {}, fmt::format("give {} a file of its own", kFormats[index].option)));
  }
  if (paths_[index] != "-") return {};
  return Fail(UsageError(
      fmt::format("{} -: standard output carries the report, or with --json the document",
                  kFormats[index].option),
      {}, fmt::format("give {} the name of a file", kFormats[index].option)));
}

Status ResultFiles::CheckSame(size_t index) const {
  const std::string path = Canonical(paths_[index]);
  if (path == "/dev/null") return {};
  for (size_t i = 0; i < paths_.size(); ++i) {
    if (i == index || paths_[i].empty() || paths_[i] == "-") continue;
    std::error_code none;  // not there: then only the names can say that they are the same
    if (Canonical(paths_[i]) != path && !std::filesystem::equivalent(paths_[i], path, none)) {
      continue;
    }
    return Fail(UsageError(
        fmt::format("{} and {} name the same file, {}", kFormats[std::min(i, index)].option,
                    kFormats[std::max(i, index)].option, Printable(paths_[index])),
        {}, "give each its own file"));
  }
  return {};
}

Status ResultFiles::CheckOpen(size_t index) const {
  const std::string& path = paths_[index];
  struct stat target = {};
  int error = 0;
  if (::lstat(path.c_str(), &target) == 0 && !S_ISREG(target.st_mode)) {
    // Opening a pipe would wait for its reader.
    if (S_ISDIR(target.st_mode)) {
      error = EISDIR;
    } else if (::access(path.c_str(), W_OK) != 0 && errno != ENOENT) {
      error = errno;
    }
  } else {
    // Permissions do not say it all (read-only or special file systems): the beginning of writing
    // does.
    std::string temporary;
    const FileDescriptor file = CreateBeside(path, temporary);
    if (!file) error = errno;
    if (file) ::unlink(temporary.c_str());
  }
  if (error == 0) return {};
  return Fail(CannotWrite(index, "open", error));
}

std::vector<Error> ResultFiles::Write(std::span<const Record> records) {
  // A command line that could not be parsed has not been checked; its errors are said already.
  if (!checked_) (void)Check();
  std::vector<Error> problems;
  for (size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].empty() || refused_.contains(i)) continue;
    Status status = WriteOne(i, kFormats[i].render(records, paths_[i]));
    if (status) continue;
    refused_.insert(i);
    problems.push_back(std::move(status.error()));
  }
  return problems;
}

void ResultFiles::Replace(std::span<const Record> records) {
  for (size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].empty() || refused_.contains(i) || !IsRegularOrNew(paths_[i])) continue;
    (void)WriteOne(i, kFormats[i].render(records, paths_[i]));
  }
}

Status ResultFiles::WriteOne(size_t index, const std::string& text) const {
  return IsRegularOrNew(paths_[index]) ? WriteBeside(index, text) : WriteInPlace(index, text);
}

Status ResultFiles::WriteBeside(size_t index, const std::string& text) const {
  const std::string& path = paths_[index];
  std::string temporary;
  FileDescriptor file = CreateBeside(path, temporary);
  if (!file) return Fail(CannotWrite(index, "open", errno));
  const auto fail = [&](std::string_view call, int error) {
    ::unlink(temporary.c_str());
    return Fail(CannotWrite(index, call, error));
  };
  if (const int error = WriteAll(file.get(), text); error != 0) return fail("write", error);
  if (::fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS) return fail("fsync", errno);
  file.Reset();
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail("rename", errno);
  return {};
}

Status ResultFiles::WriteInPlace(size_t index, const std::string& text) const {
  // A pipe that nobody reads is an error and no reason to wait.
  FileDescriptor file(
      ::open(paths_[index].c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0666));
  if (file) ::fcntl(file.get(), F_SETFL, O_WRONLY);
  const int error = file ? WriteAll(file.get(), text) : errno;
  if (error == 0) return {};
  return Fail(CannotWrite(index, file ? "write" : "open", error));
}

Error ResultFiles::CannotWrite(size_t index, std::string_view call, int errno_value) const {
  Error error = CallError(ErrorClass::kUsage, call, Printable(paths_[index]), errno_value);
  error.next_step =
      errno_value == ENOSPC || errno_value == EDQUOT
          ? fmt::format("make room there, or give {} a path elsewhere", kFormats[index].option)
          : fmt::format("give {} a path in a folder you can write to", kFormats[index].option);
  return error;
}

}  // namespace verbscope
