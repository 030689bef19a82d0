//===- HostFunctions.h - C++ that kernels call ------------------*- C++ -*-===//
#ifndef AX_CODEGEN_KERNELS_HOSTFUNCTIONS_H
#define AX_CODEGEN_KERNELS_HOSTFUNCTIONS_H

#include "ax/Support/DType.h"

#include "mlir/IR/Types.h"

namespace ax::codegen {

/// Element type as kernels name it to host functions.
DType hostTypeOf(mlir::Type elementType);

constexpr const char *topKSymbol = "ax_kernel_top_k";

/// The k largest (or smallest) of n elements in order, equal ones in order of
/// their indices; NaN counts as larger than every number.
extern "C" void ax_kernel_top_k(int64_t type, const void *input, int64_t n,
                                int64_t k, int64_t smallest, void *values,
                                int64_t *indices);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_HOSTFUNCTIONS_H
