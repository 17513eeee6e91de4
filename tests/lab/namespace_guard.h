// The calling thread in another network namespace, for the life of an object.
//
// Sockets belong to the namespace of the thread that opens them, and threads start in that of the
// thread that makes them. So a soft device that is opened under a guard, and whose QPs are
// connected under one, lives in that namespace; posting and polling need none. Control calls of the
// kernel's rxe 6.1 belong into the first namespace, outside of any guard.
#ifndef VERBSCOPE_TESTS_LAB_NAMESPACE_GUARD_H_
#define VERBSCOPE_TESTS_LAB_NAMESPACE_GUARD_H_

#include <string>

#include "core/base/file_descriptor.h"

namespace verbscope::soft {

class NamespaceGuard {
 public:
  // `name` as of "ip netns add"; empty: the guard does nothing.
  explicit NamespaceGuard(const std::string& name);
  ~NamespaceGuard();
  NamespaceGuard(const NamespaceGuard&) = delete;
  NamespaceGuard& operator=(const NamespaceGuard&) = delete;

 private:
  FileDescriptor before_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TESTS_LAB_NAMESPACE_GUARD_H_
