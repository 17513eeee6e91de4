#include "transports/common/qp_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(QpTextTest, StatesAreNamed) {
  EXPECT_EQ(QpStateName(IBV_QPS_RESET), "RESET");
  EXPECT_EQ(QpStateName(IBV_QPS_RTR), "RTR");
  EXPECT_EQ(QpStateName(IBV_QPS_SQE), "SQE");
  EXPECT_EQ(QpStateName(IBV_QPS_ERR), "ERR");
  EXPECT_EQ(QpStateName(IBV_QPS_UNKNOWN), "state 7");
}

TEST(QpTextTest, OnlyMaskedAttributesAreShown) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;
  attributes.rnr_retry = 7;
  attributes.sq_psn = 0xabc;
  EXPECT_EQ(DescribeQpAttributes(attributes, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN),
            "qp_state RTS, sq_psn 0xabc, timeout 14");
  EXPECT_EQ(DescribeQpAttributes(attributes, 0), "");
}

TEST(QpTextTest, TheAddressShowsItsGlobalPartOnlyWhenItIsUsed) {
  ibv_qp_attr attributes = {};
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.dlid = 5;
  attributes.ah_attr.grh.sgid_index = 3;
  attributes.ah_attr.grh.dgid.raw[15] = 9;
  EXPECT_THAT(DescribeQpAttributes(attributes, IBV_QP_AV), Not(HasSubstr("sgid_index")));
  EXPECT_THAT(DescribeQpAttributes(attributes, IBV_QP_AV), HasSubstr("dlid 5"));
  attributes.ah_attr.is_global = 1;
  EXPECT_THAT(DescribeQpAttributes(attributes, IBV_QP_AV),
              HasSubstr("sgid_index 3, dgid 0000:0000:0000:0000:0000:0000:0000:0009"));
}

TEST(QpTextTest, AnMtuCodeThatIsNoneIsShownAsCode) {
  ibv_qp_attr attributes = {};
  attributes.path_mtu = IBV_MTU_2048;
  EXPECT_EQ(DescribeQpAttributes(attributes, IBV_QP_PATH_MTU), "path_mtu 2048");
  attributes.path_mtu = static_cast<ibv_mtu>(7);
  EXPECT_EQ(DescribeQpAttributes(attributes, IBV_QP_PATH_MTU), "path_mtu code 7");
}

TEST(AsyncEventTest, TheElementIsNamed) {
  ibv_async_event event = {};
  ibv_qp qp = {};
  qp.qp_num = 0x11;
  event.event_type = IBV_EVENT_QP_FATAL;
  event.element.qp = &qp;
  EXPECT_EQ(DescribeAsyncEvent(event, "rxe0"), "QP_FATAL on QP 0x11");

  ibv_cq cq = {};
  cq.cqe = 63;
  event.event_type = IBV_EVENT_CQ_ERR;
  event.element.cq = &cq;
  EXPECT_THAT(DescribeAsyncEvent(event, "rxe0"), HasSubstr("CQ_ERR on CQ 0x"));
  EXPECT_THAT(DescribeAsyncEvent(event, "rxe0"), HasSubstr("(63 entries)"));

  ibv_srq srq = {};
  srq.handle = 4;
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  event.element.srq = &srq;
  EXPECT_EQ(DescribeAsyncEvent(event, "rxe0"), "SRQ_LIMIT_REACHED on SRQ 4");

  ibv_wq wq = {};
  wq.wq_num = 0x20;
  event.event_type = IBV_EVENT_WQ_FATAL;
  event.element.wq = &wq;
  EXPECT_EQ(DescribeAsyncEvent(event, "rxe0"), "WQ_FATAL on WQ 0x20");

  event.event_type = IBV_EVENT_PORT_ERR;
  event.element.port_num = 2;
  EXPECT_EQ(DescribeAsyncEvent(event, "rxe0"), "PORT_ERR on port 2");

  event.event_type = IBV_EVENT_DEVICE_FATAL;
  EXPECT_EQ(DescribeAsyncEvent(event, "rxe0"), "DEVICE_FATAL on rxe0");
}

TEST(AsyncEventTest, EveryTypeOfTheHeaderHasAName) {
  ibv_async_event event = {};
  for (int type = IBV_EVENT_CQ_ERR; type <= IBV_EVENT_WQ_FATAL; ++type) {
    event.event_type = static_cast<ibv_event_type>(type);
    // Large enough for every kind of element that a description reads.
    alignas(16) static std::byte element[1024] = {};
    event.element.qp = reinterpret_cast<ibv_qp*>(element);
    EXPECT_THAT(DescribeAsyncEvent(event, "rxe0"), Not(HasSubstr("event type"))) << type;
  }
}

TEST(AsyncEventTest, ATypeOfTheFutureIsNotLost) {
  ibv_async_event event = {};
  event.event_type = static_cast<ibv_event_type>(31);
  EXPECT_EQ(DescribeAsyncEvent(event, "rxe0"), "event type 31 on rxe0");
}

}  // namespace
}  // namespace verbscope
