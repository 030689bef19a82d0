//===- Sizes.h - Sizes for dimensions that nobody gave ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_INSPECT_SIZES_H
#define AX_LIB_INSPECT_SIZES_H

#include "ax/Inspect/Inspect.h"

namespace ax::inspect {

/// Gives `options` sizes of what it and the inputs leave open: the first
/// dimension of an input is 2, others are `size`; `a + b` is what it says. The
/// names of symbols, and of inputs with dimensions without names, go to
/// `assumed`. Inputs of unknown rank stay what they are.
void assumeSizes(const import::ModelDescription &model, int64_t size,
                 import::ImportOptions &options,
                 std::vector<std::string> &assumed);

} // namespace ax::inspect

#endif // AX_LIB_INSPECT_SIZES_H
