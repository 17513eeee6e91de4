// What the benchmarks of this folder share. Internal to them.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_BENCHMARK_SUPPORT_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_BENCHMARK_SUPPORT_H_

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace verbscope::soft {

inline void Pin(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu % std::max(1U, std::thread::hardware_concurrency()), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set);
}

// Times chunks of equal work and reports the median time of one piece: others that take the
// processor now and then do not show, as they would in a mean.
template <int kPieces>
class Chunks {
 public:
  template <class F>
  void Time(F&& piece) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kPieces; ++i) piece();
    const std::chrono::duration<double, std::nano> elapsed =
        std::chrono::steady_clock::now() - begin;
    times_ns_.push_back(elapsed.count() / kPieces);
  }
  double MedianNs() {
    std::sort(times_ns_.begin(), times_ns_.end());
    return times_ns_.empty() ? 0 : times_ns_[times_ns_.size() / 2];
  }

 private:
  std::vector<double> times_ns_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_BENCHMARK_SUPPORT_H_
