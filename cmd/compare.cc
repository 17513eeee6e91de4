#include "core/compare/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cmd/commands.h"
#include "cmd/documents.h"
#include "cmd/output.h"
#include "cmd/signals.h"
#include "core/record/record.h"

namespace verbscope {
namespace {

// As the user wrote them.
struct CompareCommandOptions {
  std::vector<std::string> base;
  std::vector<std::string> fresh;
  std::string allowed;  // separated by commas, as is the next
  std::string margins;
  bool require_decision = false;
  OutputOptions output;
};

void AddCompareOptions(CLI::App& app, CompareCommandOptions& options) {
  app.add_option("BASE", options.base,
                 "documents of the base, as --json or --json-file wrote them; - is standard input")
      ->required()
      ->type_name("FILE");
  app.add_option("--new", options.fresh, "documents of what is judged against it")
      ->required()
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->type_name("FILE");
  app.add_option("--allow-diff", options.allowed,
                 "parameters that may differ: size, wait, qps, … or all")
      ->join(',')
      ->type_name("LIST");
  app.add_option("--margin", options.margins,
                 "change in percent that is none (default: 3, and at least 50 ns and two clock "
                 "steps of a latency; 0: no margin); METRIC=PERCENT for one metric")
      ->join(',')
      ->type_name("PERCENT");
  app.add_flag("--require-decision", options.require_decision,
               "exit 4 while a gated metric is undecided");
  AddOutputOptions(app, options.output);
}

// The same file twice in one set would make its runs count double and prove anything.
Status CheckFiles(const std::vector<std::string>& files, std::string_view set) {
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      std::error_code unknown;
      if (files[i] != files[k] && !std::filesystem::equivalent(files[i], files[k], unknown)) {
        continue;
      }
      return Fail(
          UsageError(fmt::format("{} is twice in the {} set", files[i], set),
                     "its runs would count double, and a difference seem more certain than it is",
                     "name each document once"));
    }
  }
  return {};
}

Status CheckFiles(const CompareCommandOptions& options) {
  if (Status status = CheckFiles(options.base, "base"); !status) return status;
  if (Status status = CheckFiles(options.fresh, "new"); !status) return status;
  if (std::ranges::count(options.base, "-") + std::ranges::count(options.fresh, "-") > 1) {
    return Fail(UsageError("standard input is named in both sets", "it can be read once"));
  }
  return {};
}

Expected<std::vector<Record>> ReadDocuments(const std::vector<std::string>& files) {
  std::vector<Record> records;
  for (const std::string& file : files) {
    Expected<Record> record = ReadDocument(file);
    if (!record) return Fail(std::move(record.error()));
    records.push_back(std::move(*record));
  }
  return records;
}

Expected<Comparison> RunComparison(const CompareCommandOptions& options) {
  Expected<AllowedDifferences> allowed = ParseAllowed(Elements(options.allowed));
  if (!allowed) return Fail(std::move(allowed.error()));
  Expected<Margins> margins = ParseMargins(Elements(options.margins));
  if (!margins) return Fail(std::move(margins.error()));
  if (Status status = CheckFiles(options); !status) return Fail(std::move(status.error()));
  Expected<std::vector<Record>> base = ReadDocuments(options.base);
  if (!base) return Fail(std::move(base.error()));
  Expected<std::vector<Record>> fresh = ReadDocuments(options.fresh);
  if (!fresh) return Fail(std::move(fresh.error()));
  return Compare(*base, *fresh,
                 {.base_files = options.base,
                  .new_files = options.fresh,
                  .allowed = std::move(*allowed),
                  .margins = std::move(*margins)});
}

int RunCommand(const CompareCommandOptions& options, const std::vector<std::string>& argv) {
  Record record;
  Output output(options.output, "compare", argv, record);
  std::vector<std::string> inputs = options.base;
  inputs.insert(inputs.end(), options.fresh.begin(), options.fresh.end());
  if (Status status = output.CheckDestinations(inputs); !status) {
    return output.Fail(std::move(status.error()));
  }
  Expected<Comparison> comparison = RunComparison(options);
  if (!comparison) return output.Fail(std::move(comparison.error()));
  if (Status status = CheckInterrupt(); !status) return output.Fail(std::move(status.error()));
  record.comparison = std::move(*comparison);
  JudgeComparison(options.require_decision, record);
  return output.Finish();
}

}  // namespace

Command AddCompare(CLI::App& app) {
  const auto options = std::make_shared<CompareCommandOptions>();
  CLI::App* command =
      app.add_subcommand("compare", "two sets of reports: better, worse, same or undecided");
  AddCompareOptions(*command, *options);
  return {.app = command, .run = [options](const std::vector<std::string>& argv) {
            return RunCommand(*options, argv);
          }};
}

}  // namespace verbscope
