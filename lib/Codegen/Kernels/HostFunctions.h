//===- HostFunctions.h - C++ that kernels call ------------------*- C++ -*-===//
//
// Of the device that runs them: ax/Runtime/CpuKernel.h says what they do.
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_KERNELS_HOSTFUNCTIONS_H
#define AX_CODEGEN_KERNELS_HOSTFUNCTIONS_H

#include "ax/Support/DType.h"

#include "mlir/IR/Types.h"

namespace ax::codegen {

/// Element type as kernels name it to host functions.
DType hostTypeOf(mlir::Type elementType);

constexpr const char *topKSymbol = "ax_kernel_top_k";

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_HOSTFUNCTIONS_H
