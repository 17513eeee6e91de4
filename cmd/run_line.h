// What `serve` says of each client in one line.
#ifndef VERBSCOPE_CMD_RUN_LINE_H_
#define VERBSCOPE_CMD_RUN_LINE_H_

#include <string>

#include "core/record/record.h"

namespace verbscope {

// "2026-01-02T03:04:05Z 10.0.0.2:50312 send-lat 64 B: pass, 100000 samples, p50 6.10 us"
std::string RunLine(const Record& record, const std::string& client);

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_RUN_LINE_H_
