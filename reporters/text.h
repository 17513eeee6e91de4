// A Record as text for a terminal: what ran where, the numbers with their intervals, the shape of
// the distribution, and what to make of it. Pure functions, any thread.
//
// Nothing that came from elsewhere reaches the terminal as it is: control characters are removed,
// and without `unicode` everything is ASCII.
#ifndef VERBSCOPE_REPORTERS_TEXT_H_
#define VERBSCOPE_REPORTERS_TEXT_H_

#include <string>

#include "core/record/record.h"
#include "reporters/text_options.h"

namespace verbscope {

// The report of a run. Several results become a table of one line each, unless verbose.
std::string RenderText(const Record& record, const TextOptions& options = {});

// The list of the `devices` command, one block per device with its ports and GID tables, and the
// objects in use where they were asked for; empty when there is no device.
std::string RenderDevices(const Record& record, const TextOptions& options = {});

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_TEXT_H_
