#include "transports/common/mapped_buffer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "transports/common/byte_text.h"

namespace verbscope {
namespace {

constexpr int kMaxNodes = 1024;  // the kernel's largest CONFIG_NODES_SHIFT is 10
constexpr size_t kDefaultHugePage = size_t{2} << 20;

// A number of /proc/meminfo, as it stands there (pages or KiB).
std::optional<uint64_t> MemInfo(const SystemPaths& paths, std::string_view key) {
  const auto text = ValueOfKey(ReadText(paths.proc + "/meminfo").value_or(""), key, ':');
  uint64_t value = 0;
  if (!text) return std::nullopt;
  const auto result = std::from_chars(text->data(), text->data() + text->size(), value);
  return result.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// How the pages are laid out: whole ones of one size.
struct Layout {
  size_t page = 0;    // bytes of each
  size_t mapped = 0;  // bytes of all
};

Error MapError(std::string_view call, const BufferOptions& options, Layout layout,
               const SystemPaths& paths, int errno_value) {
  const auto [page, mapped] = layout;
  Error error =
      CallError(ErrorClass::kSetup, call,
                fmt::format("{}{}", FormatBytes(mapped), options.huge_pages ? ", huge pages" : ""),
                errno_value);
  if (!options.huge_pages) {
    error.cause = "not enough memory or address space";
    error.next_step = "use smaller messages, fewer QPs or a smaller queue depth";
    return error;
  }
  const auto free = MemInfo(paths, "HugePages_Free");
  const size_t needed = mapped / page;
  error.cause = fmt::format("{} huge page(s) of {} are needed and {} are free", needed,
                            FormatBytes(page), free ? std::to_string(*free) : "an unknown number");
  error.next_step = fmt::format(
      "reserve them (`sysctl vm.nr_hugepages=N`, N at least {} more than now in use), or leave "
      "--hugepages out",
      needed);
  return error;
}

Status BindToNode(const MappedBuffer& buffer, int node, const SystemPaths& paths) {
  constexpr int kBits = static_cast<int>(sizeof(unsigned long) * CHAR_BIT);
  std::array<unsigned long, kMaxNodes / kBits> mask = {};
  int code = EINVAL;
  if (node < kMaxNodes) {
    const auto word = static_cast<size_t>(node / kBits);
    mask[word] = 1ul << (node % kBits);
    if (::syscall(SYS_mbind, buffer.bytes().data(), buffer.mapped_bytes(), MPOL_BIND, mask.data(),
                  static_cast<unsigned long>(kMaxNodes) + 1, 0u) == 0) {
      return {};
    }
    code = errno;
  }
  Error error = CallError(ErrorClass::kSetup, "mbind", fmt::format("node={}", node), code);
  const std::string online =
      ReadText(paths.sysfs + "/devices/system/node/online").value_or("not known");
  if (code == EPERM) {
    error.cause = "this container forbids memory policies";
    error.next_step = "leave --numa out and bind the whole container, or allow mbind (SYS_NICE)";
  } else if (code == ENOSYS) {
    error.cause = "this kernel has no NUMA support";
    error.next_step = "leave --numa out";
  } else {
    error.cause =
        fmt::format("node {} has no memory or does not exist; nodes online: {}", node, online);
    error.next_step = "choose one of the nodes online with --numa";
  }
  return Fail(std::move(error));
}

// Makes all pages present. Not by writing to them where the kernel can do it (since 5.14): a huge
// page that is reserved but missing on the bound node would end in SIGBUS instead of an error.
Status Populate(const MappedBuffer& buffer, size_t page) {
  const std::span<std::byte> memory = buffer.bytes();
  const size_t mapped = buffer.mapped_bytes();
  if (::madvise(memory.data(), mapped, MADV_POPULATE_WRITE) == 0) return {};
  if (errno != EINVAL) {
    Error error = CallError(ErrorClass::kSetup, "madvise",
                            fmt::format("POPULATE_WRITE, {}", FormatBytes(mapped)), errno);
    error.cause = "not enough free memory, or none on the chosen NUMA node or in the cgroup";
    error.next_step = "use smaller messages or fewer QPs, or leave --numa and --hugepages out";
    return Fail(std::move(error));
  }
  for (size_t at = 0; at < memory.size(); at += page) {
    *static_cast<volatile std::byte*>(&memory[at]) = std::byte{0};
  }
  return {};
}

// The pages of a shared buffer: a memfd of that size, sealed where the kernel can do it.
Expected<FileDescriptor> MakeFile(const BufferOptions& options, Layout layout,
                                  const SystemPaths& paths) {
  const unsigned flags = MFD_CLOEXEC | (options.huge_pages ? MFD_HUGETLB : 0u);
  FileDescriptor file(::memfd_create("verbscope-buffer", flags | MFD_ALLOW_SEALING));
  if (!file && errno == EINVAL) {  // no seals on huge pages before Linux 4.16
    file.Reset(::memfd_create("verbscope-buffer", flags));
  }
  if (!file) {
    const int code = errno;
    Error error = MapError("memfd_create", options, layout, paths, code);
    if (code == EMFILE || code == ENFILE) {
      error.cause = code == EMFILE ? "this process has no file descriptor left"
                                   : "this system has no file descriptor left";
      error.next_step = "raise the limit (`ulimit -n`), or use fewer QPs";
    } else if (code == ENOSYS || code == EPERM) {
      error.cause = "this kernel or this container's system call filter has no memfd_create";
      error.next_step = "allow memfd_create in the container's seccomp profile";
    }
    return Fail(std::move(error));
  }
  if (::ftruncate(file.get(), static_cast<off_t>(layout.mapped)) != 0) {
    return Fail(MapError("ftruncate", options, layout, paths, errno));
  }
  // Refused by a file without seals: its size is then a matter of trust, but nothing here fails.
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return file;
}

// T is MappedBuffer, private, or SharedBuffer.
template <class T>
Expected<std::unique_ptr<T>> Map(const BufferOptions& options, const SystemPaths& paths) {
  constexpr bool kShared = std::is_same_v<T, SharedBuffer>;
  if (options.bytes == 0) return std::make_unique<T>();
  Layout layout = {.page = static_cast<size_t>(::sysconf(_SC_PAGESIZE)), .mapped = options.bytes};
  if (options.huge_pages) {
    const auto kib = MemInfo(paths, "Hugepagesize");
    layout.page = kib ? *kib * 1024 : kDefaultHugePage;
  }
  if (layout.page == 0 || options.bytes > std::numeric_limits<size_t>::max() / 2) {
    layout.page = kDefaultHugePage;
    return Fail(MapError("mmap", options, layout, paths, ENOMEM));
  }
  layout.mapped = (options.bytes + layout.page - 1) / layout.page * layout.page;
  FileDescriptor file;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (options.huge_pages ? MAP_HUGETLB : 0);
  if (kShared) {
    Expected<FileDescriptor> made = MakeFile(options, layout, paths);
    if (!made) return Fail(std::move(made.error()));
    file = std::move(*made);
    flags = MAP_SHARED;
  }
  void* mapping = ::mmap(nullptr, layout.mapped, PROT_READ | PROT_WRITE, flags, file.get(), 0);
  if (mapping == MAP_FAILED) return Fail(MapError("mmap", options, layout, paths, errno));

  auto buffer = std::make_unique<T>(static_cast<std::byte*>(mapping), layout.mapped, options.bytes,
                                    std::move(file));
  if (options.numa_node >= 0) {
    if (Status status = BindToNode(*buffer, options.numa_node, paths); !status) {
      return Fail(std::move(status.error()));
    }
  }
  if (Status status = Populate(*buffer, layout.page); !status) {
    return Fail(std::move(status.error()));
  }
  return buffer;
}

}  // namespace

MappedBuffer::MappedBuffer(std::byte* mapping, size_t mapped_bytes, size_t bytes,
                           FileDescriptor file)
    : file_(std::move(file)), mapping_(mapping), mapped_bytes_(mapped_bytes) {
  bytes_ = std::span(mapping, bytes);
}

MappedBuffer::~MappedBuffer() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
}

Expected<std::unique_ptr<Buffer>> MapBuffer(const BufferOptions& options,
                                            const SystemPaths& paths) {
  return Map<MappedBuffer>(options, paths);
}

Expected<std::unique_ptr<SharedBuffer>> MapSharedBuffer(const BufferOptions& options,
                                                        const SystemPaths& paths) {
  return Map<SharedBuffer>(options, paths);
}

}  // namespace verbscope
