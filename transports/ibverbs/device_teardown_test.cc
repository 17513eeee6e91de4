// IbverbsDevice over a fake library: events, and the end of objects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

#include "transports/ibverbs/device.h"
#include "transports/ibverbs/device_fixture.h"

namespace verbscope {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(IbverbsDeviceTest, EveryFailedDestructionIsReportedAndTheOthersGoOn) {
  for (const char* call :
       {"DestroyQp", "DestroyCq", "DestroyCompChannel", "DeregMr", "DeallocPd"}) {
    MustOpen();
    auto objects = MustCreateAll();
    verbs_.fail = {{call, EIO}};
    report_.errors.clear();
    objects.reset();
    // What holds what could not be destroyed is busy, and reported too.
    ASSERT_FALSE(report_.errors.empty()) << call;
    EXPECT_EQ(report_.errors[0].errno_value, EIO) << call;
    verbs_.fail.clear();
    device_.reset();
    verbs_.AbandonObjects();
  }
}

TEST_F(IbverbsDeviceTest, ObjectsInOrderOfCreationAreDestroyedWithoutAReport) {
  MustOpen();
  auto objects = MustCreateAll();
  EXPECT_EQ(verbs_.live_objects(), 6u);
  objects.reset();
  EXPECT_EQ(verbs_.live_objects(), 1u);  // the context
  EXPECT_THAT(report_.errors, IsEmpty());
}

TEST_F(IbverbsDeviceTest, BusyObjectsNameTheirHolders) {
  MustOpen();
  auto objects = MustCreateAll();
  const Status pd = objects->pd.Close();
  ASSERT_FALSE(pd);
  EXPECT_EQ(pd.error().error_class, ErrorClass::kInternal);
  EXPECT_THAT(pd.error().cause, AllOf(HasSubstr("MR lkey 0x"), HasSubstr("QP 0x")));
  EXPECT_TRUE(objects->pd) << "the object stays owned";
  const Status cq = objects->cq.Close();
  ASSERT_FALSE(cq);
  EXPECT_THAT(cq.error().cause, HasSubstr("still used by QP 0x"));
  const Status channel = objects->channel.Close();
  ASSERT_FALSE(channel);
  EXPECT_THAT(channel.error().cause, HasSubstr("still used by CQ 0x"));
}

TEST_F(IbverbsDeviceTest, EventsComeOneByOneAndAnInterruptedReadIsNone) {
  Device& device = MustOpen();
  auto objects = MustCreateAll();
  verbs_.cq_events = {objects->cq.get(), nullptr};
  EXPECT_EQ(device.GetCqEvent(objects->channel.get()), objects->cq.get());
  EXPECT_EQ(device.GetCqEvent(objects->channel.get()), nullptr);  // EINTR
  EXPECT_EQ(device.GetCqEvent(objects->channel.get()), nullptr);  // EAGAIN
  verbs_.fail["GetCqEvent"] = EIO;
  const auto failed = device.GetCqEvent(objects->channel.get());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().error_class, ErrorClass::kRun);
  verbs_.fail.clear();
  device.AckCqEvents(objects->cq.get(), 1);
  device.AckCqEvents(objects->cq.get(), 0);
  EXPECT_THAT(verbs_.acknowledgements, ElementsAre(1));
  objects.reset();
  EXPECT_THAT(report_.errors, IsEmpty());
}

TEST_F(IbverbsDeviceTest, ForgottenAcknowledgementsArePaidAndReported) {
  Device& device = MustOpen();
  auto objects = MustCreateAll();
  verbs_.cq_events = {objects->cq.get(), objects->cq.get(), objects->cq.get()};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(device.GetCqEvent(objects->channel.get()));
  device.AckCqEvents(objects->cq.get(), 1);
  objects.reset();
  EXPECT_THAT(verbs_.owed_at_destruction, ElementsAre(0));  // else the library waits for ever
  ASSERT_THAT(report_.errors, SizeIs(1));
  EXPECT_EQ(report_.errors[0].error_class, ErrorClass::kInternal);
  EXPECT_THAT(report_.errors[0].message,
              AllOf(HasSubstr("CQ 0x"), HasSubstr("2 event(s) not acknowledged"),
                    HasSubstr("taken 3, acknowledged 1")));
}

TEST_F(IbverbsDeviceTest, AForgottenAcknowledgementIsPaidOnceThoughTheCqWasBusy) {
  Device& device = MustOpen();
  auto objects = MustCreateAll();
  verbs_.cq_events = {objects->cq.get()};
  ASSERT_TRUE(device.GetCqEvent(objects->channel.get()));
  EXPECT_FALSE(objects->cq.Close());  // the QP holds it
  objects.reset();
  EXPECT_THAT(verbs_.acknowledgements, ElementsAre(1));
  EXPECT_THAT(report_.errors, SizeIs(1));
}

TEST_F(IbverbsDeviceTest, AFailedDestructionIsReported) {
  MustOpen();
  auto objects = MustCreateAll();
  verbs_.fail["DestroyQp"] = EIO;
  EXPECT_FALSE(objects->qp.Close());
  EXPECT_TRUE(objects->qp);
  verbs_.fail.clear();
  EXPECT_TRUE(objects->qp.Close());
  verbs_.fail["CloseDevice"] = EBUSY;
  objects.reset();
  device_.reset();
  ASSERT_THAT(report_.errors, SizeIs(1));
  EXPECT_THAT(report_.errors[0].message, HasSubstr("ibv_close_device(device=renamed0)"));
  verbs_.fail.clear();
  verbs_.AbandonObjects();
}

TEST_F(IbverbsDeviceTest, AsyncEventsBecomeTextAndAreAcknowledged) {
  Device& device = MustOpen();
  ibv_async_event event = {};
  event.event_type = IBV_EVENT_PORT_ERR;
  event.element.port_num = 1;
  verbs_.async_events = {event};
  verbs_.SignalAsyncEvent();
  const auto text = device.NextAsyncEvent(Deadline::After(std::chrono::minutes(1)));
  ASSERT_TRUE(text && text->has_value());
  EXPECT_EQ((*text)->text, "PORT_ERR on port 1");
  EXPECT_TRUE((*text)->fatal);
  EXPECT_EQ(verbs_.async_events_acknowledged, 1);
}

TEST_F(IbverbsDeviceTest, NoAsyncEventUntilTheDeadlineIsNothing) {
  Device& device = MustOpen();
  const auto none = device.NextAsyncEvent(Deadline::After(std::chrono::nanoseconds(0)));
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  // Woken for an event that another thread took: waits on, here until the deadline.
  verbs_.SignalAsyncEvent();
  const auto taken = device.NextAsyncEvent(Deadline::After(std::chrono::milliseconds(1)));
  ASSERT_TRUE(taken);
  EXPECT_FALSE(*taken);
}

TEST_F(IbverbsDeviceTest, TheAsyncDescriptorOfALostRaceDoesNotBlock) {
  Device& device = MustOpen();
  verbs_.SignalAsyncEvent();
  ibv_async_event event = {};
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  verbs_.async_events = {event};
  ASSERT_TRUE(device.NextAsyncEvent(Deadline::After(std::chrono::minutes(1))));
  // Nothing is left to read: a blocking descriptor would hang here for ever.
  verbs_.fail["GetAsyncEvent"] = EIO;
  verbs_.SignalAsyncEvent();
  const auto failed = device.NextAsyncEvent(Deadline::After(std::chrono::minutes(1)));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().errno_value, EIO);
  verbs_.fail.clear();
}

}  // namespace
}  // namespace verbscope
