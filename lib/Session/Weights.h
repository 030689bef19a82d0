//===- Weights.h - Other weights for a plan's states ------------*- C++ -*-===//
#ifndef AX_LIB_SESSION_WEIGHTS_H
#define AX_LIB_SESSION_WEIGHTS_H

#include "ax/Runtime/Program.h"

namespace ax {

/// Replaces the files of `program`'s states by the tensors of `path`
/// (.safetensors or .npz). A BadInput error lists states that it lacks or has
/// with another type or shape. The plan's own constants stay.
llvm::Error useWeights(rt::Program &program, const std::string &path);

} // namespace ax

#endif // AX_LIB_SESSION_WEIGHTS_H
