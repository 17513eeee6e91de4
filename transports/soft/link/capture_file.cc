#include "transports/soft/link/capture_file.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

namespace verbscope::soft {
namespace {

constexpr uint64_t kSecond_ns = 1'000'000'000;
constexpr size_t kBufferBytes = size_t{256} << 10;

// The format of libpcap, in the byte order of this machine, which its readers recognise.
struct FileHeader {
  uint32_t magic = 0xa1b23c4d;  // time stamps in nanoseconds
  uint16_t major = 2;
  uint16_t minor = 4;
  uint32_t zone = 0;
  uint32_t accuracy = 0;
  uint32_t longest_packet = 65535;
  uint32_t link_type = 101;  // raw IP
};
static_assert(sizeof(FileHeader) == 24 && std::is_trivially_copyable_v<FileHeader>);

struct PacketHeader {
  uint32_t seconds;
  uint32_t nanoseconds;
  uint32_t captured_bytes;
  uint32_t bytes;
};
static_assert(sizeof(PacketHeader) == 16);

// The errno of the failure, 0 if everything was written. A disk may take less than asked for before
// it says that it is full.
int WriteAll(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return EIO;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return 0;
}

void Append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

uint64_t WallClock_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * kSecond_ns + static_cast<uint64_t>(now.tv_nsec);
}

Expected<std::unique_ptr<CaptureFile>> CaptureFile::Open(const std::string& path, Clock clock) {
  // A pipe that nobody reads is an error and no reason to wait.
  FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0644));
  if (file) ::fcntl(file.get(), F_SETFL, O_WRONLY);
  if (!file) {
    Error error = CallError(ErrorClass::kSetup, "open", path, errno);
    error.message = "capture file: " + error.message;
    return Fail(std::move(error));
  }
  const FileHeader header;
  if (const int error = WriteAll(file.get(), std::as_bytes(std::span(&header, 1))); error != 0) {
    return Fail(CallError(ErrorClass::kSetup, "write", path, error));
  }
  return std::unique_ptr<CaptureFile>(new CaptureFile(std::move(file), path, clock));
}

CaptureFile::CaptureFile(FileDescriptor file, std::string path, Clock clock)
    : file_(std::move(file)),
      path_(std::move(path)),
      clock_(clock),
      flushed_ns_(clock()),
      written_(sizeof(FileHeader)) {
  buffer_.reserve(kBufferBytes);
}

void CaptureFile::Write(std::span<const std::byte> frame) {
  if (broken_) return;
  if (buffer_.size() + sizeof(PacketHeader) + frame.size() > kBufferBytes) {
    Flush();
    if (broken_) return;
  }
  const uint64_t now_ns = clock_();
  const PacketHeader header = {.seconds = static_cast<uint32_t>(now_ns / kSecond_ns),
                               .nanoseconds = static_cast<uint32_t>(now_ns % kSecond_ns),
                               .captured_bytes = static_cast<uint32_t>(frame.size()),
                               .bytes = static_cast<uint32_t>(frame.size())};
  Append(buffer_, std::as_bytes(std::span(&header, 1)));
  Append(buffer_, frame);
}

void CaptureFile::Tick() {
  if (!buffer_.empty() && clock_() - flushed_ns_ >= kSecond_ns) Flush();
}

void CaptureFile::Flush() {
  flushed_ns_ = clock_();
  if (broken_ || buffer_.empty()) return;
  const int error = WriteAll(file_.get(), buffer_);
  if (error != 0) {
    Break(error);
  } else {
    written_ += buffer_.size();
  }
  buffer_.clear();
}

// Half a packet at the end would make readers complain of the whole file: it is cut off, if the
// file is one that can be.
void CaptureFile::Break(int error) {
  broken_ = true;
  error_ = CallError(ErrorClass::kRun, "write", path_, error);
  error_->message = "the packet capture ends early: " + error_->message;
  if (::ftruncate(file_.get(), static_cast<off_t>(written_)) != 0) return;
}

std::optional<Error> CaptureFile::TakeError() { return std::exchange(error_, std::nullopt); }

}  // namespace verbscope::soft
