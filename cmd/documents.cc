#include "cmd/documents.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/file_descriptor.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

using nlohmann::json;

std::string NameOf(const std::string& path) { return path == "-" ? "standard input" : path; }

Error Unreadable(const std::string& path, std::string what, std::string next_step = {}) {
  Error error =
      SetupError(Printable(NameOf(path)) + ": " + std::move(what), {}, std::move(next_step));
  error.error_class = ErrorClass::kUsage;
  return error;
}

Expected<std::string> ReadAll(const std::string& path) {
  FileDescriptor file;
  int descriptor = STDIN_FILENO;
  if (path != "-") {
    file = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return Fail(Unreadable(path, "cannot be opened: " + ErrnoText(errno)));
    descriptor = file.get();
    struct stat about = {};
    if (::fstat(descriptor, &about) == 0 && S_ISDIR(about.st_mode)) {
      return Fail(Unreadable(path, "is a folder", "name the documents in it"));
    }
  }
  constexpr size_t kStep = size_t{1} << 16;
  std::string text;
  while (true) {
    const size_t before = text.size();
    text.resize(before + kStep);
    const ssize_t got = ::read(descriptor, text.data() + before, kStep);
    const int error = errno;
    text.resize(before + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got < 0 && error == EINTR) continue;
    if (got < 0) return Fail(Unreadable(path, "cannot be read: " + ErrnoText(error)));
    if (got == 0) return text;
    if (text.size() > kMaxDocumentBytes) {
      return Fail(Unreadable(path, fmt::format("is larger than {} MiB, more than a document has",
                                               kMaxDocumentBytes >> 20)));
    }
  }
}

// Nothing that is nested deeper is kept: a document of ours has about ten levels, and a file of
// brackets would take up memory many times its size.
constexpr int kMaxDepth = 32;

Expected<json> Parse(const std::string& path, const std::string& text) {
  bool too_deep = false;
  const auto keep = [&too_deep](int depth, json::parse_event_t, const json&) {
    if (depth > kMaxDepth) too_deep = true;
    return depth <= kMaxDepth;
  };
  try {
    json document = json::parse(text, keep);
    if (too_deep) return Fail(Unreadable(path, "is nested too deep for a document"));
    return document;
  } catch (const json::exception& problem) {
    // Its text names the byte, and repeats what stands there.
    std::string what = problem.what();
    what.erase(0, what.find("] ") == std::string::npos ? 0 : what.find("] ") + 2);
    constexpr size_t kMostBytes = 200;
    return Fail(Unreadable(path, "is not one JSON document: " + Printable(what, kMostBytes),
                           "give files that --json or --json-file wrote"));
  }
}

}  // namespace

Expected<Record> ReadDocument(const std::string& path) {
  Expected<std::string> text = ReadAll(path);
  if (!text) return Fail(std::move(text.error()));
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
    return Fail(Unreadable(path, "is empty", "give files that --json or --json-file wrote"));
  }
  Expected<json> document = Parse(path, *text);
  if (!document) return Fail(std::move(document.error()));
  Expected<Record> record = RecordFromJson(*document);
  if (!record) {
    return Fail(Unreadable(
        path, "is not a document of this program: " + Printable(record.error().message)));
  }
  return record;
}

}  // namespace verbscope
