// The files into which a command writes its result: a table of formats, each with the option that
// takes its path, and the writing itself. Every command has all of them.
//
// A file is written beside its name and renamed, so that a reader sees the old file or the new one,
// whole. A device, a pipe or a link is written in place. Each file is written on its own: one that
// cannot be written costs no other.
//
// Used by the main thread of a command.
#ifndef VERBSCOPE_CMD_RESULT_FILES_H_
#define VERBSCOPE_CMD_RESULT_FILES_H_

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/record/record.h"

namespace verbscope {

struct FileFormat {
  const char* option;  // "--csv"
  const char* help;
  // Of one record or more. `path` is where it goes.
  std::string (*render)(std::span<const Record> records, const std::string& path);
  bool several;  // whether it can hold more than one record
};

std::span<const FileFormat> FileFormats();

// By format, in the order of FileFormats(); empty: not asked for.
using FilePaths = std::vector<std::string>;

class ResultFiles {
 public:
  // `paths` may be shorter than the table, or empty.
  explicit ResultFiles(FilePaths paths);

  bool any() const;
  // Formats asked for that hold one record only: their options, none asked for is empty.
  std::string OptionsOfOneRecord() const;

  // Before any work: whether each file can be written, and no two are the same. The first problem,
  // of the usage class. Files with a problem are not written afterwards, the others are.
  Status Check();

  // None of `inputs` ("-" aside) may be written over.
  Status CheckInputs(std::span<const std::string> inputs) const;

  // Writes all, or what Check found no problem with. The problems that came up now.
  std::vector<Error> Write(std::span<const Record> records);
  // The record changed after Write: what can be replaced is written again. Pipes had theirs.
  void Replace(std::span<const Record> records);

 private:
  Status CheckName(size_t index) const;
  Status CheckSame(size_t index) const;
  Status CheckOpen(size_t index) const;
  Status WriteOne(size_t index, const std::string& text) const;
  Status WriteBeside(size_t index, const std::string& text) const;
  Status WriteInPlace(size_t index, const std::string& text) const;
  Error CannotWrite(size_t index, std::string_view call, int errno_value) const;

  FilePaths paths_;
  bool checked_ = false;
  std::set<size_t> refused_;
};

// All of it to a file descriptor, or the errno.
int WriteAll(int fd, std::string_view text);

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_RESULT_FILES_H_
