#include "transports/ibverbs/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace verbscope {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Expectation {
  VerbCall call;
  int errno_value;
  std::string cause_has;
};

class CauseOfCall : public ::testing::TestWithParam<Expectation> {};

TEST_P(CauseOfCall, IsNamedWithANextStep) {
  const Error error = VerbError(GetParam().call, "device=rxe0", GetParam().errno_value);
  EXPECT_THAT(error.cause, HasSubstr(GetParam().cause_has));
  EXPECT_FALSE(error.next_step.empty());
  EXPECT_EQ(error.errno_value, GetParam().errno_value);
}

INSTANTIATE_TEST_SUITE_P(
    Table, CauseOfCall,
    ::testing::Values(Expectation{VerbCall::kOpenDevice, EACCES,
                                  "may not read and write the device node"},
                      Expectation{VerbCall::kOpenDevice, EPERM, "container's device rules"},
                      Expectation{VerbCall::kOpenDevice, ENOENT, "device node is missing"},
                      Expectation{VerbCall::kModifyQpToRtr, EINVAL, "refuses an address attribute"},
                      Expectation{VerbCall::kModifyQpToRtr, ETIMEDOUT, "no neighbour answered"},
                      Expectation{VerbCall::kModifyQpToRtr, ENODEV, "another network namespace"},
                      Expectation{VerbCall::kModifyQpToRtr, ENXIO, "another network namespace"},
                      Expectation{VerbCall::kModifyQpToRtr, EHOSTUNREACH, "cannot be reached"},
                      Expectation{VerbCall::kModifyQpToRtr, ENETUNREACH, "no route"},
                      Expectation{VerbCall::kModifyQpToRtr, ENOMEM, "no memory for the connection"},
                      Expectation{VerbCall::kModifyQp, EINVAL, "not in the state"},
                      Expectation{VerbCall::kRegMr, ENOMEM, "could not pin"},
                      Expectation{VerbCall::kRegMr, EFAULT, "not mapped"},
                      Expectation{VerbCall::kCreateCq, EINVAL, "max_cqe"},
                      Expectation{VerbCall::kCreateQp, EINVAL, "does not say which"},
                      Expectation{VerbCall::kCreateQp, EAGAIN, "rdma cgroup"},
                      Expectation{VerbCall::kCreateCompChannel, EMFILE, "too many open files"},
                      Expectation{VerbCall::kDestroyCq, EBUSY, "QPs still complete into"},
                      Expectation{VerbCall::kDeallocPd, EBUSY, "memory regions or QPs"},
                      Expectation{VerbCall::kQueryQp, EIO, "reset or removed"}));

TEST(CausesTest, ARowOfTheCallGoesBeforeTheGeneralOne) {
  const auto of_call = FindCause(VerbCall::kModifyQpToRtr, ENODEV);
  const auto general = FindCause(VerbCall::kQueryPort, ENODEV);
  ASSERT_TRUE(of_call);
  ASSERT_TRUE(general);
  EXPECT_NE(of_call->cause, general->cause);
}

// What the manual pages name, and the kernel's uverbs layer and its drivers return, for the verbs
// that build a run.
TEST(CausesTest, NoErrnoOfASetUpVerbIsWithoutAText) {
  constexpr VerbCall kSetUp[] = {VerbCall::kGetDeviceList,
                                 VerbCall::kOpenDevice,
                                 VerbCall::kQueryDevice,
                                 VerbCall::kQueryPort,
                                 VerbCall::kAllocPd,
                                 VerbCall::kRegMr,
                                 VerbCall::kCreateCompChannel,
                                 VerbCall::kCreateCq,
                                 VerbCall::kModifyCq,
                                 VerbCall::kCreateQp,
                                 VerbCall::kModifyQp,
                                 VerbCall::kModifyQpToRtr,
                                 VerbCall::kQueryQp};
  constexpr int kErrnos[] = {EINVAL, ENOMEM,    EAGAIN, EPERM,  EACCES, ENOSYS, EOPNOTSUPP,
                             ENODEV, ETIMEDOUT, EBUSY,  EFAULT, ENOSPC, EMFILE, EIO};
  for (const VerbCall call : kSetUp) {
    for (const int errno_value : kErrnos) {
      const auto cause = FindCause(call, errno_value);
      ASSERT_TRUE(cause) << FunctionName(call) << " " << ErrnoText(errno_value);
      EXPECT_FALSE(cause->cause.empty()) << FunctionName(call);
      EXPECT_FALSE(cause->next_step.empty()) << FunctionName(call);
    }
  }
}

TEST(CausesTest, AnUnknownErrnoHasNoInventedCause) {
  EXPECT_FALSE(FindCause(VerbCall::kCreateQp, EXDEV));
  const Error error = VerbError(VerbCall::kCreateQp, "device=rxe0", EXDEV);
  EXPECT_EQ(error.cause, "");
  EXPECT_EQ(error.next_step, "");
}

TEST(CausesTest, MessageHasCallParametersAndErrnoText) {
  const Error error = VerbError(VerbCall::kCreateCq, "device=rxe0, cqe=7", EINVAL);
  EXPECT_EQ(error.message, "ibv_create_cq(device=rxe0, cqe=7) failed: Invalid argument");
}

TEST(CausesTest, EveryCallHasTheNameOfALibraryFunction) {
  for (int call = 0; call <= static_cast<int>(VerbCall::kCloseDevice); ++call) {
    EXPECT_THAT(std::string(FunctionName(static_cast<VerbCall>(call))), StartsWith("ibv_"));
  }
  EXPECT_EQ(FunctionName(VerbCall::kModifyQpToRtr), "ibv_modify_qp");
  EXPECT_EQ(FunctionName(VerbCall::kCloseDevice), "ibv_close_device");
}

TEST(CausesTest, TheClassSaysWhoseFaultItIs) {
  EXPECT_EQ(VerbError(VerbCall::kCreateQp, "", ENOMEM).error_class, ErrorClass::kSetup);
  EXPECT_EQ(VerbError(VerbCall::kGetCqEvent, "", EIO).error_class, ErrorClass::kRun);
  EXPECT_EQ(VerbError(VerbCall::kDestroyQp, "", EIO).error_class, ErrorClass::kRun);
  EXPECT_EQ(VerbError(VerbCall::kDestroyQp, "", EBUSY).error_class, ErrorClass::kInternal);
}

}  // namespace
}  // namespace verbscope
