//===- CpuKernel.h - Kernels in this process's memory -----------*- C++ -*-===//
//
// An image of format `elf-x86-64` is a relocatable object file: code, constants
// and calls of functions that hostFunction() knows. Every number of it is
// checked before it is believed; its code is to be trusted like a program's.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CPUKERNEL_H
#define AX_RUNTIME_CPUKERNEL_H

#include "ax/Runtime/Program.h"

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

/// What kernels may call by this name: of the mathematical library, of memory,
/// and ax_kernel_top_k. Null for others.
const void *hostFunction(llvm::StringRef name);

/// The k largest (or smallest) of n elements of a DType in order, equal ones in
/// order of their indices; NaN counts as larger than every number.
extern "C" void ax_kernel_top_k(int64_t type, const void *input, int64_t n,
                                int64_t k, int64_t smallest, void *values,
                                int64_t *indices);

} // namespace ax::rt

#endif // AX_RUNTIME_CPUKERNEL_H
