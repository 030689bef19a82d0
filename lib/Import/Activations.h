//===- Activations.h - Activations inside other operators -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_ACTIVATIONS_H
#define AX_LIB_IMPORT_ACTIVATIONS_H

#include "Node.h"

namespace ax::import {

/// Applies the function that `name` has in ONNX (`Relu`, `Clip`, `HardSigmoid`;
/// `Silu` and `ScaledTanh` too), with its attributes in their order: alpha,
/// beta; min, max. A failure where it takes more or fewer.
Value activate(Node &n, llvm::StringRef name, ArrayRef<double> parameters,
               Value x);

} // namespace ax::import

#endif // AX_LIB_IMPORT_ACTIVATIONS_H
