#include "transports/ibverbs/identity.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>

namespace verbscope {
namespace {

// Kernel driver of the bus device → name of the RDMA provider in rdma-core.
struct DriverRow {
  std::string_view driver;
  std::string_view provider;
};
constexpr std::array<DriverRow, 15> kDrivers = {{
    {"mlx5_core", "mlx5"},
    {"mlx4_core", "mlx4"},
    {"bnxt_en", "bnxt_re"},
    {"ice", "irdma"},
    {"i40e", "irdma"},
    {"idpf", "irdma"},
    {"efa", "efa"},
    {"hns3", "hns"},
    {"qede", "qedr"},
    {"cxgb4", "cxgb4"},
    {"erdma", "erdma"},
    {"mana", "mana"},
    {"vmw_pvrdma", "pvrdma"},
    {"hfi1", "hfi1"},
    {"be2net", "ocrdma"},
}};

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// node_type reads "4: RNIC" for iWARP; siw is the only software one.
bool IsSiw(const std::string& ibdev) {
  return ReadText(ibdev + "/node_type").value_or("").starts_with("4") &&
         ReadText(ibdev + "/node_desc").value_or("").starts_with("Software iWARP");
}

}  // namespace

DeviceIdentity ReadIdentity(const SystemPaths& paths, std::string_view name) {
  const std::string ibdev = paths.Ibdev(name);
  DeviceIdentity identity;
  identity.numa_node = ReadInt(ibdev + "/device/numa_node").value_or(-1);

  // rxe has no bus device of its own in current kernels and borrows its network card's in old ones
  // (before 5.10), where the driver would name the card. The one thing that only rxe has is the
  // attribute `parent`, the name of its netdev. Not usable: node_desc ("rxe"), since rdma-ndd
  // rewrites it, and vendor_id (0xffffff now), which was 0 in old kernels.
  if (Exists(ibdev + "/parent")) {
    identity.provider = "rxe";
    identity.kind = DeviceKind::kSoftware;
    return identity;
  }
  if (IsSiw(ibdev)) {
    identity.provider = "siw";
    identity.kind = DeviceKind::kSoftware;
    return identity;
  }
  // The uevent file of the bus device names its driver, like the link device/driver.
  const auto driver =
      ValueOfKey(ReadText(ibdev + "/device/uevent").value_or(""), "DRIVER", /*separator=*/'=');
  if (driver) {
    identity.provider = *driver;
    for (const DriverRow& row : kDrivers) {
      if (row.driver == *driver) identity.provider = std::string(row.provider);
    }
  } else if (Exists(ibdev) && !Exists(ibdev + "/device")) {
    // An RDMA device behind no bus is made by software.
    identity.kind = DeviceKind::kSoftware;
  }
  return identity;
}

std::optional<Error> RefusalOf(std::string_view name, ibv_node_type node_type,
                               ibv_transport_type transport_type) {
  if (transport_type == IBV_TRANSPORT_IB && node_type != IBV_NODE_RNIC) return std::nullopt;
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.next_step =
      "choose an InfiniBand or RoCE device (`verbscope devices` lists them), or "
      "--device soft";
  if (transport_type == IBV_TRANSPORT_IWARP || node_type == IBV_NODE_RNIC) {
    error.message = fmt::format("{} is an iWARP device, which verbscope does not support", name);
    error.cause =
        "iWARP queue pairs are connected by the RDMA connection manager over TCP, not by "
        "the state transitions that verbscope measures";
  } else if (transport_type == IBV_TRANSPORT_USNIC || transport_type == IBV_TRANSPORT_USNIC_UDP) {
    error.message = fmt::format("{} is a usNIC device, which verbscope does not support", name);
    error.cause = "usNIC has datagrams only, no reliable connected queue pairs";
  } else {
    error.message = fmt::format(
        "{} has a transport that verbscope does not support (node type {}, transport type {})",
        name, static_cast<int>(node_type), static_cast<int>(transport_type));
    error.cause = "it is neither InfiniBand nor RoCE, so it has no reliable connected queue pairs";
  }
  return error;
}

}  // namespace verbscope
