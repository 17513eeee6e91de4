#include "transports/soft/link/port_sharing_program.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <vector>

#include "transports/soft/wire/header.h"

namespace verbscope::soft {
namespace {

constexpr uint32_t kTagOffset = 5;      // in the UDP payload: BTH byte 4 is reserved, 5..7 DestQP
constexpr size_t kMaxDrained = 100000;  // more than any receive buffer holds

int Attach(int socket, int option, std::vector<sock_filter>& code) {
  const sock_fprog program = {.len = static_cast<unsigned short>(code.size()),
                              .filter = code.data()};
  return ::setsockopt(socket, SOL_SOCKET, option, &program, sizeof(program));
}

}  // namespace

Expected<FileDescriptor> BindShared(const LocalAddress& address) {
  const int family = address.IsIpv4() ? AF_INET : AF_INET6;
  FileDescriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Fail(CallError(ErrorClass::kSetup, "socket", "SOCK_DGRAM", errno));
  const int on = 1;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0) {
    return Fail(CallError(ErrorClass::kSetup, "setsockopt", "SO_REUSEPORT", errno));
  }
  const SocketAddress to = address.Socket(kRoceUdpPort);
  if (::bind(socket.get(), to.generic(), to.size) != 0) {
    const int error = errno;  // looking for the cause makes calls
    return Fail(CannotBind(address, error));
  }
  return socket;
}

Status SteerByTag(int socket, std::span<const uint8_t> tags, size_t others) {
  std::vector<sock_filter> code;
  // A packet too short to have the byte ends the program with index 0; nobody wants it.
  code.push_back(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kTagOffset));
  for (size_t i = 0; i < tags.size(); ++i) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, tags[i], 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, static_cast<uint32_t>(i)));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, static_cast<uint32_t>(others)));
  if (Attach(socket, SO_ATTACH_REUSEPORT_CBPF, code) != 0) {
    return Fail(CallError(ErrorClass::kSetup, "setsockopt", "SO_ATTACH_REUSEPORT_CBPF", errno));
  }
  return {};
}

void MakeDeaf(int socket) {
  std::vector<sock_filter> code = {BPF_STMT(BPF_RET | BPF_K, 0)};
  Attach(socket, SO_ATTACH_FILTER, code);
  std::byte nothing;
  for (size_t i = 0; i < kMaxDrained; ++i) {
    if (::recv(socket, &nothing, sizeof(nothing), MSG_DONTWAIT) < 0 && errno == EAGAIN) return;
  }
}

void MakeHear(int socket) {
  const int unused = 0;
  ::setsockopt(socket, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
}

}  // namespace verbscope::soft
