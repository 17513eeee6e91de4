// Records as a table for spreadsheets, pandas, R. Pure function, any thread.
#ifndef VERBSCOPE_REPORTERS_CSV_H_
#define VERBSCOPE_REPORTERS_CSV_H_

#include <span>
#include <string>

#include "core/record/record.h"

namespace verbscope {

// RFC 4180: a header, then a row for each result of each record; every row has every column,
// separated by commas, lines end in CR LF. The columns and their order are always the same; new
// ones are added at the end. Empty: unknown, or it does not apply. Numbers are those of the JSON
// document, to the last digit. A record without results has no row.
std::string RenderCsv(std::span<const Record> records);

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_CSV_H_
