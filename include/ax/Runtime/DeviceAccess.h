//===- DeviceAccess.h - Device addresses as pointers ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the sources of devices alone (test/house/rooms.py): what others do with
// device memory they ask a Stream to do.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_DEVICEACCESS_H
#define AX_RUNTIME_DEVICEACCESS_H

#include "ax/Runtime/Device.h"

namespace ax::rt {

struct DeviceAccess {
  static DeviceAddress address(const void *pointer) {
    DeviceAddress address;
    address.value = reinterpret_cast<uintptr_t>(pointer);
    return address;
  }
  static void *pointer(DeviceAddress address) {
    return reinterpret_cast<void *>(address.value);
  }
  /// The same, of many at once: they lie as pointers do.
  static void *const *pointers(const DeviceAddress *addresses) {
    return reinterpret_cast<void *const *>(addresses);
  }
};

} // namespace ax::rt

#endif // AX_RUNTIME_DEVICEACCESS_H
