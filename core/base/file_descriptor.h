// Owner of one file descriptor: closes it once. Move only; one owner at a time.
#ifndef VERBSCOPE_CORE_BASE_FILE_DESCRIPTOR_H_
#define VERBSCOPE_CORE_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace verbscope {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { Reset(-1); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void Reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_BASE_FILE_DESCRIPTOR_H_
