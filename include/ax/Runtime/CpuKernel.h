//===- CpuKernel.h - Kernels in this process's memory -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An image of format `elf-x86-64` is a relocatable object file: code, constants
// and calls of functions that hostFunction() knows. Every number of it is
// checked before it is believed; its code is to be trusted like a program's.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CPUKERNEL_H
#define AX_RUNTIME_CPUKERNEL_H

#include "ax/Runtime/Program.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace ax::rt {

/// What is at an image's entry: does iterations begin <= i < end of the
/// kernel's outermost loop. Different ones may run at the same time on
/// different threads. `buffers`: one address per argument, offsets added.
using CpuKernelFn = void (*)(void *const *buffers, const int64_t *scalars,
                             int64_t begin, int64_t end);

/// An image that is loaded, as long as somebody holds it.
class LoadedKernel {
public:
  virtual ~LoadedKernel();
  CpuKernelFn getFunction() const { return function; }

protected:
  CpuKernelFn function = nullptr;
};

/// Equal images are loaded once in a process. Thread-safe. An Unsupported error
/// for images of other formats, a BadPlan error for damaged ones.
llvm::Expected<std::shared_ptr<const LoadedKernel>>
loadCpuKernel(const Kernel &kernel);

/// Returns the function of a name that an object file calls; null if there is
/// none.
using FindFunction = llvm::function_ref<const void *(llvm::StringRef)>;

/// The function `entry` of an object file, whatever its parameters are, which
/// is there as long as somebody holds it. A BadPlan error for a damaged one,
/// and for one that calls what `functions` does not have.
llvm::Expected<std::shared_ptr<const void>>
loadObject(llvm::ArrayRef<uint8_t> object, llvm::StringRef entry,
           FindFunction functions);

/// What kernels may call by this name: functions of the mathematical library
/// and of memory. Null for others.
const void *hostFunction(llvm::StringRef name);

} // namespace ax::rt

#endif // AX_RUNTIME_CPUKERNEL_H
