// Where results go. Standard output carries results only: the text report, or with --json exactly
// one document. Notices and errors go to standard error and into the document.
//
// Used by the main thread of a command; Notice may be called from any thread.
#ifndef VERBSCOPE_CMD_OUTPUT_H_
#define VERBSCOPE_CMD_OUTPUT_H_

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "cmd/options.h"
#include "cmd/result_files.h"
#include "core/base/error.h"
#include "core/record/record.h"

namespace verbscope {

class Output {
 public:
  // `record` gets tool, command, argv, start time and notices; it must outlive the Output.
  Output(const OutputOptions& options, std::string command, const std::vector<std::string>& argv,
         Record& record);

  // Said at once on standard error (unless --quiet) and kept in the document.
  void Notice(const std::string& text);
  // Said at once on standard error only: progress, places in a queue.
  void Say(const std::string& text) const;

  // The same for what is being done right now, on a line that the next one replaces; on a terminal
  // only.
  void Progress(const std::string& text);

  // Before a command does its work: whether its result can be kept in every file asked for. A run
  // of minutes whose result has nowhere to go is refused at once. Fails with the usage class.
  // None of the files that it reads, `inputs`, is written over.
  Status CheckDestinations(std::span<const std::string> inputs = {});

  // Writes the report and returns the exit code of the process. Exactly once. `text` false: no text
  // report, for a command that has printed its own lines.
  int Finish(bool text = true);

  // Sets error, verdict and exit code of the record, then Finish.
  int Fail(Error error, bool text = true);

 private:
  void WriteFiles();
  void EndProgress() const;

  const OutputOptions options_;
  Record& record_;
  ResultFiles files_;

  mutable bool progress_shown_ = false;  // a line without an end stands on the terminal
  std::mutex mutex_;
  std::chrono::steady_clock::time_point start_;
};

// One line on standard error, and whether it could be written does not matter: a full disk or a
// closed pipe behind standard error is no reason to lose a result.
void WriteStandardError(const std::string& line);

// The text report of a finished record, as this terminal can show it.
std::string TextReport(const Record& record, const OutputOptions& options);

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_OUTPUT_H_
