// On which CPUs a thread may run, and putting it on some of them.
//
// All functions concern the calling thread and may be called by any. Affinity is inherited: pin a
// thread before it creates others only if they shall be pinned too.
#ifndef VERBSCOPE_CORE_HOST_AFFINITY_H_
#define VERBSCOPE_CORE_HOST_AFFINITY_H_

#include <string>
#include <vector>

#include "core/base/error.h"

namespace verbscope {

// CPUs on which the calling thread may run, ascending; empty when the system does not say.
std::vector<int> ThreadCpus();

// Number of CPUs on which the calling thread may run, at least 1. It is what busy-polling threads
// can share; a cgroup's CPU time limit is not counted in.
int UsableCpuCount();

// Pins the calling thread to exactly `cpus`; an empty list changes nothing. kSetup when one of them
// does not exist or is not allowed here: the text names the allowed ones, and the thread stays as
// it was. (sched_setaffinity alone would drop the forbidden ones without a word.)
Status PinThread(const std::vector<int>& cpus);

// Remembers where the calling thread may run and restores it at the end of the scope, so that what
// one client asks for does not stay with the server.
class AffinityScope {
 public:
  AffinityScope() : cpus_(ThreadCpus()) {}
  ~AffinityScope();
  AffinityScope(const AffinityScope&) = delete;
  AffinityScope& operator=(const AffinityScope&) = delete;

 private:
  std::vector<int> cpus_;
};

// "0-3,8": ranges of an ascending list, as --cpu takes it; "none" for an empty one.
std::string CpuListText(const std::vector<int>& cpus);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_HOST_AFFINITY_H_
