#include "core/selection/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace verbscope {
namespace {

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr int kMappedBits = 96;

}  // namespace

bool IpAddress::is_ipv4() const {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin());
}

bool IpAddress::is_zero() const {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

bool IpAddress::is_link_local() const {
  if (is_ipv4()) return bytes[12] == 169 && bytes[13] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool IpAddress::is_loopback() const {
  if (is_ipv4()) return bytes[12] == 127;
  return bytes[15] == 1 &&
         std::all_of(bytes.begin(), bytes.end() - 1, [](uint8_t byte) { return byte == 0; });
}

std::optional<IpAddress> ParseIpAddress(std::string_view text) {
  const std::string plain(text.substr(0, text.find('%')));
  IpAddress address;
  if (inet_pton(AF_INET6, plain.c_str(), address.bytes.data()) == 1) return address;
  std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), address.bytes.begin());
  if (inet_pton(AF_INET, plain.c_str(), address.bytes.data() + kMappedPrefix.size()) == 1) {
    return address;
  }
  return std::nullopt;
}

IpAddress AddressOfGid(const ibv_gid& gid) {
  IpAddress address;
  std::memcpy(address.bytes.data(), gid.raw, address.bytes.size());
  return address;
}

std::string ToText(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const bool ipv4 = address.is_ipv4();
  const uint8_t* bytes = address.bytes.data() + (ipv4 ? kMappedPrefix.size() : 0);
  // Cannot fail: the family is known and the buffer takes the longest form.
  (void)inet_ntop(ipv4 ? AF_INET : AF_INET6, bytes, text.data(), text.size());
  return text.data();
}

int DefaultPrefixLength(const IpAddress& address) { return address.is_ipv4() ? 24 : 64; }

bool SameSubnet(const IpAddress& a, const IpAddress& b, int prefix_length) {
  if (a.is_ipv4() != b.is_ipv4()) return false;
  const int bits = a.is_ipv4() ? kMappedBits + std::clamp(prefix_length, 0, 32)
                               : std::clamp(prefix_length, 0, 128);
  for (int bit = 0; bit < bits; bit += 8) {
    const int left = std::min(bits - bit, 8);
    const auto mask = static_cast<uint8_t>(0xff << (8 - left));
    const auto byte = static_cast<size_t>(bit / 8);
    if (((a.bytes[byte] ^ b.bytes[byte]) & mask) != 0) return false;
  }
  return true;
}

}  // namespace verbscope
