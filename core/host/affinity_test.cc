#include "core/host/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Pins in a thread of its own, so that the test's thread keeps its CPUs.
template <class Body>
void InThread(Body body) {
  std::thread thread(body);
  thread.join();
}

TEST(CpuListTest, RunsBecomeRanges) {
  EXPECT_EQ(CpuListText({}), "none");
  EXPECT_EQ(CpuListText({3}), "3");
  EXPECT_EQ(CpuListText({0, 1}), "0-1");
  EXPECT_EQ(CpuListText({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

TEST(AffinityTest, UsableCountIsThatOfTheThreadsCpus) {
  ASSERT_FALSE(ThreadCpus().empty());
  EXPECT_EQ(UsableCpuCount(), static_cast<int>(ThreadCpus().size()));
}

TEST(PinThreadTest, ThreadRunsOnExactlyTheCpusAsked) {
  const int cpu = ThreadCpus().back();
  InThread([cpu] {
    const Status status = PinThread({cpu, cpu});
    ASSERT_TRUE(status) << status.error().ToText();
    EXPECT_THAT(ThreadCpus(), ElementsAre(cpu));
    EXPECT_EQ(UsableCpuCount(), 1);
  });
}

TEST(PinThreadTest, OnlyTheCallingThreadIsPinned) {
  const std::vector<int> before = ThreadCpus();
  InThread([&] { ASSERT_TRUE(PinThread({before.front()})); });
  EXPECT_EQ(ThreadCpus(), before);
}

TEST(PinThreadTest, PinnedThreadMayMoveToAnotherAllowedCpu) {
  const std::vector<int> all = ThreadCpus();
  InThread([&] {
    ASSERT_TRUE(PinThread({all.front()}));
    ASSERT_TRUE(PinThread({all.back()}));
    EXPECT_THAT(ThreadCpus(), ElementsAre(all.back()));
  });
}

TEST(PinThreadTest, EmptyListChangesNothing) {
  const std::vector<int> before = ThreadCpus();
  EXPECT_TRUE(PinThread({}));
  EXPECT_EQ(ThreadCpus(), before);
}

// The kernel would take an allowed CPU together with a missing one and drop the latter silently.
TEST(PinThreadTest, MissingCpuIsRefusedEvenBesideAnAllowedOne) {
  const std::vector<int> before = ThreadCpus();
  constexpr int kMissing = 4095;
  for (const std::vector<int>& cpus :
       {std::vector<int>{kMissing}, std::vector<int>{before.front(), kMissing},
        std::vector<int>{-1}, std::vector<int>{1 << 30}}) {
    const Status status = PinThread(cpus);
    ASSERT_FALSE(status) << CpuListText(cpus);
    EXPECT_EQ(status.error().error_class, ErrorClass::kSetup);
    EXPECT_THAT(status.error().message, HasSubstr("cpus=" + CpuListText(cpus)));
    EXPECT_THAT(status.error().cause, HasSubstr(CpuListText(before)));
    EXPECT_EQ(ThreadCpus(), before);
  }
}

TEST(PinThreadTest, RefusalInAPinnedThreadNamesAllAllowedCpus) {
  const std::vector<int> all = ThreadCpus();
  InThread([&] {
    ASSERT_TRUE(PinThread({all.front()}));
    const Status status = PinThread({4095});
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().cause, HasSubstr(CpuListText(all)));
    EXPECT_THAT(ThreadCpus(), ElementsAre(all.front()));  // as it was before the refusal
  });
}

}  // namespace
}  // namespace verbscope
