// How the kernel finds the owner of a packet among sockets that share a port: a classic BPF program
// on the SO_REUSEPORT group reads the tag, the top byte of the BTH's destination QPN, and returns
// the index of a socket in the group. Needs no privilege.
//
// The group's order: a socket that binds comes last; when one goes, the kernel moves the last into
// its place. Pure functions on sockets; any thread.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_PROGRAM_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/link/local_address.h"

namespace verbscope::soft {

// A QPN is [8 bits tag][16 bits of the member's own choice].
inline constexpr uint32_t QpnTag(uint32_t qpn) { return qpn >> 16 & 0xff; }

// A new socket at the end of the group of `address` and port 4791.
Expected<FileDescriptor> BindShared(const LocalAddress& address);

// Replaces the program of the group of `socket`: packets with tags[i] go to the i-th socket, all
// others (QPN 1, tags of nobody) to the one at `others`.
Status SteerByTag(int socket, std::span<const uint8_t> tags, size_t others);

// Packets for the socket are dropped by the kernel, and what is queued as well. For a socket whose
// owner is dead, so that it keeps no memory.
void MakeDeaf(int socket);
// Undoes it.
void MakeHear(int socket);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_PROGRAM_H_
