// A second process with a device of its own, for tests of what happens to its peers when it dies.
// It is this program again with --child, made by posix_spawn, so it shares no memory and no threads
// with the test.
//
//   int main(int argc, char** argv) {
//     if (RunAsPeer(argc, argv)) return 0;             // in the other process
//     …
//   Child child("soft:link=udp");                       // in the test
//   const std::optional<Card> peer = ReceiveCard(child.socket());
//   End end = MakeEndFor(*device);
//   ConnectTo(end, *peer); SendCard(child.socket(), CardOf(end)); child.WaitReady();
//   Exchange(end, *peer, 100);
//
// The other process exchanges messages until it is killed or its parent ends.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_PEER_PROCESS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_PEER_PROCESS_H_

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {

// What an end tells the other one: enough to connect to it and to use its memory.
struct Card {
  uint32_t qpn = 0;
  uint32_t rkey = 0;
  uint64_t address = 0;
  ibv_gid gid = {};
  uint32_t blob_bytes = 0;
  std::array<std::byte, 128> blob = {};
};
Card CardOf(End& end);
bool SendCard(int socket, const Card& card);
std::optional<Card> ReceiveCard(int socket);  // waits up to 20 s

End MakeEndFor(Device& device);
// Of a requester that gives up after 5 times 34 ms; after 8 times 134 ms, since a busy machine may
// keep it waiting; and after 8 times a second: the other process, which is not to give up.
inline constexpr ConnectOptions kImpatient = {.timeout = 13, .retry_cnt = 4, .rnr_retry = 7};
inline constexpr ConnectOptions kPatient = {.timeout = 15, .retry_cnt = 7, .rnr_retry = 7};
inline constexpr ConnectOptions kSteady = {.timeout = 18, .retry_cnt = 7, .rnr_retry = 7};
Status ConnectTo(End& end, const Card& peer, const ConnectOptions& options);

// One of several kinds of request, by `id`.
SendWork WorkTo(const End& end, const Card& peer, uint64_t id);
// Both ends: work in both directions until something fails, `enough` completions, or `stop`. The
// status that ended it; GENERAL_ERR after 60 s. Once for each end.
ibv_wc_status Exchange(End& end, const Card& peer, uint64_t enough,
                       const std::atomic<bool>* stop = nullptr);

class Child {
 public:
  explicit Child(const std::string& device_string = "soft");
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int socket() const { return socket_.get(); }
  // By SIGKILL; gone when it returns.
  void Kill();
  // Connected, and about to send.
  bool WaitReady() const;

 private:
  pid_t pid_ = -1;
  FileDescriptor socket_;
};

// True: this was the other process, and is at its end.
bool RunAsPeer(int argc, char** argv);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_PEER_PROCESS_H_
