//===- DeviceAccess.cpp - Device addresses as pointers --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/DeviceAccess.h"

#include <type_traits>

namespace ax::rt {

// Kernels get an array of addresses as one of pointers.
static_assert(sizeof(DeviceAddress) == sizeof(void *) &&
              alignof(DeviceAddress) == alignof(void *) &&
              std::is_standard_layout_v<DeviceAddress>);
// Host code that would touch what is there does not compile.
static_assert(!std::is_convertible_v<DeviceAddress, const void *> &&
              !std::is_constructible_v<const void *, DeviceAddress> &&
              !std::is_constructible_v<DeviceAddress, const void *>);

} // namespace ax::rt
