#include "core/cost/syscall_counter.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

// System calls made from the addresses between the first and the last label are never dispatched:
// the one that a handler makes for its thread, and the return from the handler. The kernel compares
// the address behind the system call instruction, so that the labels enclose that too.
#if defined(__x86_64__)
#define VERBSCOPE_COUNTS_SYSCALLS 1
asm(R"(
.pushsection .text
.balign 16
.globl verbscope_undispatched_begin
.hidden verbscope_undispatched_begin
verbscope_undispatched_begin:
.globl verbscope_undispatched_call
.hidden verbscope_undispatched_call
.type verbscope_undispatched_call, @function
verbscope_undispatched_call:
    movq %rdi, %rax
    movq %rsi, %rdi
    movq %rdx, %rsi
    movq %rcx, %rdx
    movq %r8, %r10
    movq %r9, %r8
    movq 8(%rsp), %r9
    syscall
    ret
.globl verbscope_undispatched_return
.hidden verbscope_undispatched_return
.type verbscope_undispatched_return, @function
verbscope_undispatched_return:
    movl $15, %eax
    syscall
    ud2
.globl verbscope_undispatched_end
.hidden verbscope_undispatched_end
verbscope_undispatched_end:
.popsection
)");
#elif defined(__aarch64__)
#define VERBSCOPE_COUNTS_SYSCALLS 1
asm(R"(
.pushsection .text
.balign 16
.globl verbscope_undispatched_begin
.hidden verbscope_undispatched_begin
verbscope_undispatched_begin:
.globl verbscope_undispatched_call
.hidden verbscope_undispatched_call
.type verbscope_undispatched_call, %function
verbscope_undispatched_call:
    mov x8, x0
    mov x0, x1
    mov x1, x2
    mov x2, x3
    mov x3, x4
    mov x4, x5
    mov x5, x6
    svc #0
    ret
.globl verbscope_undispatched_return
.hidden verbscope_undispatched_return
.type verbscope_undispatched_return, %function
verbscope_undispatched_return:
    mov x8, #139
    svc #0
    brk #1
.globl verbscope_undispatched_end
.hidden verbscope_undispatched_end
verbscope_undispatched_end:
.popsection
)");
#endif

#ifdef VERBSCOPE_COUNTS_SYSCALLS
extern "C" {
extern const char verbscope_undispatched_begin[];
extern const char verbscope_undispatched_end[];
// The system call `number`; a negative errno on failure. Leaves errno alone.
long verbscope_undispatched_call(long number, long a, long b, long c, long d, long e, long f);
void verbscope_undispatched_return();
}

// Older system headers lack these (linux/prctl.h, asm-generic/siginfo.h).
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF 0
#define PR_SYS_DISPATCH_ON 1
#endif

// What the handler is made of: no sanitizer's calls in it, whose runtime may be what it interrupts.
#define VERBSCOPE_PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))

namespace verbscope {
namespace {

constexpr int kSysUserDispatch = 2;  // si_code of a dispatched call
constexpr char kAllow = 0;           // values of the selector, linux/prctl.h
constexpr char kBlock = 1;

// Read and written by the counting thread and by the handler that interrupts it, by nobody else.
struct Counting {
  volatile char selector = kAllow;  // the kernel reads it at each system call
  volatile uint64_t calls = 0;
  volatile bool complete = true;
};
Counting counting;
std::atomic<bool> taken = false;

// rt_sigaction(2) takes another structure than sigaction(3), which hides where a handler returns.
struct KernelSigaction {
  void (*handler)(int, siginfo_t*, void*) = nullptr;
  unsigned long flags = 0;
  void (*restorer)() = nullptr;
  uint64_t mask = 0;
};
KernelSigaction old_action;
constexpr unsigned long kSaRestorer = 0x04000000;

#if defined(__x86_64__)
struct Registers {
  VERBSCOPE_PLAIN explicit Registers(ucontext_t& context) : gregs(context.uc_mcontext.gregs) {}
  VERBSCOPE_PLAIN long number() const { return gregs[REG_RAX]; }
  VERBSCOPE_PLAIN long Call() const {
    return verbscope_undispatched_call(gregs[REG_RAX], gregs[REG_RDI], gregs[REG_RSI],
                                       gregs[REG_RDX], gregs[REG_R10], gregs[REG_R8],
                                       gregs[REG_R9]);
  }
  VERBSCOPE_PLAIN void SetResult(long result) { gregs[REG_RAX] = result; }
  VERBSCOPE_PLAIN void BackToTheCall() { gregs[REG_RIP] -= 2; }  // the length of `syscall`
  greg_t* gregs;
};
#else
struct Registers {
  VERBSCOPE_PLAIN explicit Registers(ucontext_t& context) : machine(context.uc_mcontext) {}
  VERBSCOPE_PLAIN long x(int i) const { return static_cast<long>(machine.regs[i]); }
  VERBSCOPE_PLAIN long number() const { return x(8); }
  VERBSCOPE_PLAIN long Call() const {
    return verbscope_undispatched_call(number(), x(0), x(1), x(2), x(3), x(4), x(5));
  }
  VERBSCOPE_PLAIN void SetResult(long result) {
    machine.regs[0] = static_cast<unsigned long>(result);
  }
  VERBSCOPE_PLAIN void BackToTheCall() { machine.pc -= 4; }
  mcontext_t& machine;
};
#endif

// Whether a call means its thread's stack or mask, which a handler has in another state.
VERBSCOPE_PLAIN bool NeedsItsOwnThread(long number) {
  switch (number) {
    case SYS_rt_sigreturn:
    case SYS_rt_sigprocmask:
    case SYS_clone:
#ifdef SYS_clone3
    case SYS_clone3:
#endif
#ifdef SYS_fork
    case SYS_fork:
    case SYS_vfork:
#endif
      return true;
    default:
      return false;
  }
}

// Async-signal-safe: plain memory and one raw system call.
VERBSCOPE_PLAIN void OnDispatchedCall(int /*signal*/, siginfo_t* info, void* context) {
  Registers registers(*static_cast<ucontext_t*>(context));
  if (info->si_code != kSysUserDispatch) {  // a filter has refused the call
    registers.SetResult(-ENOSYS);
    return;
  }
  counting.calls = counting.calls + 1;
  if (NeedsItsOwnThread(registers.number())) {
    counting.complete = false;
    counting.selector = kAllow;
    registers.BackToTheCall();
    return;
  }
  registers.SetResult(registers.Call());
}

int SetAction(const KernelSigaction* action, KernelSigaction* old) {
  return static_cast<int>(::syscall(SYS_rt_sigaction, SIGSYS, action, old, sizeof(action->mask)));
}

int Dispatch(bool on) {
  if (!on) return ::prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0);
  const auto begin = reinterpret_cast<uintptr_t>(verbscope_undispatched_begin);
  const auto end = reinterpret_cast<uintptr_t>(verbscope_undispatched_end);
  return ::prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, begin, end - begin,
                 &counting.selector);
}

// All but those that a fault raises, and the one that counts.
sigset_t SignalsHeldBack() {
  sigset_t set;
  sigfillset(&set);
  for (const int signal : {SIGSYS, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
    sigdelset(&set, signal);
  }
  return set;
}

}  // namespace

Expected<std::unique_ptr<SyscallCounter>> SyscallCounter::Start() {
  if (taken.exchange(true)) {
    return Fail(SetupError("system calls are being counted already in this process"));
  }
  KernelSigaction action;
  action.handler = OnDispatchedCall;
  action.flags = SA_SIGINFO | kSaRestorer;
  action.restorer = verbscope_undispatched_return;
  action.mask = ~uint64_t{0};
  if (SetAction(&action, &old_action) != 0) {
    Error error = CallError(ErrorClass::kSetup, "rt_sigaction", "SIGSYS", errno);
    taken = false;
    return Fail(std::move(error));
  }
  std::unique_ptr<SyscallCounter> counter(new SyscallCounter());
  counting.selector = kAllow;
  if (Dispatch(true) != 0) {
    Error error = CallError(ErrorClass::kSetup, "prctl", "PR_SET_SYSCALL_USER_DISPATCH", errno);
    error.cause =
        "the kernel is older than 5.11 or built without it, or a sandbox has no such call";
    return Fail(std::move(error));
  }
  Dispatch(false);
  return counter;
}

SyscallCounter::~SyscallCounter() {
  SetAction(&old_action, nullptr);
  taken = false;
}

bool SyscallCounter::Begin() {
  const sigset_t held_back = SignalsHeldBack();
  ::pthread_sigmask(SIG_SETMASK, &held_back, &old_mask_);
  counting.calls = 0;
  counting.complete = true;
  counting.selector = kAllow;
  if (Dispatch(true) == 0) return true;
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  return false;
}

void SyscallCounter::Block(bool on) {
  // The counted call stays between both stores.
  asm volatile("" ::: "memory");
  counting.selector = on ? kBlock : kAllow;
  asm volatile("" ::: "memory");
}

SyscallCount SyscallCounter::End() {
  Dispatch(false);
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  return {.calls = counting.calls, .complete = counting.complete};
}

}  // namespace verbscope

#else  // an architecture whose registers are not known here

namespace verbscope {

Expected<std::unique_ptr<SyscallCounter>> SyscallCounter::Start() {
  return Fail(SetupError("system calls can be counted on x86-64 and arm64 only"));
}
SyscallCounter::~SyscallCounter() = default;
bool SyscallCounter::Begin() { return false; }
void SyscallCounter::Block(bool /*on*/) {}
SyscallCount SyscallCounter::End() { return {}; }

}  // namespace verbscope

#endif
