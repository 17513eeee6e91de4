// A pcap file of packets as they would stand on a wire, from the IP header on (link type "raw IP",
// nanosecond time stamps): readable by tcpdump and Wireshark, whatever carried them.
//
// Buffered: written when the buffer is full, a second after the last time (Tick), and at the end. A
// write that fails ends the capture, and nothing else: the file keeps the packets before, the rest
// is not recorded, and TakeError says so once.
//
// Threads: with the device's lock held.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_CAPTURE_FILE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_CAPTURE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"

namespace verbscope::soft {

// Nanoseconds of the wall clock since 1970.
uint64_t WallClock_ns();

class CaptureFile {
 public:
  using Clock = uint64_t (*)();

  // Creates or replaces the file and writes its header; an Error of the setup class if that fails.
  static Expected<std::unique_ptr<CaptureFile>> Open(const std::string& path,
                                                     Clock clock = WallClock_ns);
  ~CaptureFile() { Flush(); }
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  // One packet, now. `frame`: from the IP header on.
  void Write(std::span<const std::byte> frame);
  // Writes what is buffered if the last time was a second ago. Cheap.
  void Tick();
  void Flush();

  bool Broken() const { return broken_; }
  // Why the capture ended early; once.
  std::optional<Error> TakeError();

 private:
  CaptureFile(FileDescriptor file, std::string path, Clock clock);
  void Break(int error);

  FileDescriptor file_;
  const std::string path_;
  const Clock clock_;
  std::vector<std::byte> buffer_;
  uint64_t flushed_ns_ = 0;
  uint64_t written_ = 0;  // bytes of whole packets in the file
  bool broken_ = false;
  std::optional<Error> error_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_CAPTURE_FILE_H_
