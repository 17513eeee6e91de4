#include "core/session/measured_parts.h"

#include <algorithm>
#include <utility>

#include "core/session/latency_metrics.h"

namespace verbscope {
namespace {

std::optional<double> Sum(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return std::nullopt;
  return *a + *b;
}

}  // namespace

void MeasuredParts::Add(MeasuredPart part) {
  const double offset_s =
      intervals_.empty() ? seconds_ : std::max(seconds_, intervals_.back().to_s);
  if (part.latency != nullptr) {
    measures_latency_ = true;
    histogram_.Merge(part.latency->total());
    blocks_.Append(part.latency->TakeBlocks(), offset_s);
  }
  if (part.bandwidth) AddBandwidth(*part.bandwidth);
  for (IntervalRow row : part.intervals) {
    row.from_s += offset_s;
    row.to_s += offset_s;
    intervals_.push_back(row);
  }
  AddCpu(part.cpu, part.seconds);
  samples_ += part.samples;
  messages_ += part.messages;
  seconds_ += part.seconds;
  late_sends_ += part.late_sends;
  for (const auto& [name, change] : part.counters) counters_[name] += change;
  ++parts_;
}

void MeasuredParts::AddBandwidth(const BandwidthMetrics& bandwidth) {
  if (!bandwidth_) {
    bandwidth_ = bandwidth;
    return;
  }
  bandwidth_->bytes += bandwidth.bytes;
  bandwidth_->messages += bandwidth.messages;
  bandwidth_->seconds += bandwidth.seconds;
  if (bandwidth_->seconds <= 0) return;
  bandwidth_->gbit_per_s = static_cast<double>(bandwidth_->bytes) * 8e-9 / bandwidth_->seconds;
  bandwidth_->msg_per_s = static_cast<double>(bandwidth_->messages) / bandwidth_->seconds;
}

// The first account stands as it is; what is joined are sums, and ratios of sums.
void MeasuredParts::AddCpu(const CpuMetrics& cpu, double seconds) {
  // The time that the utilization is of: a little longer than from first to last message.
  const double account_s = cpu.utilization && *cpu.utilization > 0
                               ? std::max(cpu.cpu_s / *cpu.utilization, seconds)
                               : seconds;
  account_s_ += account_s;
  completions_ += cpu.completions_per_event.value_or(0) * static_cast<double>(cpu.events);
  if (parts_ == 0) {
    cpu_ = cpu;
    return;
  }
  cpu_.cpu_s += cpu.cpu_s;
  cpu_.voluntary_switches += cpu.voluntary_switches;
  cpu_.involuntary_switches += cpu.involuntary_switches;
  cpu_.events += cpu.events;
  cpu_.empty_wakeups += cpu.empty_wakeups;
  cpu_.lost_wakeups += cpu.lost_wakeups;
  cpu_.process_cpu_s = Sum(cpu_.process_cpu_s, cpu.process_cpu_s);
  cpu_.run_delay_s = Sum(cpu_.run_delay_s, cpu.run_delay_s);
  cpu_.core = cpu.core;
  cpu_.utilization.reset();
  cpu_.completions_per_event.reset();
  if (account_s_ > 0) cpu_.utilization = std::min(1.0, cpu_.cpu_s / account_s_);
  if (cpu_.events > 0) {
    cpu_.completions_per_event = completions_ / static_cast<double>(cpu_.events);
  }
}

Metrics MeasuredParts::ToMetrics(double offered_per_s) const {
  Metrics metrics;
  if (measures_latency_) {
    metrics.latency = MakeLatencyMetrics(histogram_, operation_, blocks_);
    LoadMetrics load;
    if (seconds_ > 0) load.achieved_per_s = static_cast<double>(samples_) / seconds_;
    if (offered_per_s > 0) {
      load.offered_per_s = offered_per_s;
      load.late_sends = late_sends_;
    }
    metrics.load = load;
  }
  metrics.bandwidth = bandwidth_;
  metrics.cpu = cpu_;
  if (parts_ > 1 && messages_ > 0) {
    metrics.cpu->us_per_message = cpu_.cpu_s * 1e6 / static_cast<double>(messages_);
  }
  metrics.counters = counters_;
  return metrics;
}

}  // namespace verbscope
