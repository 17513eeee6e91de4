#include "tests/lab/namespace_guard.h"

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace verbscope::soft {
namespace {

// Whatever came after would be done in the wrong namespace: there is nothing left to test.
void Require(bool held, const std::string& what) {
  if (held) return;
  std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
  std::abort();
}

}  // namespace

NamespaceGuard::NamespaceGuard(const std::string& name) {
  if (name.empty()) return;
  before_.Reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  Require(static_cast<bool>(before_), "/proc/thread-self/ns/net");
  const std::string path = "/run/netns/" + name;
  const FileDescriptor other(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Require(static_cast<bool>(other), path);
  Require(::setns(other.get(), CLONE_NEWNET) == 0, "setns " + path);
}

NamespaceGuard::~NamespaceGuard() {
  if (before_) Require(::setns(before_.get(), CLONE_NEWNET) == 0, "setns back");
}

}  // namespace verbscope::soft
