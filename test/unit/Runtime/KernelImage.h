//===- KernelImage.h - Small object files for tests -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_KERNELIMAGE_H
#define AX_TEST_KERNELIMAGE_H

#include "ax/Runtime/CpuKernel.h"

namespace ax::rt {

/// An object file of code, constants and one symbol, with relocations in the
/// code.
struct KernelImage {
  struct Relocation {
    uint64_t offset = 0;
    uint32_t type = 0;
    /// 0: the constants; else calls[symbol - 1].
    uint32_t symbol = 0;
    int64_t addend = 0;
  };
  std::string entry = "entry";
  std::vector<uint8_t> code, constants;
  std::vector<std::string> calls;
  std::vector<Relocation> relocations;

  /// The object file.
  std::vector<uint8_t> write() const;
};

/// A kernel written in C++.
Kernel makeKernel(const std::string &name, CpuKernelFn function);

} // namespace ax::rt

#endif // AX_TEST_KERNELIMAGE_H
