// Identity of a result. Plain data, any thread.
#ifndef VERBSCOPE_CORE_RECORD_POINT_H_
#define VERBSCOPE_CORE_RECORD_POINT_H_

#include <cstdint>
#include <optional>
#include <string>

namespace verbscope {

// Identity of a result: comparisons join on it. A member that does not apply is absent.
struct Point {
  std::string op;  // "send", "write", …
  uint64_t size_bytes = 0;
  uint32_t qps = 1;
  std::optional<uint32_t> cqs;
  std::optional<uint32_t> threads;   // that polled them
  std::optional<uint32_t> cq_depth;  // entries asked for of each, where that is what is compared
  std::string wait;  // kind only: "busy", "busy:pause", "event", "solicited", "hybrid"
  std::optional<int64_t> spin_ns;
  std::optional<double> rate_per_s;  // absent: closed loop
  // event-vs-poll: the rate is this share of what busy polling sustained.
  std::optional<double> busy_share_percent;
  std::optional<std::string> moderation;  // of events: "16:8us"
  std::optional<uint32_t> tx_depth;
  std::optional<uint32_t> timer_code;
  std::optional<bool> imm;               // true: with immediate data
  std::optional<std::string> atomic_op;  // op atomic only
  std::optional<bool> bidirectional;     // true: both sides sent at once
  std::optional<uint32_t> post_list;     // where it is not 1
  std::optional<bool> inline_data;       // verb-cost: whether the payload went with the request
  std::optional<uint32_t> signal_every;  // verb-cost: requests per signalled one, where not 1
  // What else sets it apart from a result of the same operation: "receive with no SGE".
  std::optional<std::string> variant;
  friend bool operator==(const Point&, const Point&) = default;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_POINT_H_
