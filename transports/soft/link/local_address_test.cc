#include "transports/soft/link/local_address.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "transports/soft/link/local_address_holders.h"
#include "transports/soft/wire/header.h"

namespace verbscope::soft {
namespace {

LocalAddress Fresh() { return LoopbackCandidate(std::random_device{}()); }

uint64_t Inode(int fd) {
  struct stat status = {};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return status.st_ino;
}

TEST(LocalAddress, TextComesBackAsItWas) {
  for (const char* text : {"127.0.0.1", "192.0.2.2", "::1", "fd00::2", "fe80::1%lo"}) {
    const Expected<LocalAddress> address = ParseLocalAddress(text);
    ASSERT_TRUE(address) << address.error().ToText();
    EXPECT_EQ(address->ToText(), text);
  }
}

TEST(LocalAddress, TextThatNamesNoHostIsRefused) {
  for (const char* text :
       {"", "0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "ff02::1", "host", "127.0.0",
        "127.0.0.1 ", "127.0.0.1%lo", "fd00::2%lo", "fe80::1", "fe80::1%", "::ffff:0.0.0.0"}) {
    const Expected<LocalAddress> address = ParseLocalAddress(text);
    EXPECT_FALSE(address) << text;
  }
}

TEST(LocalAddress, UnknownInterfaceIsNamed) {
  const Expected<LocalAddress> address = ParseLocalAddress("fe80::1%nosuch0");
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().error_class, ErrorClass::kSetup);
  EXPECT_NE(address.error().message.find("nosuch0"), std::string::npos);
}

TEST(LocalAddress, MappedAddressIsIpv4) {
  const Expected<LocalAddress> mapped = ParseLocalAddress("::ffff:192.0.2.2");
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->ToText(), "192.0.2.2");
  EXPECT_EQ(mapped->gid, LocalAddress::Ipv4(192, 0, 2, 2).gid);
  EXPECT_EQ(mapped->Socket(1).storage.ss_family, AF_INET);
}

TEST(LocalAddress, LinkLocalSocketAddressHasItsInterface) {
  const Expected<LocalAddress> address = ParseLocalAddress("fe80::1%lo");
  ASSERT_TRUE(address);
  sockaddr_in6 v6;
  std::memcpy(&v6, address->Socket(kRoceUdpPort).generic(), sizeof(v6));
  EXPECT_EQ(v6.sin6_scope_id, address->interface_index);
  EXPECT_EQ(v6.sin6_port, htons(kRoceUdpPort));
}

TEST(LocalAddress, HostAddressesHaveLoopbackLast) {
  const Expected<std::vector<LocalAddress>> addresses = HostAddresses();
  ASSERT_TRUE(addresses) << addresses.error().ToText();
  ASSERT_FALSE(addresses->empty()) << "not even 127.0.0.1";
  EXPECT_TRUE(std::is_partitioned(addresses->begin(), addresses->end(),
                                  [](const LocalAddress& a) { return a.netdev != "lo"; }));
  EXPECT_EQ(addresses->back().netdev, "lo");
  for (const LocalAddress& address : *addresses) {
    EXPECT_NE(address.interface_index, 0U) << address.ToText();
    const Expected<LocalAddress> again = ParseLocalAddress(address.ToText());
    ASSERT_TRUE(again) << again.error().ToText();
    EXPECT_EQ(again->gid, address.gid);
  }
}

TEST(LocalAddress, LoopbackCandidatesAvoidWhatOthersChoose) {
  for (const uint32_t n : {0U, 253U, 254U, 65023U, 65024U, kLoopbackCandidates - 1, ~0U}) {
    const LocalAddress a = LoopbackCandidate(n);
    EXPECT_EQ(a.gid[12], 127);
    EXPECT_TRUE(a.gid[13] != 0 && a.gid[13] != 255) << a.ToText();
    EXPECT_TRUE(a.gid[15] != 0 && a.gid[15] != 255) << a.ToText();
  }
  EXPECT_NE(LoopbackCandidate(0).gid, LoopbackCandidate(kLoopbackCandidates - 1).gid);
  EXPECT_EQ(LoopbackCandidate(0).gid, LoopbackCandidate(kLoopbackCandidates).gid);
}

TEST(LocalAddress, OwnLoopbackIsNobodyElses) {
  std::vector<BoundSocket> bound;
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    Expected<BoundSocket> one = BindOwnLoopback();
    ASSERT_TRUE(one) << one.error().ToText();
    EXPECT_TRUE(one->address.IsLoopback());
    EXPECT_TRUE(seen.insert(one->address.ToText()).second);
    bound.push_back(std::move(*one));
  }
  const Expected<BoundSocket> again = BindAlone(bound[0].address);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().errno_value, EADDRINUSE);
  EXPECT_NE(again.error().cause.find("user"), std::string::npos) << again.error().ToText();
  EXPECT_NE(again.error().next_step.find("link=memory"), std::string::npos);
  const LocalAddress first = bound[0].address;
  bound.clear();
  EXPECT_TRUE(BindAlone(first));
}

TEST(LocalAddress, AddressOfAnotherHostIsAnErrorWithTheChoices) {
  const Expected<BoundSocket> bound = BindAlone(LocalAddress::Ipv4(203, 0, 113, 77));
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().error_class, ErrorClass::kSetup);
  EXPECT_EQ(bound.error().errno_value, EADDRNOTAVAIL);
  EXPECT_NE(bound.error().next_step.find("127.0.0.1"), std::string::npos);
}

// In a network namespace of its own, which the others' sockets are not in.
int WithoutAnyFreeAddress() {
  if (::unshare(::geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0) return 77;
  const Expected<BoundSocket> down = BindOwnLoopback();
  if (down || down.error().errno_value != EADDRNOTAVAIL) return 1;
  const FileDescriptor wildcard(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  if (::ioctl(wildcard.get(), SIOCSIFFLAGS, &request) != 0 || !BindOwnLoopback()) return 2;
  sockaddr_in all = {};
  all.sin_family = AF_INET;
  all.sin_port = htons(kRoceUdpPort);
  if (::bind(wildcard.get(), reinterpret_cast<sockaddr*>(&all), sizeof(all)) != 0) return 3;
  const Expected<BoundSocket> taken = BindOwnLoopback();
  if (taken || taken.error().errno_value != EADDRINUSE) return 4;
  if (taken.error().cause.find("for all addresses") == std::string::npos) return 5;
  // Another address would be held as well.
  return taken.error().next_step.find("addr=") == std::string::npos ? 0 : 6;
}

TEST(LocalAddress, PortHeldForAllAddressesIsNamedAsSuch) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(WithoutAnyFreeAddress());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no network namespace to be had";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "step that failed";
}

TEST(LocalAddressHolders, ListExactlyThoseOfTheAddress) {
  const LocalAddress address = Fresh();
  const Expected<PortTable> table = PortTable::Open();
  ASSERT_TRUE(table) << table.error().ToText();
  const auto exact = [&] {
    std::vector<PortHolder> holders = table->Holders(address);
    std::erase_if(holders, [](const PortHolder& holder) { return holder.wildcard; });
    return holders;
  };
  EXPECT_TRUE(exact().empty());
  Expected<BoundSocket> bound = BindAlone(address);
  const Expected<BoundSocket> neighbour = BindAlone(Fresh());
  ASSERT_TRUE(bound && neighbour);
  const std::vector<PortHolder> holders = exact();
  ASSERT_EQ(holders.size(), 1U);
  EXPECT_EQ(holders[0].inode, Inode(bound->socket.get()));
  EXPECT_EQ(holders[0].uid, ::geteuid());
  bound->socket.Reset();
  EXPECT_TRUE(exact().empty());
}

// Lines as the kernel prints them, little-endian words.
constexpr char kTable[] =
    "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode ref pointer drops\n"
    "  110: 0100007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 "
    "4711 2 0000000000000000 0\n"
    "  110: 0200007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 "
    "4712 2 0000000000000000 0\n"
    "  110: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 "
    "4713 2 0000000000000000 0\n"
    "  110: 0100007F:12B8 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 "
    "4714 2 0000000000000000 0\n"
    "  110: 00000000000000000000000001000000:12B7 00000000000000000000000000000000:0000 07 "
    "00000000:00000000 00:00000000 00000000     7        0 4715 2 0000000000000000 0\n"
    "  110: 00000000000000000000000000000000:12B7 00000000000000000000000000000000:0000 07 "
    "00000000:00000000 00:00000000 00000000     8        0 4716 2 0000000000000000 0\n";

TEST(LocalAddressHolders, ReadTheKernelsLines) {
  std::vector<PortHolder> holders;
  AddHolders(kTable, LocalAddress::Ipv4(127, 0, 0, 1), holders);
  const PortHolder wildcard4 = {.inode = 4713, .uid = 0, .wildcard = true};
  const PortHolder wildcard6 = {.inode = 4716, .uid = 8, .wildcard = true};
  EXPECT_EQ(holders, (std::vector<PortHolder>{{.inode = 4711, .uid = 1000}, wildcard4, wildcard6}));
  AddHolders(kTable, LocalAddress::Ipv4(127, 0, 0, 1), holders);
  EXPECT_EQ(holders.size(), 3U);  // the same ones

  LocalAddress loopback6;
  loopback6.gid[15] = 1;
  holders.clear();
  AddHolders(kTable, loopback6, holders);
  EXPECT_EQ(holders, (std::vector<PortHolder>{wildcard4, {.inode = 4715, .uid = 7}, wildcard6}));
}

TEST(LocalAddressHolders, IgnoreLinesCutShort) {
  const std::string_view table = kTable;
  for (size_t size = 0; size < table.size(); ++size) {
    std::vector<PortHolder> holders;
    AddHolders(table.substr(0, size), LocalAddress::Ipv4(127, 0, 0, 1), holders);
    EXPECT_LE(holders.size(), 3U);
  }
}

}  // namespace
}  // namespace verbscope::soft
