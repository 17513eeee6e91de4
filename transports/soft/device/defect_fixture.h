// A device with defects (engine/defects.h) beside an honest one: each test asks both the same.
//
//   TEST_P(DefectTest, NoFence) {
//     for (const bool broken : {false, true}) {
//       Open(broken, Defect::kNoFence);
//       auto [a, b] = ConnectedPair();
//
// One thread, the test's.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_DEFECT_FIXTURE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_DEFECT_FIXTURE_H_

#include "transports/soft/device/device_fixture.h"
#include "transports/soft/engine/defects.h"

namespace verbscope::soft {

class DefectTest : public DeviceTest {
 protected:
  // Both devices anew. Ends of the earlier ones must be gone.
  void Open(bool broken, Defect defect, SoftOptions options = {}) {
    CloseSecond();
    if (broken) options.defects.Add(defect);
    OpenDevices(options);
  }
  // Whether there is a completion event of the channel; it is acknowledged.
  static ibv_cq* EventOf(End& end) {
    const Expected<ibv_cq*> cq = end.device->GetCqEvent(end.channel.get());
    EXPECT_TRUE(cq);
    if (!cq || *cq == nullptr) return nullptr;
    end.device->AckCqEvents(*cq, 1);
    return *cq;
  }
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_DEFECT_FIXTURE_H_
