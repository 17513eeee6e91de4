// The lock of one soft device as its link sees it: whoever implements the device decides what it is
// (a mutex, a spin lock, a lock that its owner holds for free).
//
// The link never holds it while it waits for anything.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_DEVICE_LOCK_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_DEVICE_LOCK_H_

namespace verbscope::soft {

class DeviceLock {
 public:
  virtual ~DeviceLock() = default;
  virtual void Lock() = 0;
  virtual void Unlock() = 0;
};

// Holds a DeviceLock for a block.
class DeviceLockHolder {
 public:
  explicit DeviceLockHolder(DeviceLock& lock) : lock_(lock) { lock_.Lock(); }
  DeviceLockHolder(const DeviceLockHolder&) = delete;
  DeviceLockHolder& operator=(const DeviceLockHolder&) = delete;
  ~DeviceLockHolder() { lock_.Unlock(); }

 private:
  DeviceLock& lock_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_DEVICE_LOCK_H_
