#include "cmd/signals.h"

#include <unistd.h>

#include <csignal>
#include <utility>

namespace verbscope {
namespace {

Interrupt* process_interrupt = nullptr;

extern "C" void HandleSignal(int) {
  if (process_interrupt->raised()) _exit(130);
  process_interrupt->Raise();
}

}  // namespace

Interrupt& ProcessInterrupt() {
  static Interrupt interrupt;
  if (process_interrupt == nullptr) {
    process_interrupt = &interrupt;
    struct sigaction action = {};
    action.sa_handler = HandleSignal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, nullptr);
  }
  return interrupt;
}

Status CheckInterrupt() {
  if (!ProcessInterrupt().raised()) return {};
  Error error;
  error.error_class = ErrorClass::kInterrupted;
  error.message = "interrupted by a signal; nothing was written";
  return Fail(std::move(error));
}

}  // namespace verbscope
