// The live objects of one kind by handle. The table owns them; the handle inside an object is checked
// against it at each use, so a stale or damaged object is found out (ENOENT) instead of followed.
//
// Not thread-safe: guarded by the device's control mutex.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_OBJECT_TABLE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_OBJECT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "transports/soft/device/objects.h"

namespace verbscope::soft {

template <class T>
class ObjectTable {
 public:
  // The object's handle was just made up by the device and is new.
  T& Add(std::unique_ptr<T> object) {
    const uint32_t handle = HandleOf(*object);
    return *objects_.emplace(handle, std::move(object)).first->second;
  }
  // Whether `object` is alive and its handle its own.
  bool Has(const T& object) const {
    const auto found = objects_.find(HandleOf(object));
    return found != objects_.end() && found->second.get() == &object;
  }
  // The object leaves the table and is the caller's.
  std::unique_ptr<T> Take(const T& object) {
    auto node = objects_.extract(HandleOf(object));
    return std::move(node.mapped());
  }
  size_t size() const { return objects_.size(); }

 private:
  std::map<uint32_t, std::unique_ptr<T>> objects_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_OBJECT_TABLE_H_
