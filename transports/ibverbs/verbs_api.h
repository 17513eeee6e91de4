// The exported control verbs of libibverbs, as one object. It exists so that everything above it,
// above all the handling of failures, is tested on hosts without a device: tests pass a fake.
//
// One rule for results, where libibverbs has three: a function that returns a pointer returns null
// and leaves the reason in errno; a function that returns int returns 0 or a positive errno value.
// No state of its own; as thread safe as libibverbs (every call here is).
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_VERBS_API_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_VERBS_API_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <span>

namespace verbscope {

class VerbsApi {
 public:
  virtual ~VerbsApi() = default;

  virtual ibv_device** GetDeviceList(int* count) = 0;
  virtual void FreeDeviceList(ibv_device** list) = 0;
  virtual ibv_context* OpenDevice(ibv_device* device) = 0;
  virtual int CloseDevice(ibv_context* context) = 0;

  virtual int QueryDevice(ibv_context* context, ibv_device_attr* attributes) = 0;
  virtual int QueryPort(ibv_context* context, int port, ibv_port_attr* attributes) = 0;
  virtual int QueryGid(ibv_context* context, int port, int index, ibv_gid* gid) = 0;
  // The valid entries of all ports of the device, `*count` of them. EINVAL when `entries` has less
  // room than the tables of all ports need.
  virtual int QueryGidTable(ibv_context* context, std::span<ibv_gid_entry> entries,
                            size_t* count) = 0;

  virtual ibv_pd* AllocPd(ibv_context* context) = 0;
  virtual int DeallocPd(ibv_pd* pd) = 0;
  virtual ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length, int access) = 0;
  virtual int DeregMr(ibv_mr* mr) = 0;
  virtual ibv_comp_channel* CreateCompChannel(ibv_context* context) = 0;
  virtual int DestroyCompChannel(ibv_comp_channel* channel) = 0;
  virtual ibv_cq* CreateCq(ibv_context* context, int cqe, void* cq_context,
                           ibv_comp_channel* channel, int comp_vector) = 0;
  virtual int DestroyCq(ibv_cq* cq) = 0;
  virtual int ModifyCq(ibv_cq* cq, ibv_modify_cq_attr* attributes) = 0;
  virtual ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* attributes) = 0;
  virtual int ModifySrq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) = 0;
  virtual int DestroySrq(ibv_srq* srq) = 0;
  virtual ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attributes) = 0;
  // Objects with the extended interfaces; EOPNOTSUPP from devices without them.
  virtual ibv_cq_ex* CreateCqEx(ibv_context* context, ibv_cq_init_attr_ex* attributes) = 0;
  virtual ibv_qp* CreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attributes) = 0;
  virtual ibv_qp_ex* ToQpEx(ibv_qp* qp) = 0;  // null: not made with ibv_wr_*
  virtual int DestroyQp(ibv_qp* qp) = 0;
  virtual int ModifyQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) = 0;
  virtual int QueryQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask,
                      ibv_qp_init_attr* init_attributes) = 0;

  virtual int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq) = 0;
  virtual void AckCqEvents(ibv_cq* cq, unsigned count) = 0;
  virtual int GetAsyncEvent(ibv_context* context, ibv_async_event* event) = 0;
  virtual void AckAsyncEvent(ibv_async_event* event) = 0;
};

// The real library.
VerbsApi& SystemVerbs();

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_VERBS_API_H_
