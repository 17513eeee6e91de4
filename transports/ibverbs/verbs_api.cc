#include "transports/ibverbs/verbs_api.h"

#include <cerrno>
#include <cstdint>

namespace verbscope {
namespace {

// libibverbs returns 0, a positive errno value, or -1 with errno set, and not always the one that
// its manual says.
int Normalised(int result) {
  if (result >= 0) return result;
  return errno != 0 ? errno : EIO;
}

class Libibverbs final : public VerbsApi {
 public:
  ibv_device** GetDeviceList(int* count) override { return ibv_get_device_list(count); }
  void FreeDeviceList(ibv_device** list) override { ibv_free_device_list(list); }
  ibv_context* OpenDevice(ibv_device* device) override { return ibv_open_device(device); }
  int CloseDevice(ibv_context* context) override { return Normalised(ibv_close_device(context)); }

  int QueryDevice(ibv_context* context, ibv_device_attr* attributes) override {
    return Normalised(ibv_query_device(context, attributes));
  }
  int QueryPort(ibv_context* context, int port, ibv_port_attr* attributes) override {
    return Normalised(ibv_query_port(context, static_cast<uint8_t>(port), attributes));
  }
  int QueryGid(ibv_context* context, int port, int index, ibv_gid* gid) override {
    return Normalised(ibv_query_gid(context, static_cast<uint8_t>(port), index, gid));
  }
  int QueryGidTable(ibv_context* context, std::span<ibv_gid_entry> entries,
                    size_t* count) override {
    const ssize_t result =
        ibv_query_gid_table(context, entries.data(), entries.size(), /*flags=*/0);
    if (result < 0) return static_cast<int>(-result);
    *count = static_cast<size_t>(result);
    return 0;
  }

  ibv_pd* AllocPd(ibv_context* context) override { return ibv_alloc_pd(context); }
  int DeallocPd(ibv_pd* pd) override { return Normalised(ibv_dealloc_pd(pd)); }
  ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length, int access) override {
    return ibv_reg_mr(pd, address, length, static_cast<unsigned>(access));
  }
  int DeregMr(ibv_mr* mr) override { return Normalised(ibv_dereg_mr(mr)); }
  ibv_comp_channel* CreateCompChannel(ibv_context* context) override {
    return ibv_create_comp_channel(context);
  }
  int DestroyCompChannel(ibv_comp_channel* channel) override {
    return Normalised(ibv_destroy_comp_channel(channel));
  }
  ibv_cq* CreateCq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                   int comp_vector) override {
    return ibv_create_cq(context, cqe, cq_context, channel, comp_vector);
  }
  int DestroyCq(ibv_cq* cq) override { return Normalised(ibv_destroy_cq(cq)); }
  int ModifyCq(ibv_cq* cq, ibv_modify_cq_attr* attributes) override {
    return Normalised(ibv_modify_cq(cq, attributes));
  }
  ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* attributes) override {
    return ibv_create_srq(pd, attributes);
  }
  int ModifySrq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) override {
    return Normalised(ibv_modify_srq(srq, attributes, mask));
  }
  int DestroySrq(ibv_srq* srq) override { return Normalised(ibv_destroy_srq(srq)); }
  ibv_cq_ex* CreateCqEx(ibv_context* context, ibv_cq_init_attr_ex* attributes) override {
    return ibv_create_cq_ex(context, attributes);
  }
  ibv_qp* CreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attributes) override {
    return ibv_create_qp_ex(context, attributes);
  }
  ibv_qp_ex* ToQpEx(ibv_qp* qp) override { return ibv_qp_to_qp_ex(qp); }
  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attributes) override {
    return ibv_create_qp(pd, attributes);
  }
  int DestroyQp(ibv_qp* qp) override { return Normalised(ibv_destroy_qp(qp)); }
  int ModifyQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) override {
    return Normalised(ibv_modify_qp(qp, attributes, mask));
  }
  int QueryQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask,
              ibv_qp_init_attr* init_attributes) override {
    return Normalised(ibv_query_qp(qp, attributes, mask, init_attributes));
  }

  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq) override {
    void* cq_context = nullptr;
    return Normalised(ibv_get_cq_event(channel, cq, &cq_context));
  }
  void AckCqEvents(ibv_cq* cq, unsigned count) override { ibv_ack_cq_events(cq, count); }
  int GetAsyncEvent(ibv_context* context, ibv_async_event* event) override {
    return Normalised(ibv_get_async_event(context, event));
  }
  void AckAsyncEvent(ibv_async_event* event) override { ibv_ack_async_event(event); }
};

}  // namespace

VerbsApi& SystemVerbs() {
  static Libibverbs verbs;
  return verbs;
}

}  // namespace verbscope
