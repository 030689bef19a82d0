//===- DimExpression.h - Sizes that are made of others ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_DIMEXPRESSION_H
#define AX_LIB_IMPORT_DIMEXPRESSION_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ax::import {

/// The size that exporters write as `past_length + 1`, `2*s0`, `(a - b)//2`:
/// sums, differences (with blanks), products and quotients, rounded down, of
/// numbers and of names, whose sizes `sizeOf` says. Nothing where it is none of
/// these, or less than 0, or where the size of a name is not known.
std::optional<int64_t>
evaluateDim(llvm::StringRef text,
            llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> sizeOf);

/// The names in such a text, or in any other.
std::vector<llvm::StringRef> namesInDim(llvm::StringRef text);

} // namespace ax::import

#endif // AX_LIB_IMPORT_DIMEXPRESSION_H
