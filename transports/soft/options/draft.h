// Options while they are read: the config file first, the device string over it, the rules between
// values last. For this folder only; no I/O, any thread.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_DRAFT_H_
#define VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_DRAFT_H_

#include <string_view>

#include "core/base/error.h"
#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

struct Draft {
  SoftOptions options;
  bool mtu_given = false;
  bool lid_given = false;
  bool sm_lid_given = false;
};

// Reads a config file's text into `draft`, without the rules between values.
Status ReadConfig(std::string_view text, std::string_view file, Draft& draft);

// Fills what follows from other values and checks the rules between values.
Expected<SoftOptions> Finish(Draft draft);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_DRAFT_H_
