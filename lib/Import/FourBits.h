//===- FourBits.h - Where numbers of four bits may be -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_FOURBITS_H
#define AX_LIB_IMPORT_FOURBITS_H

#include "Weights.h"

#include <onnx/onnx_pb.h>

namespace ax::import {

/// Constants of INT4 and UINT4 are numbers of eight bits once they are read.
/// Error unless they are only moved, dequantised and cast, which makes no
/// difference. Nodes are in order; `weights`: the initializers that `model`
/// lacks.
llvm::Error checkFourBits(const onnx::ModelProto &model,
                          const WeightMap &weights);

} // namespace ax::import

#endif // AX_LIB_IMPORT_FOURBITS_H
