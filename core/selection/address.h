// An IP address as a value: read from text, a socket or a GID; asked for family, scope and subnet.
//
// IPv4 is held as its IPv4-mapped IPv6 form, which is also how a RoCE GID carries it, so one
// type serves both. Plain value, any thread, no I/O.
#ifndef VERBSCOPE_CORE_SELECTION_ADDRESS_H_
#define VERBSCOPE_CORE_SELECTION_ADDRESS_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace verbscope {

struct IpAddress {
  std::array<uint8_t, 16> bytes = {};  // network order

  bool is_ipv4() const;        // ::ffff:a.b.c.d
  bool is_zero() const;        // ::
  bool is_link_local() const;  // fe80::/10 or 169.254.0.0/16
  bool is_loopback() const;    // ::1 or 127.0.0.0/8
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

// "10.0.0.1", "fe80::1", "fe80::1%eth0" (the zone is ignored), "::ffff:10.0.0.1". Nothing for
// anything else; names are not resolved.
std::optional<IpAddress> ParseIpAddress(std::string_view text);
IpAddress AddressOfGid(const ibv_gid& gid);
std::string ToText(const IpAddress& address);  // "10.0.0.1", "fe80::1"

// Prefix length assumed where none is known: 24 bits of IPv4, 64 of IPv6.
int DefaultPrefixLength(const IpAddress& address);
// Same family and the first `prefix_length` bits equal (of the 32 of IPv4 or the 128 of IPv6).
// Lengths outside the family's range are clamped to it.
bool SameSubnet(const IpAddress& a, const IpAddress& b, int prefix_length);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SELECTION_ADDRESS_H_
