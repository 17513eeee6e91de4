// A row of the preflight that `doctor` makes: one property of this host that RDMA depends on, what
// it is and what it should be. Plain data, any thread.
#ifndef VERBSCOPE_CORE_RECORD_PREFLIGHT_H_
#define VERBSCOPE_CORE_RECORD_PREFLIGHT_H_

#include <string>
#include <vector>

namespace verbscope {

struct PreflightRow {
  std::string name;          // "memlock", "pcie-width"
  std::string status = {};   // "ok", "warn", "fail", "skip"
  std::string about = {};    // "host", "mlx5_0", "mlx5_0 port 1"
  std::string value = {};    // what was read; of a skip: why it was not
  std::string file = {};     // where; empty: from several, or from none
  std::string good = {};     // what it should be
  std::string symptom = {};  // warn and fail: what it looks like when a program runs
  std::string fix = {};      // warn and fail: a command, or what to do
  friend bool operator==(const PreflightRow&, const PreflightRow&) = default;
};

// The row to act on first: the first that failed, else the first warning; nullptr when all is well.
// Rows come in the order of what others depend on.
const PreflightRow* FirstToFix(const std::vector<PreflightRow>& rows);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_PREFLIGHT_H_
