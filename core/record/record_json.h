// Record and its parts as JSON, both ways: the document of schema version 1 (docs/schema), and the
// result and side frames of the control channel. Free functions, any thread.
//
// Bytes read here may come from another host or a file: a wrong type, a non-finite number or a
// missing member is an error that names it; unknown members are ignored. Texts read are made
// Printable, except argv. The class of such an error is kRun for a part that came from the peer and
// kUsage for a whole document, which came from a file.
//
// A text that is empty because it is not known is null in JSON, and so is a number that is not
// finite; the members that identify (names, values, definitions) are always texts.
#ifndef VERBSCOPE_CORE_RECORD_RECORD_JSON_H_
#define VERBSCOPE_CORE_RECORD_RECORD_JSON_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/record/record.h"

namespace verbscope {

inline constexpr int kSchemaVersion = 1;

// The whole document. Strings that are not UTF-8 have the wrong bytes replaced by U+FFFD.
nlohmann::ordered_json ToJson(const Record& record);
Expected<Record> RecordFromJson(const nlohmann::json& json);

// kWire leaves out the bucket list, which is rebuilt from hdr_v2 at the other end, and the blocks
// of time, so that a result stays far below a frame of 1 MiB.
enum class ResultForm { kDocument, kWire };
nlohmann::ordered_json ToJson(const Result& result, ResultForm form = ResultForm::kDocument);
Expected<Result> ResultFromJson(const nlohmann::json& json);

nlohmann::ordered_json ToJson(const CheckRow& check);
Expected<CheckRow> CheckRowFromJson(const nlohmann::json& json);

nlohmann::ordered_json ToJson(const GateRow& gate);
Expected<GateRow> GateRowFromJson(const nlohmann::json& json);

nlohmann::ordered_json ToJson(const SideRecord& side);
Expected<SideRecord> SideFromJson(const nlohmann::json& json);

nlohmann::ordered_json ToJson(const Error& error);
// An unknown class is kInternal, as ErrorClassFromName says.
Expected<Error> ErrorFromJson(const nlohmann::json& json);

// `text` with every byte that is not part of well-formed UTF-8 replaced by U+FFFD.
std::string ValidUtf8(std::string_view text);
// Text safe for JSON and for a terminal: invalid UTF-8 replaced; tabs and line ends become a space;
// other control characters, and those that reorder what a reader sees, are removed; cut at a
// character's end to at most max_bytes.
std::string Printable(std::string_view text, size_t max_bytes = 1024);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_RECORD_JSON_H_
