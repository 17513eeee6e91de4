// Fuzzes what a server does first with bytes of a client: JSON, plan, bounds. Found inputs need no
// corpus: the JSON of a default Plan is a good seed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/plan/plan.h"
#include "core/plan/plan_json.h"

namespace {

using verbscope::Plan;
using verbscope::ServerLimits;

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckBounds(const Plan& plan, const ServerLimits& limits) {
  const auto bounded = verbscope::Bound(plan, limits);
  if (!bounded) return Require(!bounded.error().message.empty());
  Require(verbscope::Validate(*bounded).has_value());
  Require(bounded->tx_depth <= limits.max_qp_wr && bounded->rx_depth <= limits.max_qp_wr);
  Require(verbscope::PlannedNs(*bounded) <= limits.max_run_ns);
  Require(verbscope::EffectiveDeadlineNs(*bounded) <=
          limits.max_run_ns + verbscope::kDeadlineGraceNs);
  Require(verbscope::EstimatedMemoryBytes(*bounded) <= limits.max_memory_bytes);
  for (const uint64_t size : bounded->sizes_bytes) Require(size <= limits.max_message_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return 0;
  (void)verbscope::PeerSettingsFromJson(json);
  const auto plan = verbscope::PlanFromJson(json);
  if (!plan) return 0;
  Require(verbscope::Validate(*plan).has_value());
  const auto again = verbscope::PlanFromJson(verbscope::ToJson(*plan));
  Require(again.has_value() && *again == *plan);
  CheckBounds(*plan, ServerLimits{});
  ServerLimits small;
  small.max_run_ns = 5'000'000'000;
  small.max_memory_bytes = 1 << 20;
  small.max_message_bytes = 1 << 16;
  small.max_qp_wr = 16;
  CheckBounds(*plan, small);
  return 0;
}
