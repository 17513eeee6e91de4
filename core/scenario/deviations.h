// What devices are known to answer otherwise than the standard says: data, one file per kind of
// device. A check whose observation is listed here for its rule passes as a deviation, with the
// reason. A row that no check asks for, or that its device does not show any more, fails a test.
//
// Constant data; any thread.
#ifndef VERBSCOPE_CORE_SCENARIO_DEVIATIONS_H_
#define VERBSCOPE_CORE_SCENARIO_DEVIATIONS_H_

#include <span>
#include <string_view>

namespace verbscope {

struct Deviation {
  std::string_view rule;      // what the check asks: "too-long", "errors/receive-key"
  std::string_view observed;  // exactly as the check says it
  std::string_view why;
};

std::span<const Deviation> RxeDeviations();   // deviations_rxe.cc
std::span<const Deviation> Mlx4Deviations();  // deviations_mlx4.cc

struct DeviceDeviations {
  std::string_view device_kind;  // provider name, or what a software device imitates
  std::span<const Deviation> rows;
};
std::span<const DeviceDeviations> AllDeviations();

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_DEVIATIONS_H_
