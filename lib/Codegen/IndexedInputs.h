//===- IndexedInputs.h - Inputs that hold indices ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_INDEXEDINPUTS_H
#define AX_LIB_CODEGEN_INDEXEDINPUTS_H

#include "ax/Dialect/Ax.h"

namespace ax::codegen {

/// The smallest of the dimensions that all elements of `program`'s input are
/// indices into: what a run checks, it would find of the input alone. Nothing
/// where the input is no index, or one is computed of it.
std::optional<int64_t> findIndexedSize(ProgramOp program, unsigned input);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_INDEXEDINPUTS_H
