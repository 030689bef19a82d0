//===- WithoutZmq.cpp - Lone processes where there is no ZeroMQ -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Control.h"
#include "ax/Support/Error.h"

namespace ax::rt {

llvm::Expected<std::unique_ptr<World>> joinControl(ControlOptions) {
  return makeError(ExitCode::Usage,
                   "a job of several processes needs ZeroMQ, and this was "
                   "built without its header (zmq.h)");
}

} // namespace ax::rt
