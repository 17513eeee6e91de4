// Owner of one range of mapped memory: unmaps it once. Move only; one owner at a time.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_MAPPING_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_MAPPING_H_

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace verbscope::soft {

class Mapping {
 public:
  Mapping() = default;
  // `address` as mmap returned it, also MAP_FAILED, which gives an empty Mapping.
  Mapping(void* address, size_t bytes)
      : address_(address == MAP_FAILED ? nullptr : address), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (address_ != nullptr) ::munmap(address_, bytes_);
  }

  explicit operator bool() const { return address_ != nullptr; }
  std::byte* data() const { return static_cast<std::byte*>(address_); }
  size_t size() const { return bytes_; }

 private:
  void* address_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_MAPPING_H_
