#include "transports/soft/link/rendezvous_messages.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <type_traits>

#include "core/base/error.h"
#include "transports/soft/link/ring_layout.h"

namespace verbscope::soft {
namespace {

// Both ends are on one host, so fields travel as they are in memory. A blob from elsewhere has
// another boot, or a magic that does not fit.
constexpr uint32_t kBlobMagic = 0x4c4d5356;  // "VSML"
constexpr uint32_t kHelloMagic = 0x484d5356;
constexpr uint32_t kChannelMagic = 0x434d5356;

struct BlobBytes {
  uint32_t magic;
  uint16_t version;
  uint16_t reserved;
  Nonce nonce;
  uint64_t host_boot;
  uint64_t net_namespace;
  uint32_t uid;
  uint32_t reserved2;
};
static_assert(sizeof(BlobBytes) == 48);

struct HelloBytes {
  uint32_t magic;
  uint16_t version;
  uint16_t source_port;
  Nonce nonce;
  std::array<uint8_t, 16> source;
  std::array<uint8_t, 16> destination;
  uint32_t flow_label;
  uint8_t hop_limit;
  uint8_t traffic_class;
  uint16_t reserved;
};
static_assert(sizeof(HelloBytes) == 64 && sizeof(HelloBytes) <= kMaxMessageBytes);

struct ChannelBytes {
  uint32_t magic;
  uint32_t channel;
  uint32_t offered;
};

template <class T>
std::vector<std::byte> ToBytes(const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

template <class T>
bool FromBytes(std::span<const std::byte> bytes, T& value) {
  if (bytes.size() != sizeof(T)) return false;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return true;
}

// FNV-1a over the kernel's boot identifier. Inside a container it is the host's.
uint64_t HostBoot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  if (!std::getline(file, text)) return 0;
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// The inode of this thread's network namespace: abstract sockets are seen within one only.
uint64_t NetNamespace() {
  struct stat status = {};
  return ::stat("/proc/thread-self/ns/net", &status) == 0 ? status.st_ino : 0;
}

Error CannotLink(std::string cause, std::string next_step) {
  return SetupError("the peer's device cannot be reached through shared memory", std::move(cause),
                    std::move(next_step));
}

}  // namespace

std::vector<std::byte> EncodeBlob(const LinkAddress& address) {
  return ToBytes(BlobBytes{.magic = kBlobMagic,
                           .version = kMemoryLinkVersion,
                           .reserved = 0,
                           .nonce = address.nonce,
                           .host_boot = address.host_boot,
                           .net_namespace = address.net_namespace,
                           .uid = address.uid,
                           .reserved2 = 0});
}

Expected<LinkAddress> ParseBlob(std::span<const std::byte> blob) {
  BlobBytes bytes{};
  const size_t front = std::min(blob.size(), offsetof(BlobBytes, reserved));
  if (front != 0) std::memcpy(&bytes, blob.data(), front);
  if (bytes.magic != kBlobMagic) {
    return Fail(CannotLink("its description is not that of a memory link",
                           "use the same kind of device on both sides"));
  }
  if (bytes.version != kMemoryLinkVersion) {
    return Fail(CannotLink("its memory link has version " + std::to_string(bytes.version) +
                               ", this one has " + std::to_string(kMemoryLinkVersion),
                           "use the same program version on both sides"));
  }
  if (!FromBytes(blob, bytes)) {
    return Fail(CannotLink("its description is " + std::to_string(blob.size()) + " bytes, not " +
                               std::to_string(sizeof(bytes)),
                           "use the same program version on both sides"));
  }
  return LinkAddress{.nonce = bytes.nonce,
                     .uid = bytes.uid,
                     .host_boot = bytes.host_boot,
                     .net_namespace = bytes.net_namespace};
}

bool OnThisHost(const LinkAddress& peer, const LinkAddress& local) {
  return peer.host_boot == local.host_boot && peer.net_namespace == local.net_namespace;
}

Status CheckHere(const LinkAddress& peer, const LinkAddress& local) {
  constexpr const char* kCrossNetwork =
      "give both sides --device soft:link=udp,addr=ADDRESS, each with an address of its own host";
  if (peer.host_boot != local.host_boot) {
    return Fail(CannotLink("it is on another host", kCrossNetwork));
  }
  if (peer.net_namespace != local.net_namespace) {
    return Fail(CannotLink("it is in another network namespace", kCrossNetwork));
  }
  if (peer.uid == local.uid) return {};
  return Fail(CannotLink("it belongs to user " + std::to_string(peer.uid) +
                             ", this process to user " + std::to_string(local.uid),
                         "run both sides as one user"));
}

std::vector<std::byte> EncodeHello(const Hello& hello) {
  return ToBytes(HelloBytes{.magic = kHelloMagic,
                            .version = kMemoryLinkVersion,
                            .source_port = hello.flow.source_port,
                            .nonce = hello.nonce,
                            .source = hello.flow.source,
                            .destination = hello.flow.destination,
                            .flow_label = hello.flow.flow_label,
                            .hop_limit = hello.flow.hop_limit,
                            .traffic_class = hello.flow.traffic_class,
                            .reserved = 0});
}

std::optional<Hello> ParseHello(std::span<const std::byte> bytes) {
  HelloBytes hello{};
  if (!FromBytes(bytes, hello) || hello.magic != kHelloMagic ||
      hello.version != kMemoryLinkVersion) {
    return std::nullopt;
  }
  return Hello{.nonce = hello.nonce,
               .flow = {.source = hello.source,
                        .destination = hello.destination,
                        .source_port = hello.source_port,
                        .hop_limit = hello.hop_limit,
                        .traffic_class = hello.traffic_class,
                        .flow_label = hello.flow_label}};
}

std::vector<std::byte> EncodeChannelMessage(const ChannelMessage& message) {
  return ToBytes(ChannelBytes{
      .magic = kChannelMagic, .channel = message.channel, .offered = message.offered ? 1U : 0U});
}

std::optional<ChannelMessage> ParseChannelMessage(std::span<const std::byte> bytes) {
  ChannelBytes message{};
  if (!FromBytes(bytes, message) || message.magic != kChannelMagic || message.offered > 1) {
    return std::nullopt;
  }
  return ChannelMessage{.channel = message.channel, .offered = message.offered == 1};
}

std::string SocketName(const Nonce& nonce) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "verbscope-soft-";
  for (const std::byte b : nonce) {
    name += kDigits[std::to_integer<unsigned>(b) >> 4];
    name += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return name;
}

Expected<LinkAddress> MakeLocalAddress() {
  LinkAddress address{.uid = ::geteuid(), .host_boot = HostBoot(), .net_namespace = NetNamespace()};
  if (::getrandom(address.nonce.data(), address.nonce.size(), 0) !=
      static_cast<ssize_t>(address.nonce.size())) {
    return Fail(CallError(ErrorClass::kSetup, "getrandom", "", errno));
  }
  return address;
}

}  // namespace verbscope::soft
