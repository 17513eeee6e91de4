// Memory for messages: anonymous pages, optionally huge ones or of one NUMA node, present from the
// start. Private to this process, or shareable: then the pages lie behind a file descriptor, and a
// process that receives it (SCM_RIGHTS, inheritance) can map them too.
//
//   Expected<std::unique_ptr<SharedBuffer>> buffer = MapSharedBuffer({.bytes = 4096}, paths);
//   // in the other process, with the descriptor it was sent:
//   void* same = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
//
// The owner is the caller; memory regions over it must be gone before it is. Any thread.
#ifndef VERBSCOPE_TRANSPORTS_COMMON_MAPPED_BUFFER_H_
#define VERBSCOPE_TRANSPORTS_COMMON_MAPPED_BUFFER_H_

#include <cstddef>
#include <memory>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/common/system_files.h"
#include "transports/device.h"

namespace verbscope {

// Pages mapped by MapBuffer or MapSharedBuffer, unmapped and closed with it.
class MappedBuffer : public Buffer {
 public:
  MappedBuffer() = default;
  MappedBuffer(std::byte* mapping, size_t mapped_bytes, size_t bytes, FileDescriptor file);
  MappedBuffer(const MappedBuffer&) = delete;
  MappedBuffer& operator=(const MappedBuffer&) = delete;
  ~MappedBuffer() override;

  // Descriptor of the pages, which begin at its offset 0; the buffer's own, so duplicate it to keep
  // it longer. -1 for a private or an empty buffer.
  int fd() const { return file_.get(); }
  // Length of the mapping and of the file: bytes() rounded up to whole pages, small or huge.
  size_t mapped_bytes() const { return mapped_bytes_; }

 private:
  FileDescriptor file_;
  std::byte* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
};

// One that has a descriptor, unless it is empty.
class SharedBuffer final : public MappedBuffer {
 public:
  using MappedBuffer::MappedBuffer;
};

// Page aligned, zeroed, of exactly options.bytes (the mapping behind it is rounded up to whole
// pages). 0 bytes give an empty buffer. kSetup when there is no memory, no reserved huge page, or
// no such node.
Expected<std::unique_ptr<Buffer>> MapBuffer(const BufferOptions& options, const SystemPaths& paths);

// The same on pages that others can map, MAP_SHARED, through fd(). It is closed on exec, and sealed
// where the kernel can do it: nobody it was sent to can change its size, which would turn an access
// here into SIGBUS. kSetup also when there is no free descriptor.
Expected<std::unique_ptr<SharedBuffer>> MapSharedBuffer(const BufferOptions& options,
                                                        const SystemPaths& paths);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_COMMON_MAPPED_BUFFER_H_
