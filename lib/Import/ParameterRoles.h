//===- ParameterRoles.h - Parameters by what nodes do with them -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which initializers are a layer's where neither type nor size tells: single
// floats, and integers beside their scales. Training, plans and exports ask
// here.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_IMPORT_PARAMETERROLES_H
#define AX_LIB_IMPORT_PARAMETERROLES_H

#include "WeightKinds.h"

#include "ax/Support/HostTensor.h"

#include <map>
#include <set>

namespace ax::import {

/// What the model says of its parameters, by the names of states.
struct ParameterRoles {
  /// Single floats that are parameters: of layers, or by the exporter's word.
  std::set<std::string> numbers;
  /// What quantised layers have: integers that stand for numbers, of any type,
  /// their scales and zero points, of any size. Also values that are no
  /// initializers.
  std::set<std::string> quantised;
  /// What nodes take where older sets of operators have attributes (sizes, the
  /// scales of Resize, Dropout's ratio), and nothing else takes.
  std::set<std::string> settings;

  /// Whether a tensor is a parameter, and not what the architecture has:
  /// indices, shapes, masks, numbers in the code. Without elements: it may be.
  bool isParameter(const std::string &name, DType type, int64_t numElements,
                   llvm::ArrayRef<uint8_t> elements) const;
  bool has(const std::string &name) const {
    return numbers.count(name) > 0 || quantised.count(name) > 0;
  }
};

/// Shapes of initializers, by their names.
using ShapeMap = std::map<std::string, Shape>;

/// `floats`: those of floats. Graphs in nodes and functions that are called are
/// looked into; of `model` nothing else has to be sound.
ParameterRoles findParameters(const onnx::ModelProto &model,
                              const ShapeMap &floats, const WeightKinds &kinds);

/// Single floats of which nothing says that they are parameters, though they
/// may be: somebody gave them a name, and the exporter tells none.
std::vector<std::string> unclearNumbers(const ParameterRoles &roles,
                                        const ShapeMap &floats,
                                        const WeightKinds &kinds);

} // namespace ax::import

#endif // AX_LIB_IMPORT_PARAMETERROLES_H
