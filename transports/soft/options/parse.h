// Soft device options from what users write: a device string or the text of a config file.
//
// Whatever is not understood is refused with an Error of the usage class that names the key, the
// value and what is allowed. No value is clamped. ParseDeviceString reads the file of config=FILE
// by the given function; apart from that there is no I/O and no state: any thread.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_PARSE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_PARSE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

inline constexpr size_t kMaxConfigBytes = size_t{1} << 20;

// The whole content of a regular file of at most kMaxConfigBytes; a usage error otherwise.
Expected<std::string> ReadConfigFile(const std::string& path);

using ConfigReader = std::function<Expected<std::string>(const std::string& path)>;

// Whether a device string means the soft device: "soft" or "soft:…".
bool IsSoftDeviceString(std::string_view text);

// "soft" or "soft:key=value,…". The order of keys does not matter; keys of the string go before
// those of its config file.
Expected<SoftOptions> ParseDeviceString(std::string_view text,
                                        const ConfigReader& read_config = ReadConfigFile);

// The JSON text of a config file. `file` is its name, for errors.
Expected<SoftOptions> ParseConfig(std::string_view text, std::string_view file = "config");

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_PARSE_H_
