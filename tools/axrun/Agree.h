//===- Agree.h - Outputs beside the expected ones ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXRUN_AGREE_H
#define AX_TOOLS_AXRUN_AGREE_H

#include "Options.h"
#include "ax/Runtime/Npy.h"

namespace ax {

/// Whether all outputs are as expected. Tells on stderr what differs, and what
/// was not looked at.
bool agree(const RunOptions &options, const std::vector<rt::Port> &ports,
           const std::vector<HostTensor> &outputs,
           const rt::NamedTensors &expected);

} // namespace ax

#endif // AX_TOOLS_AXRUN_AGREE_H
