#include "transports/soft/link/local_address_holders.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>

#include "transports/soft/wire/header.h"

namespace verbscope::soft {
namespace {

// The columns of the table that matter, counted from 0.
constexpr size_t kLocalColumn = 1;
constexpr size_t kUidColumn = 7;
constexpr size_t kInodeColumn = 9;
constexpr size_t kColumns = kInodeColumn + 1;

using Columns = std::array<std::string_view, kColumns>;

std::optional<Columns> Split(std::string_view line) {
  Columns columns;
  for (std::string_view& column : columns) {
    const size_t start = line.find_first_not_of(' ');
    if (start == std::string_view::npos) return std::nullopt;
    line.remove_prefix(start);
    column = line.substr(0, line.find(' '));
    line.remove_prefix(column.size());
  }
  return columns;
}

template <class T>
bool Number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// The table prints an address as the 32-bit words it has in memory.
std::string Words(const uint8_t* bytes, size_t words) {
  std::string text;
  for (size_t i = 0; i < words; ++i) {
    uint32_t word;
    std::memcpy(&word, bytes + i * sizeof(word), sizeof(word));
    text += fmt::format("{:08X}", word);
  }
  return text;
}

void Append(int fd, std::string& text) {
  if (fd < 0 || ::lseek(fd, 0, SEEK_SET) != 0) return;
  std::array<char, 16384> part;
  for (;;) {
    const ssize_t got = ::read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    text.append(part.data(), static_cast<size_t>(got));
  }
}

}  // namespace

void AddHolders(std::string_view table, const LocalAddress& address,
                std::vector<PortHolder>& holders) {
  const std::string port = fmt::format(":{:04X}", kRoceUdpPort);
  const std::string exact =
      (address.IsIpv4() ? Words(address.gid.data() + 12, 1) : Words(address.gid.data(), 4)) + port;
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(table.size(), line.size() + 1));
    const std::optional<Columns> columns = Split(line);
    if (!columns) continue;
    const std::string_view local = (*columns)[kLocalColumn];
    PortHolder holder;
    holder.wildcard = local.ends_with(port) && local.find_first_not_of('0') == local.find(':');
    if (local != exact && !holder.wildcard) continue;
    if (!Number((*columns)[kUidColumn], holder.uid) ||
        !Number((*columns)[kInodeColumn], holder.inode)) {
      continue;
    }
    if (std::find(holders.begin(), holders.end(), holder) == holders.end()) {
      holders.push_back(holder);
    }
  }
}

Expected<PortTable> PortTable::Open() {
  PortTable table;
  // thread-self: a thread may have a network namespace of its own.
  table.ipv4_.Reset(::open("/proc/thread-self/net/udp", O_RDONLY | O_CLOEXEC));
  if (!table.ipv4_) {
    return Fail(CallError(ErrorClass::kSetup, "open", "/proc/thread-self/net/udp", errno));
  }
  table.ipv6_.Reset(::open("/proc/thread-self/net/udp6", O_RDONLY | O_CLOEXEC));
  return table;
}

std::vector<PortHolder> PortTable::Holders(const LocalAddress& address) const {
  std::vector<PortHolder> holders;
  for (int i = 0; i < 2; ++i) {
    std::string text;
    Append(ipv4_.get(), text);
    Append(ipv6_.get(), text);
    AddHolders(text, address, holders);
  }
  return holders;
}

}  // namespace verbscope::soft
