#include "cmd/documents.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "cmd/signals.h"
#include "core/base/file_descriptor.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

constexpr int kMaxDepth = 64;  // a document has 8

std::string Shown(const std::string& path) {
  return path == "-" ? "standard input" : Printable(path);
}

tl::unexpected<Error> Refuse(const std::string& path, const std::string& reason,
                             std::string next_step = {}) {
  return Fail(UsageError(fmt::format("{}: {}", Shown(path), reason), {}, std::move(next_step)));
}

tl::unexpected<Error> NoDocument(const std::string& path, const std::string& reason) {
  return Refuse(path, reason, "give documents written with --json or --json-file");
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

// Until there is something to read, or an end; a signal ends the wait, not only the process.
Status AwaitReadable(int fd) {
  pollfd fds[] = {{.fd = fd, .events = POLLIN, .revents = 0},
                  {.fd = ProcessInterrupt().fd(), .events = POLLIN, .revents = 0}};
  while (::poll(fds, 2, -1) < 0 && errno == EINTR) {
  }
  return CheckInterrupt();
}

}  // namespace

Expected<std::string> ReadTextFile(const std::string& path, size_t max_bytes) {
  FileDescriptor owned;
  int fd = STDIN_FILENO;
  if (path != "-") {
    // A pipe that nobody writes to yet opens at once, and is waited for below.
    owned.Reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!owned) return Fail(CallError(ErrorClass::kUsage, "open", Shown(path), errno));
    fd = owned.get();
  }
  std::string text;
  char part[65536];
  for (;;) {
    if (Status status = AwaitReadable(fd); !status) return Fail(std::move(status.error()));
    const ssize_t count = ::read(fd, part, sizeof(part));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return Fail(CallError(ErrorClass::kUsage, "read", Shown(path), errno));
    if (count == 0) return text;
    text.append(part, static_cast<size_t>(count));
    if (text.size() > max_bytes) {
      return Refuse(path, fmt::format("is larger than {} KiB", max_bytes >> 10));
    }
  }
}

Expected<Record> ReadDocument(const std::string& path) {
  Expected<std::string> text = ReadTextFile(path, kMaxDocumentBytes);
  if (!text) return Fail(std::move(text.error()));
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) return NoDocument(path, "is empty");
  const nlohmann::json document = Parse(*text);
  if (document.is_discarded()) return NoDocument(path, "is not JSON, or more than one document");
  if (!document.is_object() || !document.contains("schema_version") ||
      !document.contains("command") || !document.contains("results")) {
    return NoDocument(path, "is JSON, but not a document of verbscope");
  }
  Expected<Record> record = RecordFromJson(document);
  if (!record) return NoDocument(path, "is not a valid document: " + record.error().message);
  return record;
}

}  // namespace verbscope
