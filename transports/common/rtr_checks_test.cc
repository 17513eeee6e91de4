#include "transports/common/rtr_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbscope {
namespace {

using ::testing::HasSubstr;

// Inputs that pass on an Ethernet port; each test spoils one.
class RtrChecksTest : public ::testing::Test {
 protected:
  RtrChecksTest() {
    attributes_.qp_state = IBV_QPS_RTR;
    attributes_.path_mtu = IBV_MTU_1024;
    attributes_.ah_attr.port_num = 1;
    attributes_.ah_attr.is_global = 1;
    attributes_.ah_attr.grh.sgid_index = 1;
    attributes_.ah_attr.grh.dgid.raw[15] = 2;
    facts_.device = "rxe0";
    facts_.qp_num = 0x11;
    facts_.port.emplace();
    facts_.port->state = IBV_PORT_ACTIVE;
    facts_.port->active_mtu = IBV_MTU_1024;
    facts_.port->link_layer = IBV_LINK_LAYER_ETHERNET;
    facts_.port->gid_tbl_len = 4;
    facts_.source_gid.emplace();
    facts_.source_gid->raw[15] = 1;
  }

  // Message of the refusal; empty when the inputs pass.
  std::string Refusal() {
    const Status status = CheckRtrInputs(attributes_, facts_);
    if (status) return "";
    EXPECT_EQ(status.error().error_class, ErrorClass::kSetup);
    EXPECT_FALSE(status.error().next_step.empty());
    EXPECT_THAT(status.error().message, HasSubstr("QP 0x11 cannot go to RTR on rxe0"));
    return status.error().message;
  }

  void UseInfiniBand() {
    facts_.port->link_layer = IBV_LINK_LAYER_INFINIBAND;
    attributes_.ah_attr.is_global = 0;
    attributes_.ah_attr.dlid = 4;
  }

  ibv_qp_attr attributes_ = {};
  RtrFacts facts_;
};

TEST_F(RtrChecksTest, GoodInputsPass) { EXPECT_EQ(Refusal(), ""); }

TEST_F(RtrChecksTest, APortNumberMustExist) {
  attributes_.ah_attr.port_num = 2;
  EXPECT_THAT(Refusal(), HasSubstr("port number 2 does not exist"));
  attributes_.ah_attr.port_num = 0;
  EXPECT_THAT(Refusal(), HasSubstr("port number 0 does not exist"));
}

TEST_F(RtrChecksTest, ThePortMustBeActive) {
  facts_.port->state = IBV_PORT_DOWN;
  EXPECT_THAT(Refusal(), HasSubstr("the port is DOWN, not ACTIVE"));
  facts_.port->link_layer = IBV_LINK_LAYER_INFINIBAND;
  facts_.port->state = IBV_PORT_INIT;
  EXPECT_THAT(CheckRtrInputs(attributes_, facts_).error().cause, HasSubstr("subnet manager"));
}

TEST_F(RtrChecksTest, ThePathMtuMustFitThePort) {
  attributes_.path_mtu = IBV_MTU_4096;
  EXPECT_THAT(Refusal(), HasSubstr("path MTU 4096 is above the port's active MTU 1024"));
  attributes_.path_mtu = IBV_MTU_512;
  EXPECT_EQ(Refusal(), "");
  attributes_.path_mtu = static_cast<ibv_mtu>(0);
  EXPECT_THAT(Refusal(), HasSubstr("path MTU code 0 is none"));
}

TEST_F(RtrChecksTest, EthernetNeedsAGrh) {
  attributes_.ah_attr.is_global = 0;
  EXPECT_THAT(Refusal(), HasSubstr("no GRH on an Ethernet port"));
}

TEST_F(RtrChecksTest, ALidOnEthernetIsNotTakenForInfiniBand) {
  facts_.port->lid = 7;
  attributes_.ah_attr.is_global = 0;
  attributes_.ah_attr.dlid = 7;
  EXPECT_THAT(Refusal(), HasSubstr("no GRH on an Ethernet port"));
}

TEST_F(RtrChecksTest, InfiniBandNeedsALidAndNoGrh) {
  UseInfiniBand();
  EXPECT_EQ(Refusal(), "");
  attributes_.ah_attr.dlid = 0;
  EXPECT_THAT(Refusal(), HasSubstr("the peer's LID is 0"));
  EXPECT_THAT(CheckRtrInputs(attributes_, facts_).error().cause, HasSubstr("subnet manager"));
}

TEST_F(RtrChecksTest, TheGidIndexMustBeInTheTable) {
  attributes_.ah_attr.grh.sgid_index = 4;
  facts_.source_gid.reset();
  EXPECT_THAT(Refusal(), HasSubstr("GID index 4 is outside the table"));
}

TEST_F(RtrChecksTest, AZeroGidIsRefusedWithASentenceOnNamespaces) {
  facts_.source_gid = ibv_gid{};
  EXPECT_THAT(Refusal(), HasSubstr("the GID at index 1 is zero"));
  EXPECT_THAT(CheckRtrInputs(attributes_, facts_).error().cause, HasSubstr("network namespace"));
}

TEST_F(RtrChecksTest, AZeroPeerGidIsRefused) {
  attributes_.ah_attr.grh.dgid = {};
  EXPECT_THAT(Refusal(), HasSubstr("the peer's GID is zero"));
}

TEST_F(RtrChecksTest, WhatCouldNotBeReadIsNotHeldAgainstTheRun) {
  facts_.source_gid.reset();
  EXPECT_EQ(Refusal(), "");
  facts_.port.reset();
  attributes_.path_mtu = IBV_MTU_4096;
  EXPECT_EQ(Refusal(), "");
}

TEST_F(RtrChecksTest, OnlyRtrWithAnAddressIsChecked) {
  EXPECT_TRUE(IsTransitionToRtr(attributes_, IBV_QP_STATE | IBV_QP_AV));
  EXPECT_FALSE(IsTransitionToRtr(attributes_, IBV_QP_STATE));
  EXPECT_FALSE(IsTransitionToRtr(attributes_, IBV_QP_AV));
  attributes_.qp_state = IBV_QPS_RTS;
  EXPECT_FALSE(IsTransitionToRtr(attributes_, IBV_QP_STATE | IBV_QP_AV));
}

}  // namespace
}  // namespace verbscope
