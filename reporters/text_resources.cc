// The objects in use on a device, whoever made them: the table of `devices --resources`.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reporters/text_parts.h"

namespace verbscope {
namespace {

// "12345 (verbscope)", "kernel (ib_core)"; `-` when the kernel does not say.
std::string OwnerText(const ResourceRow& row, const Canvas& canvas) {
  std::string owner = row.pid ? fmt::format("{}", *row.pid) : row.owner;
  if (owner.empty()) return "-";
  if (!row.name.empty()) owner += fmt::format(" ({})", canvas.Safe(row.name));
  return owner;
}

// What is particular to the kind, as "name value" pairs.
std::string DetailsText(const ResourceRow& row, const Canvas& canvas) {
  std::vector<std::string> parts;
  const auto text = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) parts.push_back(fmt::format("{}{}", name, canvas.Safe(value)));
  };
  const auto number = [&](std::string_view name, const auto& value) {
    if (value) parts.push_back(fmt::format("{} {}", name, *value));
  };
  const auto key = [&](std::string_view name, const std::optional<uint32_t>& value) {
    if (value) parts.push_back(fmt::format("{} 0x{:x}", name, *value));
  };
  text("", row.type);
  text("", row.state);
  if (row.cqe) parts.push_back(fmt::format("{} entries", *row.cqe));
  if (row.length_bytes) parts.push_back(fmt::format("{} bytes", CountText(*row.length_bytes)));
  text("polled by ", row.poll_context);
  number("users", row.users);
  number("port", row.port);
  number("to QP", row.rqpn);
  number("receive PSN", row.rq_psn);
  number("send PSN", row.sq_psn);
  key("rkey", row.rkey);
  key("lkey", row.lkey);
  number("PD", row.pd);
  number("context", row.context);
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "2 contexts, 3 CQs": how many there are of each kind.
std::string CountsText(const std::vector<ResourceRow>& rows) {
  constexpr std::pair<const char*, const char*> kKinds[] = {{"context", "context"}, {"pd", "PD"},
                                                            {"cq", "CQ"},           {"qp", "QP"},
                                                            {"mr", "MR"},           {"srq", "SRQ"}};
  std::vector<std::string> parts;
  for (const auto& [kind, name] : kKinds) {
    const auto count = std::ranges::count(rows, kind, &ResourceRow::kind);
    if (count > 0) parts.push_back(Plural(static_cast<uint64_t>(count), name));
  }
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

void DrawResources(const DeviceResources& resources, Canvas& canvas) {
  constexpr size_t kDetails = 46;
  canvas.Blank();
  canvas.Wrapped(0, canvas.Safe(resources.device) + ", objects in use", Ink::kBold);
  canvas.Labelled("in all", CountsText(resources.rows));
  if (!resources.rows.empty()) {
    canvas.Line(canvas.In(Ink::kDim, "  " + PadRight("kind", 9) + PadRight("number", 9) +
                                         PadRight("owner", kDetails - 20) + "what"));
  }
  for (const ResourceRow& row : resources.rows) {
    const std::string id = row.id ? fmt::format("{}", *row.id) : "-";
    const std::string head = "  " + Cell(canvas.Safe(row.kind), 9) + Cell(id, 9) +
                             Cell(OwnerText(row, canvas), kDetails - 20);
    canvas.Hanging(head, kDetails, DetailsText(row, canvas));
  }
  if (!resources.unknown.empty()) {
    canvas.Labelled("not told",
                    fmt::format("this kernel does not list: {}",
                                canvas.Safe(fmt::format("{}", fmt::join(resources.unknown, ", ")))),
                    Ink::kDim);
  }
}

}  // namespace verbscope
