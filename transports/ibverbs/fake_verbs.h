// A libibverbs that is made of plain objects in this process: for tests of everything above
// VerbsApi on hosts without a device.
//
// It keeps the library's rules that matter: destroying what is in use is EBUSY, a CQ counts the
// events that it owes. Any call can be made to fail: by name, or the n-th of all. Not thread safe.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_FAKE_VERBS_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_FAKE_VERBS_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "transports/common/system_files.h"
#include "transports/device.h"
#include "transports/ibverbs/verbs_api.h"

namespace verbscope {

class FakeVerbs final : public VerbsApi {
 public:
  FakeVerbs();
  ~FakeVerbs() override;

  // Adds an InfiniBand-or-RoCE device with one active Ethernet port; returns it for changes.
  ibv_device* AddDevice(const std::string& name, const std::string& uverbs_name);

  // ---- what the next calls do ----
  // errno of every call of this function, by its name in VerbsApi ("CreateQp"); 0: works again.
  std::map<std::string, int> fail;
  // The n-th call from now on fails with fail_nth_errno, counted from 1; 0: none does. Queries
  // whose failure has a fallback count too.
  int fail_nth = 0;
  int fail_nth_errno = 0;
  int list_errno = 0;  // GetDeviceList returns null with this errno

  ibv_device_attr device_attributes = {};
  ibv_port_attr port_attributes = {};
  std::map<int, ibv_gid_entry> gids;  // by index
  uint32_t largest_inline = 400;      // more is EINVAL
  std::deque<ibv_async_event> async_events;
  std::deque<ibv_cq*> cq_events;  // null: interrupted (EINTR)

  // ---- what was seen ----
  size_t live_objects() const;  // objects and contexts not destroyed
  int qps_created = 0;
  std::map<ibv_cq*, int> owed;  // events taken less acknowledged, of living CQs
  std::vector<unsigned> acknowledgements;
  std::vector<int> owed_at_destruction;  // of each destroyed CQ
  ibv_qp_attr last_modify = {};
  ibv_modify_cq_attr last_modify_cq = {};
  ibv_srq_attr last_modify_srq = {};
  ibv_qp_init_attr last_create_qp = {};

  // Forgets objects whose destruction was made to fail.
  void AbandonObjects();

  // Makes the async fd readable, as an event in async_events would.
  void SignalAsyncEvent();

  ibv_device** GetDeviceList(int* count) override;
  void FreeDeviceList(ibv_device** list) override;
  ibv_context* OpenDevice(ibv_device* device) override;
  int CloseDevice(ibv_context* context) override;
  int QueryDevice(ibv_context* context, ibv_device_attr* attributes) override;
  int QueryPort(ibv_context* context, int port, ibv_port_attr* attributes) override;
  int QueryGid(ibv_context* context, int port, int index, ibv_gid* gid) override;
  int QueryGidTable(ibv_context* context, std::span<ibv_gid_entry> entries, size_t* count) override;
  ibv_pd* AllocPd(ibv_context* context) override;
  int DeallocPd(ibv_pd* pd) override;
  ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length, int access) override;
  int DeregMr(ibv_mr* mr) override;
  ibv_comp_channel* CreateCompChannel(ibv_context* context) override;
  int DestroyCompChannel(ibv_comp_channel* channel) override;
  ibv_cq* CreateCq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                   int comp_vector) override;
  int DestroyCq(ibv_cq* cq) override;
  int ModifyCq(ibv_cq* cq, ibv_modify_cq_attr* attributes) override;
  ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* attributes) override;
  int ModifySrq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) override;
  int DestroySrq(ibv_srq* srq) override;
  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attributes) override;
  // As a device without extended interfaces.
  ibv_cq_ex* CreateCqEx(ibv_context* context, ibv_cq_init_attr_ex* attributes) override;
  ibv_qp* CreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attributes) override;
  ibv_qp_ex* ToQpEx(ibv_qp* qp) override;
  int DestroyQp(ibv_qp* qp) override;
  int ModifyQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) override;
  int QueryQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask,
              ibv_qp_init_attr* init_attributes) override;
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq) override;
  void AckCqEvents(ibv_cq* cq, unsigned count) override;
  int GetAsyncEvent(ibv_context* context, ibv_async_event* event) override;
  void AckAsyncEvent(ibv_async_event* event) override;

  int async_events_acknowledged = 0;

 private:
  // The errno with which this call is to fail, 0 for none.
  int Verdict(const char* call);

  std::list<ibv_device> devices_;
  std::set<std::unique_ptr<ibv_context>> contexts_;
  std::set<std::unique_ptr<ibv_pd>> pds_;
  std::set<std::unique_ptr<ibv_mr>> mrs_;
  std::set<std::unique_ptr<ibv_comp_channel>> channels_;
  std::set<std::unique_ptr<ibv_cq>> cqs_;
  std::set<std::unique_ptr<ibv_srq>> srqs_;
  std::set<std::unique_ptr<ibv_qp>> qps_;
  uint32_t next_number_ = 0x11;
  int pipe_[2] = {-1, -1};  // the async fd and its other end
};

// System files of a test: the hand-made sysfs tree of testdata/, and a folder of its own for device
// nodes (plain files that can be opened) and /proc, removed at the end.
class FakeSystem {
 public:
  FakeSystem();
  ~FakeSystem();
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;

  void AddDeviceNode(const std::string& uverbs_name);
  void RemoveDeviceNode(const std::string& uverbs_name);
  void WriteProc(const std::string& name, const std::string& text);

  SystemPaths paths;

 private:
  std::filesystem::path folder_;
};

struct CollectedReport : TeardownReport {
  void Add(Error error) override { errors.push_back(std::move(error)); }
  std::vector<Error> errors;
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_FAKE_VERBS_H_
