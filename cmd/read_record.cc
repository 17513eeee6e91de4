#include "cmd/read_record.h"

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

constexpr int kMaxDepth = 64;  // a document has 8

std::string Shown(const std::string& path) {
  return path == "-" ? "standard input" : Printable(path);
}

tl::unexpected<Error> Refuse(const std::string& path, const std::string& reason) {
  Error error;
  error.error_class = ErrorClass::kUsage;
  error.message = fmt::format("{}: {}", Shown(path), reason);
  error.next_step = "give documents written with --json or --json-file";
  return Fail(std::move(error));
}

Expected<std::string> ReadText(const std::string& path) {
  FileDescriptor owned;
  int fd = STDIN_FILENO;
  if (path != "-") {
    owned.Reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!owned) return Fail(CallError(ErrorClass::kUsage, "open", Shown(path), errno));
    fd = owned.get();
  }
  std::string text;
  char part[65536];
  for (;;) {
    const ssize_t count = ::read(fd, part, sizeof(part));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(CallError(ErrorClass::kUsage, "read", Shown(path), errno));
    if (count == 0) return text;
    text.append(part, static_cast<size_t>(count));
    if (text.size() > kMaxDocumentBytes) {
      return Refuse(path, fmt::format("is larger than {} MiB", kMaxDocumentBytes >> 20));
    }
  }
}

// Depth is bounded while parsing: what is nested a million times is no document, and taking it
// apart again would need as much stack.
nlohmann::json Parse(const std::string& text) {
  bool deep = false;
  nlohmann::json parsed = nlohmann::json::parse(
      text,
      [&deep](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        deep = deep || depth > kMaxDepth;
        return depth <= kMaxDepth;
      },
      /*allow_exceptions=*/false);
  return deep ? nlohmann::json(nlohmann::json::value_t::discarded) : parsed;
}

}  // namespace

Expected<Record> ReadRecord(const std::string& path) {
  Expected<std::string> text = ReadText(path);
  if (!text) return Fail(std::move(text.error()));
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) return Refuse(path, "is empty");
  const nlohmann::json document = Parse(*text);
  if (document.is_discarded()) return Refuse(path, "is not JSON, or more than one document");
  if (!document.is_object() || !document.contains("schema_version") ||
      !document.contains("command") || !document.contains("results")) {
    return Refuse(path, "is JSON, but not a document of verbscope");
  }
  Expected<Record> record = RecordFromJson(document);
  if (!record) return Refuse(path, "is not a valid document: " + record.error().message);
  return record;
}

}  // namespace verbscope
