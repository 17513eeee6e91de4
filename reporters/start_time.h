// When a record was begun, for formats that count seconds. Pure function, any thread.
#ifndef VERBSCOPE_REPORTERS_START_TIME_H_
#define VERBSCOPE_REPORTERS_START_TIME_H_

#include <ctime>
#include <optional>
#include <string>

namespace verbscope {

// Seconds since 1970 of "2026-11-29T12:00:00Z"; nullopt for anything else.
inline std::optional<double> UnixSeconds(const std::string& text) {
  std::tm parts = {};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr) return std::nullopt;
  return static_cast<double>(::timegm(&parts));
}

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_START_TIME_H_
