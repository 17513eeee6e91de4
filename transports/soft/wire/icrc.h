// The invariant CRC of a RoCEv2 packet (IBTA annex A17): the Ethernet CRC-32 over eight bytes
// of ones, the IP, UDP and transport headers, payload and pad, with every field that a router may
// change read as ones (IPv4 TOS, TTL and header checksum; IPv6 traffic class, flow label and hop
// limit; UDP checksum; the fifth byte of the BTH). Not CRC-32C. It travels least significant byte
// first. Pure; any thread; nothing allocates.
//
// The IPv4 Identification is covered, and a UDP socket cannot see it. Because a CRC is linear, the
// difference between the ICRC for an assumed ID and the one that came tells the true ID:
//
//   IcrcCheck check = CheckIcrcWithoutId(packet);
//   if (check.proof == IcrcProof::kBad) drop;
//
// That leaves 15 bits of proof instead of 32, unless the sender used ID 0 as this device does.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_WIRE_ICRC_H_
#define VERBSCOPE_TRANSPORTS_SOFT_WIRE_ICRC_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace verbscope::soft {

inline constexpr size_t kIpv4HeaderBytes = 20;  // no options (annex A17)
inline constexpr size_t kIpv6HeaderBytes = 40;
inline constexpr size_t kUdpHeaderBytes = 8;
// IPv6, UDP and BTH: the longest run of headers with masked fields in it.
inline constexpr size_t kMaxMaskedBytes = 60;

// Computing in parts: start with kIcrcSeed (it stands for the eight bytes of ones), add IP, UDP and
// BTH after masking, then all the rest as it is.
inline constexpr uint32_t kIcrcSeed = 0x2144df1c;
uint32_t ExtendIcrc(uint32_t icrc, std::span<const std::byte> bytes);
// `masked`: the IP and UDP headers and the BTH after MaskHeaders; `rest`: what follows, in pieces.
uint32_t Icrc(std::span<const std::byte> masked, std::span<const std::span<const std::byte>> rest);
// Sets the masked fields of `headers`, which are the IP and UDP headers and the BTH of a packet, to
// ones. False: they are not (IPv4 with options, another IP version, fewer bytes).
bool MaskHeaders(std::span<std::byte> headers);

// The same for a BTH alone.
void MaskBth(std::span<std::byte, 12> bth);

// The ICRC of a packet from its IP header to its pad; nullopt: not the headers that MaskHeaders
// takes.
std::optional<uint32_t> Icrc(std::span<const std::byte> packet);

inline void StoreIcrc(std::byte* to, uint32_t icrc) { std::memcpy(to, &icrc, sizeof(icrc)); }
inline uint32_t LoadIcrc(const std::byte* from) {
  uint32_t icrc;
  std::memcpy(&icrc, from, sizeof(icrc));
  return icrc;
}

// Whether a packet from its IP header to its ICRC is intact, every covered bit of it as given.
bool VerifyIcrc(std::span<const std::byte> packet);

enum class IcrcProof : uint8_t {
  kFull,       // matches for the assumed ID: 32 bits of proof
  kRecovered,  // matches for another ID, which is now known: 15 bits
  kBad,
};

struct IcrcCheck {
  IcrcProof proof = IcrcProof::kBad;
  // What the sender computed its ICRC for. Annex A17 asks for DF; a socket cannot see it otherwise.
  uint16_t id = 0;
  bool dont_fragment = true;
};

// Judges an ICRC that was `computed` for ID 0 with DF against the one `received`. `bytes_after_id`:
// from the flags of the IPv4 header (offset 6) to the end of the pad.
IcrcCheck RecoverId(uint32_t computed, uint32_t received, size_t bytes_after_id);

// The same for a packet from its IPv4 header to its ICRC whose ID, flags and fragment offset are
// unknown: what stands there is not looked at. For IPv6, where nothing is unknown, kFull or kBad.
IcrcCheck CheckIcrcWithoutId(std::span<const std::byte> packet);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_WIRE_ICRC_H_
