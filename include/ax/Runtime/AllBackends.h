//===- AllBackends.h - What is linked in ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_ALLBACKENDS_H
#define AX_RUNTIME_ALLBACKENDS_H

#include "ax/Runtime/Backends.h"

namespace ax::rt {

/// What the folders of runtime/ have registered.
const Backends &allBackends();

} // namespace ax::rt

#endif // AX_RUNTIME_ALLBACKENDS_H
