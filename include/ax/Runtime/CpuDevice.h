//===- CpuDevice.h - Ranks that compute on CPU threads ----------*- C++ -*-===//
//
// Matmul and convolution by oneDNN, whose threads (and our kernels') are those
// of libgomp: one team per rank. Never link libomp into the same process.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CPUDEVICE_H
#define AX_RUNTIME_CPUDEVICE_H

#include "ax/Runtime/Device.h"

#include <vector>

namespace ax::rt {

struct CpuOptions {
  int32_t threadsPerRank = 1;
  /// What threads compute takes subnormal numbers for 0 and gives 0 for them
  /// (x86's FTZ and DAZ, Arm's FZ): many processors take a hundred times as
  /// long for one as for another number.
  bool flushDenormals = false;
};

/// One device per rank of this process; they share packed weights.
std::vector<std::unique_ptr<Device>>
createCpuDevices(int32_t numRanks, const CpuOptions &options = {});

} // namespace ax::rt

#endif // AX_RUNTIME_CPUDEVICE_H
