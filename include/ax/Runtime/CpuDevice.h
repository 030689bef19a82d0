//===- CpuDevice.h - Ranks that compute on CPU threads ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmul and convolution by oneDNN, whose threads (and our kernels') are those
// of libgomp: one team per rank. Never link libomp into the same process.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CPUDEVICE_H
#define AX_RUNTIME_CPUDEVICE_H

#include "ax/Runtime/Device.h"

namespace ax::rt {

/// One device per rank of this process; they share packed weights.
std::vector<std::unique_ptr<Device>>
createCpuDevices(int32_t numRanks, const DeviceOptions &options = {});

} // namespace ax::rt

#endif // AX_RUNTIME_CPUDEVICE_H
