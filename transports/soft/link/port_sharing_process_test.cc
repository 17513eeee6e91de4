// Members that are processes, and are killed, stopped and replaced at any moment. Each answers
// every packet it gets with its own process number, so a packet that went astray shows. The test's
// own process is no member: it makes no descriptor that a child could keep alive.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "transports/soft/link/port_sharing.h"
#include "transports/soft/link/port_sharing_test_support.h"

namespace verbscope::soft {
namespace {

constexpr std::chrono::seconds kChildLife(60);  // should the test die without its children

// What a child says once, on its pipe: its tag, or how Join failed.
struct Report {
  uint8_t tag = 0;
  uint32_t error_class = 0;
  char error[500] = {};
};

const Report kNoSuchUser = {.tag = 0, .error_class = ~0U, .error = "setuid failed"};

void Answer(int fd) {
  for (;;) {
    sockaddr_storage from;
    socklen_t size = sizeof(from);
    auto* generic = reinterpret_cast<sockaddr*>(&from);
    TestPacket packet;
    if (::recvfrom(fd, packet.data(), packet.size(), MSG_DONTWAIT, generic, &size) < 0) return;
    const pid_t self = ::getpid();
    ::sendto(fd, &self, sizeof(self), MSG_DONTWAIT, generic, size);
  }
}

// A member until `control` has no writer.
[[noreturn]] void RunChild(const LocalAddress& address, std::chrono::milliseconds patience,
                           int control, int report_fd) {
  Report report;
  {
    auto port = PortSharing::Join(address, Deadline::After(patience));
    if (port) {
      report.tag = (*port)->tag();
    } else {
      report.error_class = static_cast<uint32_t>(port.error().error_class);
      port.error().ToText().copy(report.error, sizeof(report.error) - 1);
    }
    if (::write(report_fd, &report, sizeof(report)) != sizeof(report) || !port) ::_exit(1);
    const Deadline end = Deadline::After(kChildLife);
    while (!end.Passed()) {
      std::array<pollfd, 3> waits = {{{.fd = (*port)->fd(), .events = POLLIN, .revents = 0},
                                      {.fd = (*port)->wait_fd(), .events = POLLIN, .revents = 0},
                                      {.fd = control, .events = POLLIN, .revents = 0}}};
      ::poll(waits.data(), waits.size(), end.PollTimeoutMs());
      if (waits[0].revents != 0) Answer((*port)->fd());
      if (waits[1].revents != 0) (*port)->Serve();
      if (waits[2].revents != 0) break;
    }
  }
  ::_exit(0);
}

class Child {
 public:
  Child(const LocalAddress& address, std::chrono::milliseconds patience, uid_t user = 0) {
    std::array<int, 2> control;
    std::array<int, 2> report;
    EXPECT_EQ(::pipe2(control.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(report.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      // Pipes of the other children would keep these from ending.
      ::dup2(control[0], 3);
      ::dup2(report[1], 4);
      ::close_range(5, ~0U, 0);
      // Root of a user namespace, such as a sandbox's, may know no second user.
      if (user != 0 && ::setuid(user) != 0) ::_exit(::write(4, &kNoSuchUser, sizeof(Report)) < 0);
      RunChild(address, patience, 3, 4);
    }
    ::close(control[0]);
    ::close(report[1]);
    control_.Reset(control[1]);
    report_.Reset(report[0]);
  }
  ~Child() {
    if (pid_ > 0) Kill();
  }

  Report Await() {
    Report report;
    EXPECT_TRUE(Readable(report_.get(), TestDeadline()));
    EXPECT_EQ(::read(report_.get(), &report, sizeof(report)), static_cast<ssize_t>(sizeof(report)));
    tag = report.tag;
    return report;
  }
  void Leave() {
    control_.Reset();
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void Kill() {
    Signal(SIGKILL);
    Reap();
  }
  void Reap() { ::waitpid(std::exchange(pid_, 0), nullptr, 0); }
  void Signal(int number) { ::kill(pid_, number); }
  // Returns when the process no longer runs.
  void Stop() {
    Signal(SIGSTOP);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  pid_t pid() const { return pid_; }

  uint8_t tag = 0;

 private:
  pid_t pid_ = 0;
  FileDescriptor control_;
  FileDescriptor report_;
};

class PortSharingProcessTest : public ::testing::Test {
 protected:
  Child* Start(std::chrono::milliseconds patience = std::chrono::seconds(10), uid_t user = 0) {
    children.push_back(std::make_unique<Child>(address, patience, user));
    return children.back().get();
  }
  void JoinOne() {
    Child* child = Start();
    const Report report = child->Await();
    ASSERT_NE(report.tag, 0) << report.error;
  }
  void JoinMany(int count) {
    for (int i = 0; i < count; ++i) ASSERT_NO_FATAL_FAILURE(JoinOne());
  }
  std::unique_ptr<Child> Take(size_t index) {
    std::unique_ptr<Child> child = std::move(children[index]);
    children.erase(children.begin() + static_cast<ptrdiff_t>(index));
    return child;
  }
  // Every packet is answered by the owner of its tag. Nothing is sent twice: none may be lost.
  void ExpectExactDelivery(uint8_t packets = 3) {
    for (const auto& child : children) {
      for (uint8_t i = 0; i < packets; ++i) {
        const FileDescriptor socket = SendTo(address, uint32_t{child->tag} << 16 | i, i);
        ASSERT_TRUE(Readable(socket.get(), TestDeadline()))
            << "packet for process " << child->pid() << " with tag " << int{child->tag};
        pid_t owner = 0;
        ::recv(socket.get(), &owner, sizeof(owner), 0);
        ASSERT_EQ(owner, child->pid());
      }
    }
  }

  const LocalAddress address = FreshLoopback();
  std::vector<std::unique_ptr<Child>> children;
};

TEST_F(PortSharingProcessTest, KilledMembersAreMissedByNobody) {
  for (const size_t victim : {size_t{0}, size_t{2}, size_t{3}}) {  // the keeper, middle, last
    children.clear();
    ASSERT_NO_FATAL_FAILURE(JoinMany(4));
    Take(victim)->Kill();
    ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery());
    ASSERT_NO_FATAL_FAILURE(JoinMany(2));
    ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery());
  }
}

TEST_F(PortSharingProcessTest, KeepersDieOneAfterTheOther) {
  ASSERT_NO_FATAL_FAILURE(JoinMany(5));
  while (children.size() > 1) {
    Take(0)->Kill();
    ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery());
  }
  ASSERT_NO_FATAL_FAILURE(JoinOne());
  ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery());
}

TEST_F(PortSharingProcessTest, SeveralDieAtOnce) {
  for (int round = 0; round < 10; ++round) {
    ASSERT_NO_FATAL_FAILURE(JoinMany(6 - static_cast<int>(children.size())));
    std::vector<std::unique_ptr<Child>> dead;
    for (const size_t victim : {size_t{4}, size_t{2}, size_t{0}}) dead.push_back(Take(victim));
    for (const auto& child : dead) child->Signal(SIGKILL);
    Start();  // in the middle of it
    ASSERT_NE(children.back()->Await().tag, 0);
    for (const auto& child : dead) child->Reap();
    ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery());
  }
}

// Between any two of its steps: some have been told of the newcomer and some have not.
TEST_F(PortSharingProcessTest, KeeperDiesWhileItLetsSomebodyIn) {
  const uint32_t seed = std::random_device{}();
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(seed));
    ASSERT_NO_FATAL_FAILURE(JoinMany(4 - static_cast<int>(children.size())));
    if (round % 2 == 0) Take(3)->Kill();  // the newcomer gets its socket, not a new one
    Start();
    const auto moment =
        std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 2500);
    while (std::chrono::steady_clock::now() < moment) {
    }
    Take(0)->Kill();
    ASSERT_NE(children.back()->Await().tag, 0);
    ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery());
  }
}

// More descriptors under way than a user without privilege may have there at once.
TEST_F(PortSharingProcessTest, FortyMembersFindANewKeeper) {
  ASSERT_NO_FATAL_FAILURE(JoinMany(40));
  Take(0)->Kill();
  ASSERT_NO_FATAL_FAILURE(JoinOne());
  ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery(1));
}

TEST_F(PortSharingProcessTest, ManyComeAtOnce) {
  for (int i = 0; i < 12; ++i) Start();
  for (const auto& child : children) ASSERT_NE(child->Await().tag, 0);
  ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery());
}

TEST_F(PortSharingProcessTest, StoppedKeeperGivesAnErrorInTime) {
  ASSERT_NO_FATAL_FAILURE(JoinMany(2));
  children[0]->Stop();
  const Report report = Start(std::chrono::milliseconds(100))->Await();
  EXPECT_EQ(report.tag, 0);
  EXPECT_EQ(report.error_class, static_cast<uint32_t>(ErrorClass::kDeadline));
  const std::string keeper = "process " + std::to_string(children[0]->pid());
  EXPECT_NE(std::string(report.error).find(keeper), std::string::npos) << report.error;
  Take(2);
  children[0]->Signal(SIGCONT);
  ASSERT_NO_FATAL_FAILURE(JoinOne());
  ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery());
}

// A stopped member might know of a change that the new keeper does not, or be given a false death.
TEST_F(PortSharingProcessTest, StoppedMemberKeepsItsSocketThroughAnElection) {
  ASSERT_NO_FATAL_FAILURE(JoinMany(3));
  children[1]->Stop();
  Take(0)->Kill();
  EXPECT_EQ(Start(std::chrono::milliseconds(100))->Await().tag, 0);
  Take(2);
  children[0]->Signal(SIGCONT);
  ASSERT_NO_FATAL_FAILURE(JoinMany(2));
  ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery());
}

TEST_F(PortSharingProcessTest, StoppedMemberHindersNobodyWhileTheKeeperLives) {
  ASSERT_NO_FATAL_FAILURE(JoinMany(2));
  children[1]->Stop();
  ASSERT_NO_FATAL_FAILURE(JoinMany(3));
  children[1]->Signal(SIGCONT);
  ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery());
}

TEST_F(PortSharingProcessTest, AnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ASSERT_NO_FATAL_FAILURE(JoinOne());
  constexpr uid_t kNobody = 65534;
  const Report report = Start(std::chrono::seconds(5), kNobody)->Await();
  if (report.error_class == kNoSuchUser.error_class) GTEST_SKIP() << "there is no second user";
  EXPECT_EQ(report.tag, 0);
  EXPECT_EQ(report.error_class, static_cast<uint32_t>(ErrorClass::kSetup));
  EXPECT_NE(std::string(report.error).find("user 0 holds it"), std::string::npos) << report.error;
  Take(1);
  ASSERT_NO_FATAL_FAILURE(JoinOne());
  ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery());
}

TEST_F(PortSharingProcessTest, HundredRandomJoinsAndLeaves) {
  const uint32_t seed = std::random_device{}();
  std::cout << "seed " << seed << std::endl;  // now: a child has a copy of what is not written
  std::mt19937 random(seed);
  const auto below = [&random](size_t n) { return random() % n; };
  for (int step = 0; step < 100; ++step) {
    SCOPED_TRACE("step " + std::to_string(step) + " of seed " + std::to_string(seed));
    if (children.empty() || (children.size() < 8 && below(2) == 0)) {
      ASSERT_NO_FATAL_FAILURE(JoinOne());
    } else {
      const std::unique_ptr<Child> child = Take(below(children.size()));
      if (below(2) == 0) {
        child->Kill();
      } else {
        child->Leave();
      }
    }
    ASSERT_NO_FATAL_FAILURE(ExpectExactDelivery(2));
  }
}

}  // namespace
}  // namespace verbscope::soft
