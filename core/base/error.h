// What went wrong, said so that an operator can act on it: where (side), in which call, with which
// parameter, why most likely, and what to do next. An Error is plain data; it travels to the peer
// as JSON and ends as the `error` object of the document and as one sentence on standard error.
//
// Functions that can fail because of the world (device, peer, limits, input) return Expected<T>.
// An assert is for our own bugs only. Any thread may use these types; they own all their text.
#ifndef VERBSCOPE_CORE_BASE_ERROR_H_
#define VERBSCOPE_CORE_BASE_ERROR_H_

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace verbscope {

// The class decides the exit code, and nothing else does.
enum class ErrorClass {
  kUsage,     // 1: the command line or an input file is wrong
  kInternal,  // 1: a bug of ours
  kSetup,     // 2: cannot start: no device, port down, limit, unreachable, refused, foreign peer
  kVerification,  // 3: a gate, check or verification failed
  kInconclusive,  // 4: too little data for a verdict
  kRun,           // 5: the run broke: RDMA error, peer died or was interrupted
  kDeadline,      // 6: our own deadline passed
  kInterrupted,   // 130: interrupted here
};

// Whose observation this is, as seen by the process that reports it.
enum class Side { kLocal, kPeer };

// Exit code of a class, 1 to 130.
int ExitCode(ErrorClass error_class);
std::string_view Name(ErrorClass error_class);
std::string_view Name(Side side);
// Inverse of Name; kInternal for an unknown name (a newer peer may know more classes).
ErrorClass ErrorClassFromName(std::string_view name);

struct Error {
  ErrorClass error_class = ErrorClass::kInternal;
  Side side = Side::kLocal;
  std::string message;  // one sentence: what failed, with the call and the parameter that mattered
  std::string cause;    // the likely cause; empty when unknown
  std::string next_step;  // what to try; empty when there is nothing to try
  std::string status;     // symbolic completion status such as "RETRY_EXC_ERR"; empty if none
  int errno_value = 0;    // 0 if no call failed with errno

  // "message: cause. Next: next_step" as one line of text for standard error.
  std::string ToText() const;
};

template <class T>
using Expected = tl::expected<T, Error>;
using Status = Expected<void>;

// Shorthand: `return Fail({...})` from a function that returns Expected<T>.
inline tl::unexpected<Error> Fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

// What is wrong before a run can start; `cause` and `next_step` may be empty.
Error SetupError(std::string message, std::string cause = {}, std::string next_step = {});

// The same of the command line or an input file.
Error UsageError(std::string message, std::string cause = {}, std::string next_step = {});

// An error of a system or verbs call: message becomes "CALL(PARAMETER) failed: ERRNO TEXT".
// `parameter` is the value that mattered ("cqe=4096"), may be empty.
Error CallError(ErrorClass error_class, std::string_view call, std::string_view parameter,
                int errno_value);

// Text of an errno value, thread safe ("Cannot allocate memory").
std::string ErrnoText(int errno_value);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_BASE_ERROR_H_
