// Reads documents that verbscope wrote before. Whatever is in the file, the answer is a Record or
// an Error of the usage class that names the file and what is wrong. Any thread.
#ifndef VERBSCOPE_CMD_READ_RECORD_H_
#define VERBSCOPE_CMD_READ_RECORD_H_

#include <cstddef>
#include <string>

#include "core/base/error.h"
#include "core/record/record.h"

namespace verbscope {

// A larger file is refused before it is parsed. A result with a full histogram and its stretches of
// time is below 1 MiB.
inline constexpr size_t kMaxDocumentBytes = size_t{256} << 20;

// `path` "-" is standard input.
Expected<Record> ReadRecord(const std::string& path);

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_READ_RECORD_H_
