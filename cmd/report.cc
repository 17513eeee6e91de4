// `report`: documents of earlier runs as text, or in any other format.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cmd/commands.h"
#include "cmd/documents.h"
#include "cmd/output.h"
#include "cmd/result_files.h"
#include "cmd/signals.h"
#include "core/record/record_json.h"
#include "reporters/json.h"

namespace verbscope {
namespace {

struct ReportOptions {
  std::vector<std::string> documents;
  OutputOptions output;
  bool verdict = false;
};

// A document is not overwritten by what is made of it.
Status CheckInputs(const ReportOptions& options) {
  if (std::ranges::count(options.documents, "-") > 1) {
    return Fail(UsageError("standard input is named twice", {}, "name - once"));
  }
  if (Status status = ResultFiles(options.output.files).CheckInputs(options.documents); !status) {
    return status;
  }
  const std::string single = options.output.json ? "--json" : "";
  const std::string file = ResultFiles(options.output.files).OptionsOfOneRecord();
  const std::string& refused = single.empty() ? file : single;
  if (options.documents.size() > 1 && !refused.empty()) {
    return Fail(UsageError(
        fmt::format("{} is one document, but {} are given", refused, options.documents.size()), {},
        "give one document, or another format"));
  }
  return {};
}

// Whether what is in a document that says it passed bears it out.
bool ShowsAPass(const Record& record) {
  const auto fails = [](const GateRow& gate) { return gate.outcome.status == "fail"; };
  const bool empty = record.results.empty() && record.checks.empty() && !record.comparison &&
                     record.command != "devices";
  return record.verdict == "pass" && !record.error && !empty &&
         std::ranges::none_of(record.gates, fails) &&
         std::ranges::find(record.checks, "fail", &CheckRow::status) == record.checks.end() &&
         std::ranges::find(record.results, false, &Result::complete) == record.results.end();
}

// From best to worst: a run that broke says less than one that failed.
int WorstExitCode(std::span<const Record> records) {
  constexpr std::array kFromBest = {0, 4, 3, 6, 5, 2, 130, 1};
  size_t worst = 0;
  for (const Record& record : records) {
    const auto found = std::ranges::find(kFromBest, record.exit_code);
    size_t rank = static_cast<size_t>(found - kFromBest.begin());
    // Codes that no version gives, a code that the verdict contradicts, and a pass for nothing.
    if (found == kFromBest.end() || (rank == 0 && !ShowsAPass(record))) {
      rank = kFromBest.size() - 1;
    }
    worst = std::max(worst, rank);
  }
  return kFromBest[worst];
}

// On standard output: the document as asked, or the text reports unless it all goes into files.
std::string Shown(const ReportOptions& options, std::span<const Record> records, bool files) {
  if (options.output.json) return RenderJson(records.front());
  if (files) return "";
  std::string text;
  for (size_t i = 0; i < records.size(); ++i) {
    if (records.size() > 1) {
      text += fmt::format("{}document {}: {}\n\n", i > 0 ? "\n" : "", i + 1,
                          Printable(options.documents[i]));
    }
    text += TextReport(records[i], options.output);
  }
  return text;
}

int RunReport(const ReportOptions& options, const std::vector<std::string>& argv) {
  // What goes wrong here is said on standard error and, with --json, as a document; the files are
  // those of the documents, and stay as they were.
  Record own;
  OutputOptions without_files = options.output;
  without_files.files.clear();
  Output output(without_files, "report", argv, own);
  if (Status status = CheckInputs(options); !status) return output.Fail(std::move(status.error()));
  ResultFiles files(options.output.files);
  if (Status status = files.Check(); !status) return output.Fail(std::move(status.error()));
  std::vector<Record> records;
  for (const std::string& path : options.documents) {
    Expected<Record> record = ReadDocument(path);
    if (!record) return output.Fail(std::move(record.error()));
    records.push_back(std::move(*record));
  }
  if (Status status = CheckInterrupt(); !status) return output.Fail(std::move(status.error()));
  int code = options.verdict ? WorstExitCode(records) : 0;
  const int failed = ExitCode(ErrorClass::kUsage);
  for (const Error& problem : files.Write(records)) {
    WriteStandardError("error: " + problem.ToText());
    if (code == 0) code = failed;
  }
  if (const int error = WriteAll(STDOUT_FILENO, Shown(options, records, files.any())); error != 0) {
    WriteStandardError("error: cannot write to standard output: " + ErrnoText(error));
    if (code == 0) code = failed;
  }
  return code;
}

}  // namespace

Command AddReport(CLI::App& app) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* command =
      app.add_subcommand("report", "documents of earlier runs as text or in other formats");
  command->add_option("FILES", options->documents, "documents; - is standard input")->required();
  command->add_flag("--verdict", options->verdict,
                    "end with the worst exit code of the documents (default: 0 once converted)");
  AddOutputOptions(*command, options->output);
  return {.app = command, .run = [options](const std::vector<std::string>& argv) {
            return RunReport(*options, argv);
          }};
}

}  // namespace verbscope
