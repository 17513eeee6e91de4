// ConnectX-3 and older, as google/rdma-unit-test lists them; not seen here.
#include <array>

#include "core/scenario/deviations.h"
#include "core/scenario/expectations.h"

namespace verbscope {
namespace {

constexpr std::array kDeviations = {
    Deviation{.rule = kEmptyBadKey,
              .observed = "requester LOC_QP_OP_ERR, responder no completion",
              .why = "mlx4 refuses a READ of nothing (google/rdma-unit-test lists it)"},
};

}  // namespace

std::span<const Deviation> Mlx4Deviations() { return kDeviations; }

}  // namespace verbscope
