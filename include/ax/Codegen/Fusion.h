//===- Fusion.h - What is computed together ---------------------*- C++ -*-===//
#ifndef AX_CODEGEN_FUSION_H
#define AX_CODEGEN_FUSION_H

#include "ax/Dialect/Ax.h"

namespace ax::codegen {

/// Turns the body of a localised program into units that become commands:
/// `ax.fusion`, library operations, collectives and constants; view ops stay
/// where strides express them. Equal computations are merged and unused ones
/// removed. With `separately` every operation is a fusion of its own: slow, for
/// finding faults.
void fuse(ProgramOp program, bool separately = false);

} // namespace ax::codegen

#endif // AX_CODEGEN_FUSION_H
