// One end of a measurement on the soft device: opened, pinned, and connected to the other end over
// a socket pair. For speed_probe.cc only; a failure ends the process.
#ifndef VERBSCOPE_TESTS_SOFT_PROBE_END_H_
#define VERBSCOPE_TESTS_SOFT_PROBE_END_H_

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "transports/soft/device/soft_device.h"
#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

inline constexpr uint32_t kList = 16;    // requests per post
inline constexpr uint32_t kDepth = 256;  // send queue
inline constexpr uint32_t kReceives = 512;

[[noreturn]] void Die(const std::string& what);
void Pin(int cpu);
// fork(2); the child ends when its parent does, however that ends.
pid_t Fork();
void Check(const ibv_wc& wc);
uint64_t CounterOf(SoftDevice& device, std::string_view name);

template <class T>
T Must(Expected<T> value) {
  if (!value) Die(value.error().ToText());
  return std::move(*value);
}

struct End {
  std::unique_ptr<SoftDevice> device;
  Pd pd;
  std::unique_ptr<Buffer> buffer;
  Mr mr;
  CompChannel channel;
  Cq send_cq;
  Cq recv_cq;
  Qp qp;
  uint32_t bytes = 0;
  unsigned send_flags = 0;  // inline where the size allows

  // Where a WRITE goes.
  uint64_t remote_address = 0;
  uint32_t rkey = 0;

  // RTS, receives posted, and the other end as far.
  void Open(const SoftOptions& options, uint32_t size, int socket, bool events = false);
  ibv_sge Sge(bool receive) const;
  void PostReceives(uint32_t count);

 private:
  void Connect(int socket);
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TESTS_SOFT_PROBE_END_H_
