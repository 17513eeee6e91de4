// The live objects of one kind by address. The table owns them. Each use looks an object up and
// compares its handle with the one it was given, so a stale or damaged object is found out (ENOENT)
// instead of followed: an address that is not in the table is never read.
//
// Not thread-safe: guarded by the device's control mutex.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_OBJECT_TABLE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_OBJECT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "transports/soft/device/objects.h"

namespace verbscope::soft {

template <class T>
class ObjectTable {
 public:
  T& Add(std::unique_ptr<T> object) {
    T& added = *object;
    objects_.emplace(&added, Entry{HandleOf(added), std::move(object)});
    return added;
  }
  // Whether `object` is alive and its handle its own.
  bool Has(const T& object) const {
    const auto found = objects_.find(&object);
    return found != objects_.end() && found->second.handle == HandleOf(object);
  }
  // The object leaves the table and is the caller's. It must be there.
  std::unique_ptr<T> Take(const T& object) {
    auto node = objects_.extract(&object);
    return std::move(node.mapped().object);
  }
  size_t size() const { return objects_.size(); }

 private:
  struct Entry {
    uint32_t handle;
    std::unique_ptr<T> object;
  };
  std::unordered_map<const T*, Entry> objects_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_OBJECT_TABLE_H_
