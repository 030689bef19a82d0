//===- FourBits.h - Where numbers of four bits may be -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_FOURBITS_H
#define AX_LIB_IMPORT_FOURBITS_H

#include "Weights.h"

#include <onnx/onnx_pb.h>

namespace ax::import {

/// Constants of INT4, UINT4 and FLOAT4E2M1 are numbers of eight bits once they
/// are read: F8E4M3FN has all of the last. Error unless they are only moved,
/// dequantised and cast, which makes no difference. Nodes are in order;
/// `weights`: the initializers that `model` lacks.
llvm::Error checkFourBits(const onnx::ModelProto &model,
                          const WeightMap &weights);

} // namespace ax::import

#endif // AX_LIB_IMPORT_FOURBITS_H
