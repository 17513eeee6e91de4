#include "core/statistics/holm.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace verbscope {

std::vector<double> HolmAdjusted(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&p](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;  // a larger p is never adjusted to less than a smaller one
  for (size_t i = 0; i < order.size(); ++i) {
    const double raised = p[order[i]] * static_cast<double>(order.size() - i);
    largest = std::min(1.0, std::max(largest, raised));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace verbscope
