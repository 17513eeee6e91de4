// libFuzzer target of the option parsers:
// bazel build --config=fuzz //transports/soft/options:options_fuzz
//
// The first line of the input is the device string, the rest its config file. Properties: no input
// crashes; a refusal is a printable sentence of the usage class; accepted options keep every bound,
// and a device can be shown for them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "transports/soft/options/parse.h"
#include "transports/soft/options/presentation.h"

namespace verbscope::soft {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

bool IsChance(double value) { return value >= 0 && value <= 1; }

void CheckOptions(const SoftOptions& options) {
  const uint32_t mtu = options.port.active_mtu_bytes;
  Require(mtu >= 256 && mtu <= options.port.max_mtu_bytes && (mtu & (mtu - 1)) == 0);
  Require(options.port.max_mtu_bytes <= 4096);
  Require(options.limits.max_inline_bytes <= kMaxInlineBytes);
  Require(options.limits.device.max_cqe > 0);
  Require(options.link != LinkKind::kUdp || !options.port.gids);
  const FaultOptions& fault = options.fault;
  Require(IsChance(fault.drop) && IsChance(fault.duplicate));
  Require(IsChance(fault.reorder) && IsChance(fault.corrupt));
  Require(fault.delay.count() >= 0 && fault.delay <= std::chrono::minutes(1));
  for (const ControlFault& control : options.hooks.control) Require(control.errno_value > 0);
  for (const FaultRule& rule : fault.rules) {
    Require(rule.delay.count() >= 0 && rule.delay <= std::chrono::minutes(1));
  }
  for (const CompletionFault& completion : options.hooks.completions) {
    Require(completion != CompletionFault{.nth = completion.nth, .kind = completion.kind});
    Require(!completion.drop || !completion.hold_behind);
  }
  Require(options.hooks.data.max_access_bytes.value_or(1) > 0);

  const auto table = GidTable(options, {});
  int last_index = -1;
  for (const GidSlot& slot : table) {
    Require(slot.index > last_index && slot.index < kGidTableEntries);
    last_index = slot.index;
  }
  Require(MakeDeviceInfo(options, table, "").ports.size() == 1);
}

void CheckError(const Error& error) {
  Require(error.error_class == ErrorClass::kUsage && !error.message.empty());
  for (const char c : error.ToText()) Require(c >= ' ' && c <= '~');
}

void Check(const Expected<SoftOptions>& options) {
  if (options) {
    CheckOptions(*options);
  } else {
    CheckError(options.error());
  }
}

}  // namespace
}  // namespace verbscope::soft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using verbscope::Expected;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view line = input.substr(0, input.find('\n'));
  const std::string config(line.size() < size ? input.substr(line.size() + 1) : "");
  verbscope::soft::Check(verbscope::soft::ParseDeviceString(
      line, [&config](const std::string&) -> Expected<std::string> { return config; }));
  verbscope::soft::Check(verbscope::soft::ParseConfig(config));
  return 0;
}
