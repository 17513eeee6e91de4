// Several processes of one user as devices with one address, all on its UDP port 4791. The kernel
// gives each packet to the process whose QPN it is for; nobody forwards.
//
//   auto port = PortSharing::Join(address, deadline);   // may wait for other processes
//   (*port)->fd()                          // receive from it; set what options you need first
//   uint32_t qpn = (*port)->tag() << 16 | n;            // all QPNs of this device
//   if (!(*port)->Mine(header.dest_qpn)) drop;          // QPN 1 and nobody's may come to anyone
//
// How. The sockets form a SO_REUSEPORT group, with a program that maps tags to places in it
// (port_sharing_program.h). One member, the keeper, listens on an abstract Unix socket that only
// one process can bind. It makes the sockets, one at a time, and hands each member all of them.
// So the kernel's group never loses a socket while one member lives: when members die, of whatever
// cause and how many at once, packets for the others keep their way without anybody doing anything.
// The dead one's socket is made deaf and goes to the next who joins.
//
// When the keeper dies, whoever binds the name next is the keeper; the others register with it. A
// newcomer is let in only when the keeper's table cannot be wrong:
//   - all slots with a living owner are registered, and have been sent every change: then whoever
//     is the next keeper knows every slot that was ever given away;
//   - the kernel's table has exactly the known sockets (/proc/net/udp): then the next to bind comes
//     last in the group. A dying process closes its connections and its sockets at slightly
//     different times; nothing here depends on which is first.
// The last step of letting in is the Welcome to the newcomer. One that was not welcomed starts
// over. So a member that is stopped (SIGSTOP) hinders newcomers when the keeper has died meanwhile,
// or it is the keeper. It never hinders members' packets.
//
// What the user must know:
//   - A process that leaves must take fd() out of its epoll sets: the socket itself lives on.
//   - A slot's second owner finds the options of the first on the socket, e.g. a larger buffer.
//     SO_REUSEPORT, SO_BINDTODEVICE and socket filters must be left alone.
//   - UDP_GRO merges packets of one source address and port; the merged packet goes to the owner of
//     its first QPN. Senders must use one source port per destination process, or GRO stay off.
//   - fork() without exec keeps a member alive as long as the child lives.
//
// Threads: Join anywhere; fd, tag and Mine from any thread after that; Serve, keeper and counts
// from one thread at a time, in the network namespace of Join.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/link/local_address.h"
#include "transports/soft/link/local_address_holders.h"
#include "transports/soft/link/port_sharing_messages.h"
#include "transports/soft/link/port_sharing_program.h"
#include "transports/soft/link/port_sharing_slots.h"
#include "transports/soft/link/unix_socket.h"

namespace verbscope::soft {

class PortSharing {
 public:
  struct Counts {
    uint64_t admitted = 0;   // newcomers this process let in as the keeper
    uint64_t elections = 0;  // times the keeper was lost
    uint64_t refused = 0;    // connections of other users, messages that are none
    uint64_t faults = 0;     // calls that should not fail and did; tried again
  };

  // Waits until the keeper has let this process in. Errors: the address is not local, or held by
  // another user or program (setup); the keeper, or a member it needs, does not answer (deadline).
  static Expected<std::unique_ptr<PortSharing>> Join(const LocalAddress& address,
                                                     Deadline deadline);
  PortSharing(const PortSharing&) = delete;
  PortSharing& operator=(const PortSharing&) = delete;
  // Leaves.
  ~PortSharing() = default;

  // Bound, non-blocking; this object's. Nobody else closes it.
  int fd() const { return slots_[my_slot_].socket.get(); }
  // 1..255; of no other living member.
  uint8_t tag() const { return tag_; }
  bool Mine(uint32_t qpn) const { return QpnTag(qpn) == tag_; }

  // Readable when Serve has something to do.
  int wait_fd() const { return epoll_.get(); }
  // Does it, without waiting and in bounded time.
  void Serve();

  bool keeper() const { return static_cast<bool>(listener_); }
  const Counts& counts() const { return counts_; }

 private:
  using SocketId = uint64_t;  // in the epoll set; never used twice
  // The keeper's view of one that connected.
  struct Connection {
    enum class Role : uint8_t {
      kStranger,  // has said nothing
      kWaiting,   // wants a slot
      kPlaced,    // has one, and waits until all have been told
      kMember,
    };
    FileDescriptor socket;
    Role role = Role::kStranger;
    FileDescriptor life;         // while kWaiting; then in the slot
    size_t slot = 0;             // kPlaced, kMember
    std::vector<uint64_t> sent;  // by slot: the ownership it has been told

    bool has_slot() const { return role == Role::kPlaced || role == Role::kMember; }
  };
  enum class Joined : uint8_t { kYes, kAgain };

  explicit PortSharing(const LocalAddress& address);
  Status Prepare();

  // port_sharing.cc: what keeper and members share.
  bool Watch(int fd, SocketId id);
  bool ApplyEntry(const SharingMessage& message, std::vector<FileDescriptor>& fds);
  bool SendEntry(int socket, size_t index);
  bool NeedsTick() const;
  void SetTimer();

  // port_sharing_join.cc
  Expected<Joined> TryToJoin(Deadline deadline);
  Expected<Joined> Found(FileDescriptor listener);
  Expected<Joined> AskKeeper(FileDescriptor socket, Deadline deadline);
  Expected<Joined> HandleAnswer(FileDescriptor& socket, Record& record);
  Expected<FileDescriptor> NewLife();
  bool AnyHolder() const;
  Error NotLetIn() const;

  // port_sharing_member.cc
  void ReadKeeper();
  bool HandleFromKeeper(Record& record);
  void LoseKeeper();
  void SeekKeeper();

  // port_sharing_keeper.cc
  void BecomeKeeper(FileDescriptor listener);
  void Accept();
  void HandleConnection(SocketId id);
  bool HandleRecord(Connection& connection, Record& record);
  bool HandleHello(Connection& connection, const SharingMessage& hello, Record& record);
  void Remove(SocketId id);
  void DeafenDead();
  void Advance();
  bool TellAll();
  bool Tell(Connection& connection);
  bool CanAdmit() const;
  void AdmitOne();
  bool Place(Connection& connection);
  bool Steer();
  const Connection* OwnerOf(size_t slot) const;

  const LocalAddress address_;
  const uint32_t uid_;
  const std::string name_;  // of the keeper's socket
  PortTable table_;
  FileDescriptor epoll_;
  FileDescriptor timer_;
  FileDescriptor spare_;  // closed to be able to refuse when descriptors run out

  SharedSlots slots_;
  size_t my_slot_ = kNoSlot;
  uint64_t my_id_ = 0;
  uint8_t tag_ = 0;
  uint8_t last_tag_ = 0;  // given last, by any keeper
  FileDescriptor life_;   // writing end

  // A member has to_keeper_ or is seeking; a keeper has listener_.
  FileDescriptor to_keeper_;
  bool incomplete_ = false;   // missed an entry: must not become the keeper
  bool seek_at_once_ = true;  // was welcome there; otherwise seeks in turns of the timer
  int keeper_pid_ = 0;        // last seen, for messages
  FileDescriptor listener_;
  std::map<SocketId, Connection> connections_;
  SocketId next_id_;

  int tick_ms_ = 1;
  Counts counts_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_H_
