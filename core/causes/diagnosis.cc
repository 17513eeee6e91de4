#include "core/causes/diagnosis.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/causes/counter_meanings.h"
#include "core/causes/rules.h"
#include "core/plan/step_commands.h"

namespace verbscope {
namespace {

SideEvidence EvidenceOf(const SideRecord& side, std::string role) {
  SideEvidence evidence{.role = std::move(role),
                        .governor = side.governor,
                        .jitter_floor = side.jitter_floor,
                        .counters = side.counters};
  if (side.device) evidence.gid = side.device->gid;
  return evidence;
}

// The soft device is opened by each side for itself, and counts for it alone.
bool IsOneDevice(const Record& record) {
  if (!record.remote || !record.local.device || !record.remote->device) return false;
  const DeviceRecord& here = *record.local.device;
  const DeviceRecord& there = *record.remote->device;
  return record.local.host == record.remote->host && here.name == there.name &&
         here.port == there.port && !here.link;
}

std::string SideOf(const Error& error, const Record& record) {
  const bool peer = error.side == Side::kPeer;
  const std::string& own = record.local.role;
  if (own == "requester") return peer ? "responder" : "requester";
  if (own == "responder") return peer ? "requester" : "responder";
  return peer ? "responder" : "local";
}

void TakeResults(const Record& record, Evidence& evidence) {
  for (const Result& result : record.results) {
    if (result.complete) {
      evidence.passed_bytes =
          std::max(evidence.passed_bytes.value_or(0), uint64_t{result.point.size_bytes});
    }
    if (!result.metrics.latency) continue;
    std::optional<int64_t> p50;
    std::optional<int64_t> tail;
    for (const PercentileRow& row : result.metrics.latency->percentiles) {
      if (row.percent == "50") p50 = row.value_ns;
      if (row.percent == "99.9") tail = row.value_ns;
    }
    if (!p50 || !tail || *tail <= evidence.p99_9_ns.value_or(0)) continue;
    evidence.p50_ns = p50;
    evidence.p99_9_ns = tail;
  }
}

std::vector<std::string_view> Split(std::string_view text) {
  constexpr std::string_view kOr = "; or ";
  std::vector<std::string_view> parts;
  for (size_t end = text.find(kOr); end != text.npos; end = text.find(kOr)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + kOr.size());
  }
  parts.push_back(text);
  return parts;
}

// The alternatives that the error names itself; each has its own step when there are as many.
std::vector<CauseRow> StatedCauses(const Evidence& evidence) {
  std::vector<CauseRow> rows;
  if (!evidence.error || evidence.error->cause.empty()) return rows;
  const std::vector<std::string_view> causes = Split(evidence.error->cause);
  const std::vector<std::string_view> steps = Split(evidence.error->next_step);
  const bool paired = causes.size() == steps.size();
  if (!paired) {
    return {{.cause = evidence.error->cause,
             .next_step = evidence.error->next_step,
             .side = evidence.error_side}};
  }
  for (size_t i = 0; i < causes.size(); ++i) {
    rows.push_back({.cause = std::string(causes[i]),
                    .next_step = std::string(steps[i]),
                    .side = evidence.error_side});
  }
  return rows;
}

void AddRules(const Evidence& evidence, Confidence confidence, std::vector<CauseRow>& rows) {
  for (const CauseRule& rule : CauseRules()) {
    if (rule.confidence != confidence) continue;
    if (std::optional<CauseRow> row = rule.judge(evidence); row) rows.push_back(*std::move(row));
  }
}

}  // namespace

Evidence EvidenceOf(const Record& record) {
  Evidence evidence{.error = record.error, .plan = record.plan};
  evidence.provokes = record.plan && FindStepCommand(record.plan->command) != nullptr;
  evidence.one_device = IsOneDevice(record);
  if (record.error) evidence.error_side = SideOf(*record.error, record);
  const bool responds = record.local.role == "responder";
  (responds ? evidence.responder : evidence.requester) =
      EvidenceOf(record.local, responds ? "responder" : "requester");
  if (record.remote) {
    (responds ? evidence.requester : evidence.responder) =
        EvidenceOf(*record.remote, responds ? "requester" : "responder");
  }
  TakeResults(record, evidence);
  return evidence;
}

std::vector<CauseRow> Diagnose(const Evidence& evidence) {
  std::vector<CauseRow> rows;
  // Whoever ended the run on purpose knows why.
  if (evidence.error && (evidence.error->error_class == ErrorClass::kInterrupted ||
                         evidence.error->error_class == ErrorClass::kUsage)) {
    rows = StatedCauses(evidence);
  } else {
    AddRules(evidence, Confidence::kDecided, rows);
    for (CauseRow& row : StatedCauses(evidence)) rows.push_back(std::move(row));
    AddRules(evidence, Confidence::kHint, rows);
  }
  if (rows.size() > kMaxCauses) rows.resize(kMaxCauses);
  return rows;
}

void AddCauses(Record& record) {
  const Evidence evidence = EvidenceOf(record);
  record.causes = Diagnose(evidence);
  if (evidence.provokes) return;
  // One device is said once.
  record.counter_notes =
      NotesOf(evidence.requester.counters,
              evidence.one_device ? std::map<std::string, int64_t>() : evidence.responder.counters);
}

}  // namespace verbscope
