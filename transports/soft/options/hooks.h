// The counting behind the hooks of hook_options.h.
//
// A device owns one of each. Any thread may call any function. The order in which threads are
// counted is the order in which they come; a test that wants a certain call counts from one thread.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_HOOKS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_HOOKS_H_

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "transports/soft/options/hook_options.h"

namespace verbscope::soft {

// Which control calls fail. At the top of each:
//
//   if (auto code = control_faults.Next("alloc_pd")) { errno = *code; return nullptr; }
class ControlFaults {
 public:
  explicit ControlFaults(std::vector<ControlFault> faults);
  ControlFaults(const ControlFaults&) = delete;
  ControlFaults& operator=(const ControlFaults&) = delete;

  // Counts one call of `call`, one of kControlCalls. The errno it has to fail with, or nothing.
  // Every rule counts every call it matches; of several that hit, the first of the list wins.
  std::optional<int> Next(std::string_view call);

 private:
  struct Rule {
    ControlFault fault;
    uint64_t calls = 0;
  };
  const bool active_;
  std::mutex mutex_;
  std::vector<Rule> rules_;  // guarded by mutex_
};

// Which completions are changed, and which are not handed to the program as they should be. For
// each completion:
//
//   if (completion_faults.Active()) fate = completion_faults.Apply(kind, wc);
class CompletionFaults {
 public:
  explicit CompletionFaults(std::vector<CompletionFault> faults) : faults_(std::move(faults)) {}
  CompletionFaults(const CompletionFaults&) = delete;
  CompletionFaults& operator=(const CompletionFaults&) = delete;

  bool Active() const { return !faults_.empty(); }

  // Counts one completion of the device and changes it by every rule that hits, in order.
  // Rules without a kind count all of them. Of several fates kDrop wins.
  CompletionFate Apply(CompletionKind kind, ibv_wc& completion);

 private:
  const std::vector<CompletionFault> faults_;
  std::atomic<uint64_t> completions_ = 0;
  std::array<std::atomic<uint64_t>, 2> of_kind_ = {};
};

// Which messages leave wrong data. For the last packet of each:
//
//   if (data_faults.Active()) verdict = data_faults.NextMessage();
class DataFaults {
 public:
  explicit DataFaults(const DataFault& fault) : fault_(fault) {}
  DataFaults(const DataFaults&) = delete;
  DataFaults& operator=(const DataFaults&) = delete;

  // Whether any message is spoiled; max_access_bytes is not for this class.
  bool Active() const { return fault_.flip_bit || fault_.skip_last || fault_.write_past; }
  // Counts one message of the device.
  DataVerdict NextMessage();

 private:
  const DataFault fault_;
  std::atomic<uint64_t> messages_ = 0;
};

// Overwrites the fields that the verbs leave undefined for a completion of an RC QP with this
// status, opcode and flags. The rubbish is the same each time.
void FillUndefinedFields(ibv_wc& completion);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_HOOKS_H_
