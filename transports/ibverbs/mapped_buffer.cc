#include "transports/ibverbs/mapped_buffer.h"

#include <fmt/core.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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
#include <system_error>
#include <utility>

#include "transports/ibverbs/memlock.h"

namespace verbscope {
namespace {

constexpr int kMaxNodes = 1024;  // the kernel's largest CONFIG_NODES_SHIFT is 10
constexpr size_t kDefaultHugePage = size_t{2} << 20;

class MappedBuffer final : public Buffer {
 public:
  MappedBuffer() = default;
  MappedBuffer(void* mapping, size_t mapped_bytes, size_t bytes)
      : mapping_(mapping), mapped_bytes_(mapped_bytes) {
    bytes_ = std::span(static_cast<std::byte*>(mapping), bytes);
  }
  MappedBuffer(const MappedBuffer&) = delete;
  MappedBuffer& operator=(const MappedBuffer&) = delete;
  ~MappedBuffer() override {
    if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
  }

 private:
  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
};

// A number of /proc/meminfo, as it stands there (pages or KiB).
std::optional<uint64_t> MemInfo(const SystemPaths& paths, std::string_view key) {
  const auto text = ValueOfKey(ReadText(paths.proc + "/meminfo").value_or(""), key, ':');
  uint64_t value = 0;
  if (!text) return std::nullopt;
  const auto result = std::from_chars(text->data(), text->data() + text->size(), value);
  return result.ec == std::errc() ? std::optional(value) : std::nullopt;
}

Error MapError(const BufferOptions& options, size_t page, size_t mapped, const SystemPaths& paths,
               int errno_value) {
  Error error =
      CallError(ErrorClass::kSetup, "mmap",
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

Status BindToNode(const MappedBuffer& buffer, size_t mapped, int node, const SystemPaths& paths) {
  constexpr int kBits = static_cast<int>(sizeof(unsigned long) * CHAR_BIT);
  std::array<unsigned long, kMaxNodes / kBits> mask = {};
  int code = EINVAL;
  if (node < kMaxNodes) {
    const auto word = static_cast<size_t>(node / kBits);
    mask[word] = 1ul << (node % kBits);
    if (::syscall(SYS_mbind, buffer.bytes().data(), mapped, MPOL_BIND, mask.data(),
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
Status Populate(std::span<std::byte> memory, size_t page, size_t mapped) {
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

}  // namespace

Expected<std::unique_ptr<Buffer>> MapBuffer(const BufferOptions& options,
                                            const SystemPaths& paths) {
  if (options.bytes == 0) return std::make_unique<MappedBuffer>();
  size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (options.huge_pages) {
    const auto kib = MemInfo(paths, "Hugepagesize");
    page = kib ? *kib * 1024 : kDefaultHugePage;
  }
  if (page == 0 || options.bytes > std::numeric_limits<size_t>::max() / 2) {
    return Fail(MapError(options, kDefaultHugePage, options.bytes, paths, ENOMEM));
  }
  const size_t mapped = (options.bytes + page - 1) / page * page;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (options.huge_pages ? MAP_HUGETLB : 0);
  void* mapping = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapping == MAP_FAILED) return Fail(MapError(options, page, mapped, paths, errno));

  auto buffer = std::make_unique<MappedBuffer>(mapping, mapped, options.bytes);
  if (options.numa_node >= 0) {
    if (Status status = BindToNode(*buffer, mapped, options.numa_node, paths); !status) {
      return Fail(std::move(status.error()));
    }
  }
  if (Status status = Populate(buffer->bytes(), page, mapped); !status) {
    return Fail(std::move(status.error()));
  }
  return buffer;
}

}  // namespace verbscope
