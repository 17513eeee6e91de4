#include "core/record/preflight.h"

namespace verbscope {

const PreflightRow* FirstToFix(const std::vector<PreflightRow>& rows) {
  for (const char* status : {"fail", "warn"}) {
    for (const PreflightRow& row : rows) {
      if (row.status == status) return &row;
    }
  }
  return nullptr;
}

}  // namespace verbscope
