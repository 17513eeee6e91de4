#include "reporters/junit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "core/record/point_text.h"
#include "core/record/record_json.h"
#include "reporters/markup.h"
#include "reporters/result_name.h"

namespace verbscope {
namespace {

enum class Outcome { kPass, kFailure, kError, kSkipped };

struct Case {
  std::string name;
  Outcome outcome = Outcome::kPass;
  std::string type = {};     // of a failure or an error
  std::string message = {};  // of one, or why it was skipped
  std::string details = {};  // lines
};

// Printable leaves U+FFFE and U+FFFF, which XML 1.0 has no way to write.
std::string Xml(std::string_view text) {
  std::string escaped;
  const std::string printable = Printable(text, /*max_bytes=*/8192);
  for (size_t i = 0; i < printable.size(); ++i) {
    const std::string_view rest = std::string_view(printable).substr(i);
    if (rest.starts_with("\xEF\xBF\xBE") || rest.starts_with("\xEF\xBF\xBF")) {
      i += 2;
      continue;
    }
    AppendEscaped(rest.front(), escaped);
  }
  return escaped;
}

// Several lines, each made safe by itself.
std::string XmlLines(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines += Xml(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string Value(const std::optional<double>& value, const std::string& unit) {
  if (!value) return "unknown";
  return NumberText(*value) + (unit.empty() ? "" : " " + unit);
}

std::string OutcomeText(const GateOutcome& outcome, const std::string& unit) {
  std::string text = fmt::format("{}: observed {}, bound {}, limit {}", outcome.status,
                                 Value(outcome.observed, unit), Value(outcome.bound, unit),
                                 Value(outcome.limit, unit));
  if (outcome.samples) text += fmt::format(", samples {}", *outcome.samples);
  if (outcome.effective_samples) {
    text += fmt::format(", effective samples {}", *outcome.effective_samples);
  }
  if (outcome.samples_needed) text += fmt::format(", samples needed {}", *outcome.samples_needed);
  if (!outcome.why.empty()) text += "; " + Printable(outcome.why);
  return text;
}

// What a status comes to in a record that ended with this code.
Outcome OutcomeOf(std::string_view status, int exit_code) {
  if (status == "pass" || status == "deviation" || status == "better" || status == "same") {
    return Outcome::kPass;
  }
  if (status == "skip") return Outcome::kSkipped;
  const bool open = status == "inconclusive" || status == "undecided";
  return open && exit_code == 0 ? Outcome::kSkipped : Outcome::kFailure;
}

std::string TypeOf(std::string_view status) {
  if (status == "fail" || status == "worse") return "fail";
  if (status == "inconclusive" || status == "undecided") return "inconclusive";
  return "unknown";
}

Case GateCase(const GateRow& gate, int exit_code) {
  Case test{.name = "assert " + gate.expression,
            .outcome = OutcomeOf(gate.outcome.status, exit_code),
            .type = TypeOf(gate.outcome.status),
            .message = OutcomeText(gate.outcome, gate.unit),
            .details = OutcomeText(gate.outcome, gate.unit) + "\n"};
  for (const GateResult& result : gate.results) {
    test.details +=
        fmt::format("{}, {}, run {}: {}\n", Printable(PointText(result.point)),
                    Printable(result.side), result.run, OutcomeText(result.outcome, gate.unit));
  }
  return test;
}

Case CheckCase(const CheckRow& check, int exit_code) {
  std::string message = fmt::format("{}: observed {}; expected {}", check.status,
                                    Printable(check.observed), Printable(check.expected));
  if (!check.why.empty()) message += "; " + Printable(check.why);
  Case test{.name = "check " + check.name,
            .outcome = OutcomeOf(check.status, exit_code),
            .type = TypeOf(check.status),
            .message = message,
            .details = message + "\n"};
  if (!check.source.empty()) test.details += "source: " + Printable(check.source) + "\n";
  return test;
}

Case ComparisonCase(const ComparisonRow& row, int exit_code) {
  std::string message = fmt::format(
      "{}: {} against {} of the base, ratio {}, 95 % [{}, {}], margin {:g} %, {} and {} runs",
      row.verdict, Value(row.fresh, row.unit), Value(row.base, row.unit), Value(row.ratio, ""),
      Value(row.ratio_low, ""), Value(row.ratio_high, ""), row.margin * 100, row.base_runs,
      row.new_runs);
  if (row.runs_needed) message += fmt::format(", runs needed {}", *row.runs_needed);
  if (!row.why.empty()) message += "; " + Printable(row.why);
  return {.name = fmt::format("compare {}, {}, {}", row.metric, PointText(row.point), row.side),
          .outcome = OutcomeOf(row.verdict, exit_code),
          .type = TypeOf(row.verdict),
          .message = message,
          .details = message + "\n"};
}

// Whether the run as such is in order; `explained`: another case of the record is red.
Case RunCase(const Record& record, bool explained) {
  Case test{.name = "run"};
  test.details = fmt::format("verdict {}, exit code {}\n", record.verdict, record.exit_code);
  if (record.error) {
    test.type = std::string(Name(record.error->error_class));
    test.message = record.error->ToText();
    if (record.error->side == Side::kPeer) test.message = "the peer reports: " + test.message;
  } else if (!HasEvidence(record)) {
    test.type = "no_samples";
    test.message = "the record holds no sample, no check and no device: nothing was measured";
  } else if ((record.exit_code != 0 || record.verdict == "error") && !explained) {
    test.type = "exit_code";
    test.message = fmt::format("the command ended with verdict {} and exit code {}", record.verdict,
                               record.exit_code);
  }
  if (!test.type.empty()) {
    test.outcome = Outcome::kError;
    test.details = test.message + "\n" + test.details;
  }
  for (const std::string& notice : record.notices) {
    test.details += "note: " + Printable(notice) + "\n";
  }
  return test;
}

std::vector<Case> CasesOf(const Record& record) {
  std::vector<Case> cases(1);
  for (const GateRow& gate : record.gates) cases.push_back(GateCase(gate, record.exit_code));
  for (const CheckRow& check : record.checks) cases.push_back(CheckCase(check, record.exit_code));
  if (record.comparison) {
    for (const ComparisonRow& row : record.comparison->rows) {
      if (row.gated) cases.push_back(ComparisonCase(row, record.exit_code));
    }
  }
  bool red = false;
  for (const Case& test : cases) red = red || test.outcome == Outcome::kFailure;
  cases.front() = RunCase(record, red);
  UniqueNames names;
  for (Case& test : cases) test.name = names.Take(Printable(test.name));
  return cases;
}

struct Counts {
  size_t tests = 0;
  size_t failures = 0;
  size_t errors = 0;
  size_t skipped = 0;
};

void Count(const std::vector<Case>& cases, Counts& counts) {
  for (const Case& test : cases) {
    ++counts.tests;
    counts.failures += test.outcome == Outcome::kFailure ? 1 : 0;
    counts.errors += test.outcome == Outcome::kError ? 1 : 0;
    counts.skipped += test.outcome == Outcome::kSkipped ? 1 : 0;
  }
}

std::string Seconds(double seconds) {
  return fmt::format("{:.3f}", std::isfinite(seconds) && seconds > 0 ? seconds : 0);
}

// The strictest of the schemas in use take "2026-11-29T12:00:00" and no zone; it is UTC.
std::string Timestamp(const std::string& started_at) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  const std::string_view text = std::string_view(started_at).substr(0, kShape.size());
  bool fits = text.size() == kShape.size();
  for (size_t i = 0; fits && i < kShape.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    fits = kShape[i] == 'd' ? digit : text[i] == kShape[i];
  }
  return fits ? std::string(text) : "1970-01-01T00:00:00";
}

void AppendCase(const Case& test, const std::string& classname, const std::string& seconds,
                std::string& text) {
  text += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{}\">\n", classname,
                      Xml(test.name), seconds);
  if (test.outcome == Outcome::kSkipped) {
    text += fmt::format("      <skipped message=\"{}\"/>\n", Xml(test.message));
  } else if (test.outcome == Outcome::kPass) {
    if (!test.details.empty()) {
      text += fmt::format("      <system-out>{}</system-out>\n", XmlLines(test.details));
    }
  } else {
    const std::string_view tag = test.outcome == Outcome::kError ? "error" : "failure";
    text += fmt::format("      <{0} type=\"{1}\" message=\"{2}\">{3}</{0}>\n", tag, Xml(test.type),
                        Xml(test.message), XmlLines(test.details));
  }
  text += "    </testcase>\n";
}

void AppendProperties(const Record& record, std::string& text) {
  std::string command_line;
  for (const std::string& word : record.argv) {
    command_line += (command_line.empty() ? "" : " ") + Printable(word);
  }
  std::vector<NamedText> properties = {{"version", record.tool_version},
                                       {"command_line", command_line},
                                       {"verdict", record.verdict},
                                       {"exit_code", std::to_string(record.exit_code)}};
  if (record.local.device) properties.push_back({"local_device", record.local.device->name});
  if (record.remote) properties.push_back({"remote_host", record.remote->host});
  if (record.remote && record.remote->device) {
    properties.push_back({"remote_device", record.remote->device->name});
  }
  text += "    <properties>\n";
  for (const NamedText& property : properties) {
    text += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", property.name,
                        Xml(property.value));
  }
  text += "    </properties>\n";
}

void AppendSuite(size_t index, const std::string& name, const Record& record,
                 const std::vector<Case>& cases, std::string& text) {
  Counts counts;
  Count(cases, counts);
  const std::string host = record.local.host.empty() ? "unknown" : Xml(record.local.host);
  text += fmt::format(
      "  <testsuite id=\"{}\" package=\"verbscope\" name=\"{}\" hostname=\"{}\" timestamp=\"{}\" "
      "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">\n",
      index, Xml(name), host.empty() ? "unknown" : host, Timestamp(record.started_at), counts.tests,
      counts.failures, counts.errors, counts.skipped, Seconds(record.wall_s));
  AppendProperties(record, text);
  for (const Case& test : cases) {
    AppendCase(test, "verbscope." + Xml(record.command),
               Seconds(&test == &cases[0] ? record.wall_s : 0), text);
  }
  text += "    <system-out></system-out>\n    <system-err></system-err>\n  </testsuite>\n";
}

}  // namespace

std::string RenderJunit(std::span<const Record> records) {
  std::string suites;
  Counts counts;
  double seconds = 0;
  UniqueNames names;
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    const std::vector<Case> cases = CasesOf(record);
    Count(cases, counts);
    seconds += record.wall_s;
    const std::string name = Printable("verbscope " + record.command);
    AppendSuite(i, names.Take(name), record, cases, suites);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"verbscope\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{}\">\n"
      "{}</testsuites>\n",
      counts.tests, counts.failures, counts.errors, Seconds(seconds), suites);
}

}  // namespace verbscope
