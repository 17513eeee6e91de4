#include "core/record/json_parts.h"

namespace verbscope {

using nlohmann::json;

OrderedJson CauseJson(const CauseRow& row) {
  return {
      {"cause", Name(row.cause)},
      {"evidence", TextOrNull(row.evidence)},
      {"next_step", TextOrNull(row.next_step)},
      {"side", Name(row.side)},
  };
}

Expected<CauseRow> CauseFromJson(const json& object) {
  CauseRow row;
  JsonFields fields(object, "causes[]", ErrorClass::kRun);
  GetName(fields, "cause", row.cause);
  GetText(fields, "evidence", row.evidence);
  GetText(fields, "next_step", row.next_step);
  GetName(fields, "side", row.side);
  return Finish(fields, std::move(row));
}

OrderedJson CounterNoteJson(const CounterNote& note) {
  return {
      {"side", Name(note.side)},
      {"name", Name(note.name)},
      {"change", note.change},
      {"meaning", Name(note.meaning)},
  };
}

Expected<CounterNote> CounterNoteFromJson(const json& object) {
  CounterNote note;
  JsonFields fields(object, "counter_notes[]", ErrorClass::kRun);
  GetName(fields, "side", note.side);
  GetName(fields, "name", note.name);
  fields.Get("change", note.change);
  GetName(fields, "meaning", note.meaning);
  return Finish(fields, std::move(note));
}

}  // namespace verbscope
