#include "transports/ibverbs/fake_verbs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace verbscope {
namespace {

template <class T>
T* Insert(std::set<std::unique_ptr<T>>& objects) {
  return objects.insert(std::make_unique<T>()).first->get();
}

template <class T>
void Erase(std::set<std::unique_ptr<T>>& objects, const T* object) {
  const size_t erased =
      std::erase_if(objects, [object](const auto& owned) { return owned.get() == object; });
  EXPECT_EQ(erased, 1u) << "destroyed an object that does not exist";
}

}  // namespace

FakeVerbs::FakeVerbs() {
  if (::pipe2(pipe_, O_CLOEXEC) != 0) std::abort();
  std::snprintf(device_attributes.fw_ver, sizeof device_attributes.fw_ver, "1.2.3");
  device_attributes.vendor_id = 0xffffff;
  device_attributes.max_qp_wr = 16384;
  device_attributes.max_sge = 32;
  device_attributes.max_cqe = 32767;
  device_attributes.max_qp = 1000;
  device_attributes.max_mr_size = UINT64_MAX;
  device_attributes.max_qp_rd_atom = 128;
  device_attributes.max_qp_init_rd_atom = 1000;
  device_attributes.atomic_cap = IBV_ATOMIC_HCA;
  device_attributes.phys_port_cnt = 1;
  port_attributes.state = IBV_PORT_ACTIVE;
  port_attributes.link_layer = IBV_LINK_LAYER_ETHERNET;
  port_attributes.max_mtu = IBV_MTU_4096;
  port_attributes.active_mtu = IBV_MTU_1024;
  port_attributes.gid_tbl_len = 8;
  port_attributes.max_msg_sz = 1u << 31;
  port_attributes.active_width = 2;
  port_attributes.active_speed = 32;
  ibv_gid_entry entry = {};
  entry.gid_index = 1;
  entry.port_num = 1;
  entry.gid_type = IBV_GID_TYPE_ROCE_V2;
  entry.gid.raw[10] = entry.gid.raw[11] = 0xff;
  entry.gid.raw[12] = 10;
  entry.gid.raw[15] = 1;
  gids[1] = entry;
}

FakeVerbs::~FakeVerbs() {
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

ibv_device* FakeVerbs::AddDevice(const std::string& name, const std::string& uverbs_name) {
  ibv_device device = {};
  device.node_type = IBV_NODE_CA;
  device.transport_type = IBV_TRANSPORT_IB;
  std::snprintf(device.name, sizeof device.name, "%s", name.c_str());
  std::snprintf(device.dev_name, sizeof device.dev_name, "%s", uverbs_name.c_str());
  devices_.push_back(device);
  return &devices_.back();
}

size_t FakeVerbs::live_objects() const {
  return contexts_.size() + pds_.size() + mrs_.size() + channels_.size() + cqs_.size() +
         qps_.size();
}

void FakeVerbs::AbandonObjects() {
  qps_.clear();
  cqs_.clear();
  channels_.clear();
  mrs_.clear();
  pds_.clear();
  contexts_.clear();
}

void FakeVerbs::SignalAsyncEvent() {
  const char byte = 0;
  if (::write(pipe_[1], &byte, 1) != 1) std::abort();
}

int FakeVerbs::Verdict(const char* call) {
  if (fail_nth > 0 && --fail_nth == 0) return fail_nth_errno;
  const auto found = fail.find(call);
  return found == fail.end() ? 0 : found->second;
}

ibv_device** FakeVerbs::GetDeviceList(int* count) {
  errno = list_errno;
  if (list_errno != 0) return nullptr;
  auto** list = new ibv_device*[devices_.size() + 1]();
  *count = 0;
  for (ibv_device& device : devices_) list[(*count)++] = &device;
  return list;
}

void FakeVerbs::FreeDeviceList(ibv_device** list) { delete[] list; }

ibv_context* FakeVerbs::OpenDevice(ibv_device* device) {
  errno = Verdict("OpenDevice");
  if (errno != 0) return nullptr;
  ibv_context* context = Insert(contexts_);
  context->device = device;
  context->num_comp_vectors = 2;
  context->async_fd = pipe_[0];
  return context;
}

int FakeVerbs::CloseDevice(ibv_context* context) {
  if (const int code = Verdict("CloseDevice")) return code;
  Erase(contexts_, context);
  return 0;
}

int FakeVerbs::QueryDevice(ibv_context* /*context*/, ibv_device_attr* attributes) {
  *attributes = device_attributes;
  return Verdict("QueryDevice");
}

int FakeVerbs::QueryPort(ibv_context* /*context*/, int /*port*/, ibv_port_attr* attributes) {
  *attributes = port_attributes;
  return Verdict("QueryPort");
}

int FakeVerbs::QueryGid(ibv_context* /*context*/, int /*port*/, int index, ibv_gid* gid) {
  *gid = gids.contains(index) ? gids[index].gid : ibv_gid{};
  return Verdict("QueryGid");
}

int FakeVerbs::QueryGidTable(ibv_context* /*context*/, std::span<ibv_gid_entry> entries,
                             size_t* count) {
  if (const int code = Verdict("QueryGidTable")) return code;
  if (entries.size() < gids.size()) return EINVAL;
  *count = 0;
  for (const auto& [index, entry] : gids) entries[(*count)++] = entry;
  return 0;
}

ibv_pd* FakeVerbs::AllocPd(ibv_context* context) {
  errno = Verdict("AllocPd");
  if (errno != 0) return nullptr;
  ibv_pd* pd = Insert(pds_);
  pd->context = context;
  pd->handle = next_number_++;
  return pd;
}

int FakeVerbs::DeallocPd(ibv_pd* pd) {
  if (const int code = Verdict("DeallocPd")) return code;
  const auto uses = [pd](const auto& object) { return object->pd == pd; };
  if (std::any_of(mrs_.begin(), mrs_.end(), uses) || std::any_of(qps_.begin(), qps_.end(), uses)) {
    return EBUSY;
  }
  Erase(pds_, pd);
  return 0;
}

ibv_mr* FakeVerbs::RegMr(ibv_pd* pd, void* address, size_t length, int /*access*/) {
  errno = Verdict("RegMr");
  if (errno != 0) return nullptr;
  ibv_mr* mr = Insert(mrs_);
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->lkey = mr->rkey = next_number_++;
  return mr;
}

int FakeVerbs::DeregMr(ibv_mr* mr) {
  if (const int code = Verdict("DeregMr")) return code;
  Erase(mrs_, mr);
  return 0;
}

ibv_comp_channel* FakeVerbs::CreateCompChannel(ibv_context* context) {
  errno = Verdict("CreateCompChannel");
  if (errno != 0) return nullptr;
  ibv_comp_channel* channel = Insert(channels_);
  channel->context = context;
  channel->fd = -1;
  return channel;
}

int FakeVerbs::DestroyCompChannel(ibv_comp_channel* channel) {
  if (const int code = Verdict("DestroyCompChannel")) return code;
  for (const auto& cq : cqs_) {
    if (cq->channel == channel) return EBUSY;
  }
  Erase(channels_, channel);
  return 0;
}

ibv_cq* FakeVerbs::CreateCq(ibv_context* context, int cqe, void* cq_context,
                            ibv_comp_channel* channel, int comp_vector) {
  errno = Verdict("CreateCq");
  if (errno == 0 && (cqe < 1 || cqe > device_attributes.max_cqe || comp_vector < 0 ||
                     comp_vector >= context->num_comp_vectors)) {
    errno = EINVAL;
  }
  if (errno != 0) return nullptr;
  ibv_cq* cq = Insert(cqs_);
  cq->context = context;
  cq->channel = channel;
  cq->cq_context = cq_context;
  cq->cqe = cqe;
  owed[cq] = 0;
  return cq;
}

int FakeVerbs::ModifyCq(ibv_cq* /*cq*/, ibv_modify_cq_attr* attributes) {
  if (const int code = Verdict("ModifyCq")) return code;
  last_modify_cq = *attributes;
  return 0;
}

int FakeVerbs::DestroyCq(ibv_cq* cq) {
  if (const int code = Verdict("DestroyCq")) return code;
  for (const auto& qp : qps_) {
    if (qp->send_cq == cq || qp->recv_cq == cq) return EBUSY;
  }
  owed_at_destruction.push_back(owed[cq]);
  owed.erase(cq);
  Erase(cqs_, cq);
  return 0;
}

ibv_srq* FakeVerbs::CreateSrq(ibv_pd* pd, ibv_srq_init_attr* /*attributes*/) {
  errno = Verdict("CreateSrq");
  if (errno != 0) return nullptr;
  ibv_srq* srq = Insert(srqs_);
  srq->pd = pd;
  return srq;
}

int FakeVerbs::ModifySrq(ibv_srq* /*srq*/, ibv_srq_attr* attributes, int mask) {
  if (const int code = Verdict("ModifySrq")) return code;
  if ((mask & IBV_SRQ_LIMIT) != 0) last_modify_srq = *attributes;
  return 0;
}

int FakeVerbs::DestroySrq(ibv_srq* srq) {
  if (const int code = Verdict("DestroySrq")) return code;
  for (const auto& qp : qps_) {
    if (qp->srq == srq) return EBUSY;
  }
  Erase(srqs_, srq);
  return 0;
}

ibv_qp* FakeVerbs::CreateQp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  ++qps_created;
  last_create_qp = *attributes;
  errno = Verdict("CreateQp");
  const auto max_wr = static_cast<uint32_t>(device_attributes.max_qp_wr);
  if (errno == 0 &&
      (attributes->cap.max_inline_data > largest_inline || attributes->cap.max_send_wr > max_wr ||
       attributes->cap.max_recv_wr > max_wr)) {
    errno = EINVAL;
  }
  if (errno != 0) return nullptr;
  ibv_qp* qp = Insert(qps_);
  qp->pd = pd;
  qp->send_cq = attributes->send_cq;
  qp->recv_cq = attributes->recv_cq;
  qp->srq = attributes->srq;
  qp->qp_num = next_number_++;
  return qp;
}

ibv_cq_ex* FakeVerbs::CreateCqEx(ibv_context* /*context*/, ibv_cq_init_attr_ex* /*attributes*/) {
  errno = EOPNOTSUPP;
  return nullptr;
}

ibv_qp* FakeVerbs::CreateQpEx(ibv_context* /*context*/, ibv_qp_init_attr_ex* /*attributes*/) {
  errno = EOPNOTSUPP;
  return nullptr;
}

ibv_qp_ex* FakeVerbs::ToQpEx(ibv_qp* /*qp*/) { return nullptr; }

int FakeVerbs::DestroyQp(ibv_qp* qp) {
  if (const int code = Verdict("DestroyQp")) return code;
  Erase(qps_, qp);
  return 0;
}

int FakeVerbs::ModifyQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  if (const int code = Verdict("ModifyQp")) return code;
  last_modify = *attributes;
  if ((mask & IBV_QP_STATE) != 0) qp->state = attributes->qp_state;
  return 0;
}

int FakeVerbs::QueryQp(ibv_qp* qp, ibv_qp_attr* attributes, int /*mask*/,
                       ibv_qp_init_attr* /*init_attributes*/) {
  attributes->qp_state = qp->state;
  return Verdict("QueryQp");
}

int FakeVerbs::GetCqEvent(ibv_comp_channel* /*channel*/, ibv_cq** cq) {
  if (const int code = Verdict("GetCqEvent")) return code;
  if (cq_events.empty()) return EAGAIN;
  *cq = cq_events.front();
  cq_events.pop_front();
  if (*cq == nullptr) return EINTR;
  ++owed[*cq];
  return 0;
}

void FakeVerbs::AckCqEvents(ibv_cq* cq, unsigned count) {
  acknowledgements.push_back(count);
  owed[cq] -= static_cast<int>(count);
}

int FakeVerbs::GetAsyncEvent(ibv_context* context, ibv_async_event* event) {
  if (const int code = Verdict("GetAsyncEvent")) return code;
  char byte = 0;
  if (::read(context->async_fd, &byte, 1) != 1) return errno;
  if (async_events.empty()) return EAGAIN;
  *event = async_events.front();
  async_events.pop_front();
  return 0;
}

void FakeVerbs::AckAsyncEvent(ibv_async_event* /*event*/) { ++async_events_acknowledged; }

FakeSystem::FakeSystem() {
  folder_ = std::filesystem::path(::testing::TempDir()) / "fake_system_XXXXXX";
  std::string name = folder_.string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  folder_ = name;
  std::filesystem::create_directories(folder_ / "dev" / "infiniband");
  std::filesystem::create_directories(folder_ / "proc" / "self");
  paths.sysfs = "transports/ibverbs/testdata/sysfs";
  paths.dev = (folder_ / "dev").string();
  paths.proc = (folder_ / "proc").string();
}

FakeSystem::~FakeSystem() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void FakeSystem::AddDeviceNode(const std::string& uverbs_name) {
  std::ofstream(paths.UverbsNode(uverbs_name));
}

void FakeSystem::RemoveDeviceNode(const std::string& uverbs_name) {
  std::filesystem::remove(paths.UverbsNode(uverbs_name));
}

void FakeSystem::WriteProc(const std::string& name, const std::string& text) {
  std::ofstream(paths.proc + "/" + name) << text;
}

}  // namespace verbscope
