#include "transports/ibverbs/live_objects.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace verbscope {
namespace {

constexpr size_t kMaxNamed = 4;

// Sorted, so that the same state always gives the same text.
std::string Join(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string text;
  const size_t named = std::min(names.size(), kMaxNamed);
  for (size_t i = 0; i < named; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > named) text += fmt::format(" and {} more", names.size() - named);
  return text;
}

}  // namespace

std::string Describe(const ibv_pd* pd) { return fmt::format("PD {}", pd->handle); }

std::string Describe(const ibv_mr* mr) {
  return fmt::format("MR lkey {:#x} ({} bytes at {})", mr->lkey, mr->length, mr->addr);
}

std::string Describe(const ibv_comp_channel* channel) {
  return fmt::format("completion channel fd {}", channel->fd);
}

std::string Describe(const ibv_cq* cq) {
  return fmt::format("CQ {} ({} entries)", static_cast<const void*>(cq), cq->cqe);
}

std::string Describe(const ibv_qp* qp) { return fmt::format("QP {:#x}", qp->qp_num); }

std::string Describe(const ibv_srq* srq) {
  return fmt::format("SRQ {}", static_cast<const void*>(srq));
}

void LiveObjects::Add(ibv_mr* mr) {
  const std::lock_guard lock(mutex_);
  mrs_.insert(mr);
}

void LiveObjects::Add(ibv_qp* qp) {
  const std::lock_guard lock(mutex_);
  qps_.insert(qp);
}

void LiveObjects::Add(ibv_cq* cq, EventCount events) {
  const std::lock_guard lock(mutex_);
  cqs_[cq] = events;
}

void LiveObjects::Remove(ibv_mr* mr) {
  const std::lock_guard lock(mutex_);
  mrs_.erase(mr);
}

void LiveObjects::Remove(ibv_qp* qp) {
  const std::lock_guard lock(mutex_);
  qps_.erase(qp);
}

EventCount LiveObjects::Remove(ibv_cq* cq) {
  const std::lock_guard lock(mutex_);
  const auto found = cqs_.find(cq);
  if (found == cqs_.end()) return {};
  const EventCount events = found->second;
  cqs_.erase(found);
  return events;
}

void LiveObjects::EventTaken(ibv_cq* cq) {
  const std::lock_guard lock(mutex_);
  ++cqs_[cq].taken;
}

void LiveObjects::EventsAcknowledged(ibv_cq* cq, unsigned count) {
  const std::lock_guard lock(mutex_);
  cqs_[cq].acknowledged += count;
}

std::string LiveObjects::HoldersOf(const ibv_pd* pd) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const ibv_mr* mr : mrs_) {
    if (mr->pd == pd) names.push_back(Describe(mr));
  }
  for (const ibv_qp* qp : qps_) {
    if (qp->pd == pd) names.push_back(Describe(qp));
  }
  return Join(std::move(names));
}

std::string LiveObjects::HoldersOf(const ibv_cq* cq) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const ibv_qp* qp : qps_) {
    if (qp->send_cq == cq || qp->recv_cq == cq) names.push_back(Describe(qp));
  }
  return Join(std::move(names));
}

std::string LiveObjects::HoldersOf(const ibv_comp_channel* channel) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [cq, events] : cqs_) {
    if (cq->channel == channel) names.push_back(Describe(cq));
  }
  return Join(std::move(names));
}

size_t LiveObjects::size() const {
  const std::lock_guard lock(mutex_);
  return mrs_.size() + qps_.size() + cqs_.size();
}

}  // namespace verbscope
