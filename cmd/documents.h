// Reads the documents that commands of this program wrote. Any thread.
#ifndef VERBSCOPE_CMD_DOCUMENTS_H_
#define VERBSCOPE_CMD_DOCUMENTS_H_

#include <cstddef>
#include <string>

#include "core/base/error.h"
#include "core/record/record.h"

namespace verbscope {

inline constexpr size_t kMaxDocumentBytes = size_t{256} << 20;

// The document in that file; "-" is standard input. Fails with the usage class, naming the file:
// it cannot be read, is larger than kMaxDocumentBytes, is not one JSON document, or not one of
// schema version 1. Bytes of any kind are safe to read.
Expected<Record> ReadDocument(const std::string& path);

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_DOCUMENTS_H_
