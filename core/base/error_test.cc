#include "core/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace verbscope {
namespace {

// The exit codes are a contract with scripts: this table is a copy of the documented one.
TEST(ErrorTest, ClassesMapToTheDocumentedExitCodes) {
  EXPECT_EQ(ExitCode(ErrorClass::kUsage), 1);
  EXPECT_EQ(ExitCode(ErrorClass::kInternal), 1);
  EXPECT_EQ(ExitCode(ErrorClass::kSetup), 2);
  EXPECT_EQ(ExitCode(ErrorClass::kVerification), 3);
  EXPECT_EQ(ExitCode(ErrorClass::kInconclusive), 4);
  EXPECT_EQ(ExitCode(ErrorClass::kRun), 5);
  EXPECT_EQ(ExitCode(ErrorClass::kDeadline), 6);
  EXPECT_EQ(ExitCode(ErrorClass::kInterrupted), 130);
}

TEST(ErrorTest, ClassNamesAreDistinctAndRoundTrip) {
  std::set<std::string_view> names;
  for (ErrorClass c : {ErrorClass::kUsage, ErrorClass::kInternal, ErrorClass::kSetup,
                       ErrorClass::kVerification, ErrorClass::kInconclusive, ErrorClass::kRun,
                       ErrorClass::kDeadline, ErrorClass::kInterrupted}) {
    EXPECT_EQ(ErrorClassFromName(Name(c)), c);
    names.insert(Name(c));
  }
  EXPECT_EQ(names.size(), 8u);
  EXPECT_EQ(ErrorClassFromName("from-the-future"), ErrorClass::kInternal);
}

TEST(ErrorTest, CallErrorNamesCallParameterAndErrnoText) {
  const Error error = CallError(ErrorClass::kSetup, "ibv_create_cq", "cqe=4096", ENOMEM);
  EXPECT_EQ(error.message, "ibv_create_cq(cqe=4096) failed: Cannot allocate memory");
  EXPECT_EQ(error.errno_value, ENOMEM);
}

TEST(ErrorTest, TextHasCauseAndNextStepAsSentences) {
  Error error;
  error.message = "port 1 of rxe0 is DOWN";
  error.cause = "its netdev v0 has no carrier";
  error.next_step = "ip link set v0 up";
  EXPECT_EQ(error.ToText(),
            "port 1 of rxe0 is DOWN: its netdev v0 has no carrier. Next: ip link set v0 up.");
}

}  // namespace
}  // namespace verbscope
