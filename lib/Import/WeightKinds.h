//===- WeightKinds.h - Parameters, buffers, tables --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a model tells of its initializers, beside what is done with them: what
// the exporter wrote down, and what their values give away.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_IMPORT_WEIGHTKINDS_H
#define AX_LIB_IMPORT_WEIGHTKINDS_H

#include "ax/Dialect/WeightKind.h"
#include "ax/Support/DType.h"

#include "llvm/ADT/ArrayRef.h"

#include <onnx/onnx_pb.h>

#include <map>
#include <optional>
#include <set>
#include <string>

namespace ax::import {

/// The kinds of weights, by the names of initializers.
using WeightKinds = std::map<std::string, WeightKind>;

/// What torch.export knew of a tensor, if `entry` of its metadata says it.
std::optional<WeightKind>
declaredKind(const onnx::StringStringEntryProto &entry);

/// That of all values of which the model says it. PyTorch's exporters have
/// parameters, and buffers, as initializers: the `constants`, which nodes gave,
/// are made in the model's code, and so is what the newer one has folded,
/// unless one of what it names was a parameter.
void collectDeclared(const onnx::ModelProto &model,
                     const std::set<std::string> &constants,
                     WeightKinds &kinds);

/// Whether the file tells parameters from others.
bool areParametersDeclared(const WeightKinds &kinds);

/// Inputs of an operator, by their place, that hold parameters and nothing
/// else, whatever its other operands are. `name`: with its domain, if that is
/// not ONNX's own.
llvm::ArrayRef<int> parameterInputs(llvm::StringRef name);

/// Inputs that say what an operator does, and are nothing to learn: how much
/// each class counts in a loss.
llvm::ArrayRef<int> bufferInputs(llvm::StringRef name);

/// What no training leaves: tables of sines, masks, grids, progressions, a row
/// of zeros, one part several times. Most weights differ from these in their
/// first elements. `values`: of f32, f16 or bf16, as in the file; nothing of
/// other types.
std::optional<WeightKind> kindByValues(DType type,
                                       llvm::ArrayRef<uint8_t> values,
                                       llvm::ArrayRef<int64_t> shape);

} // namespace ax::import

#endif // AX_LIB_IMPORT_WEIGHTKINDS_H
