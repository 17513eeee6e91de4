// Registering and releasing memory, by size, in small and in huge pages.
#include <fmt/core.h>

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/cost/free_memory.h"
#include "core/cost/verb_rows.h"
#include "core/plan/size_text.h"

namespace verbscope {
namespace {

std::string Reason(const Error& error) {
  return error.cause.empty() ? error.message : fmt::format("{}: {}", error.message, error.cause);
}

// Why memory of this size is not even asked for; empty: it is.
std::string WhyNot(uint64_t bytes, uint64_t max_bytes) {
  if (bytes > max_bytes) return fmt::format("above the largest size, {}", BytesText(max_bytes));
  const std::optional<uint64_t> free = ReadFreeMemoryBytes();
  if (free && bytes > *free / 2) {
    return fmt::format("it would take more than half of the free memory, {} MiB", *free >> 20);
  }
  return "";
}

struct Memory {
  uint64_t bytes = 0;
  bool huge_pages = false;

  std::string Name() const {
    return fmt::format("reg_mr {}{}", BytesText(bytes), huge_pages ? " huge pages" : "");
  }
  CostRow Row(const char* op) const {
    CostRow row{.point = CostPoint(op, bytes)};
    if (huge_pages) row.point.variant = "huge pages";
    return row;
  }
};

Status MeasureBoth(CostMeter& meter, const CostStage& stage, ibv_pd* pd, const Memory& memory,
                   std::span<std::byte> bytes) {
  const auto make = [&] {
    return stage.device.RegisterMemory(pd, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  };
  Expected<Mr> made = make();
  if (!made) {  // most often the limit of locked memory
    meter.Skip(memory.Name(), Reason(made.error()));
    return {};
  }
  Status closed = made->Close();
  const auto destroyed = [&]() -> Expected<bool> {
    if (!closed) return Fail(closed.error());
    return true;
  };
  Status status = meter.Measure(
      memory.Row("reg_mr"), [] { return Status(); }, [&] { made = make(); },
      [&]() -> Expected<bool> {
        if (!made) return Fail(made.error());
        closed = made->Close();
        return destroyed();
      });
  if (!status) return status;
  return meter.Measure(
      memory.Row("dereg_mr"),
      [&]() -> Status {
        made = make();
        return made ? Status() : Fail(made.error());
      },
      [&] { closed = made->Close(); }, destroyed);
}

Status MeasureSize(CostMeter& meter, const CostStage& stage, ibv_pd* pd, const Memory& memory,
                   uint64_t max_bytes) {
  if (Status status = meter.limits().Check(); !status) return status;
  if (std::string why = WhyNot(memory.bytes, max_bytes); !why.empty()) {
    meter.Skip(memory.Name(), std::move(why));
    return {};
  }
  Expected<std::unique_ptr<Buffer>> buffer =
      stage.device.AllocateBuffer({.bytes = memory.bytes, .huge_pages = memory.huge_pages});
  if (!buffer) {
    meter.Skip(memory.Name(), Reason(buffer.error()));
    return {};
  }
  return MeasureBoth(meter, stage, pd, memory, (*buffer)->bytes());
}

}  // namespace

Status MeasureRegister(CostMeter& meter, const CostStage& stage, uint64_t max_bytes) {
  Expected<Pd> pd = stage.device.AllocatePd();
  if (!pd) return Fail(std::move(pd.error()));
  for (const uint64_t bytes : kRegisterSizes) {
    Status status = MeasureSize(meter, stage, pd->get(), {.bytes = bytes}, max_bytes);
    if (!status) return status;
  }
  for (const uint64_t bytes : kHugePageSizes) {
    Status status =
        MeasureSize(meter, stage, pd->get(), {.bytes = bytes, .huge_pages = true}, max_bytes);
    if (!status) return status;
  }
  return {};
}

}  // namespace verbscope
