//===- Recurrence.h - What recurrent operators share ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_RECURRENCE_H
#define AX_LIB_IMPORT_RECURRENCE_H

#include "Node.h"

#include <functional>

namespace ax::import {

/// How an operator multiplies with its weights W (input 1) and R (input 2).
struct GateProducts {
  /// Weights are [directions, k, gates * hidden]; else the last two are the
  /// other way round.
  bool areGatesLast = false;
  /// x [..., k] times the weight of a direction, a matrix, of which these are
  /// some gates' part: [..., their gates * hidden].
  std::function<Value(int input, int64_t direction, Value x, Value weight)>
      multiply;
};

/// A direction's part [...] of a node's input [directions, ...], which has at
/// least that dimension; null of null.
Value ofDirection(Node &n, Value value, int64_t direction);

/// Imports an LSTM that has ONNX's attributes, its inputs up to the peepholes P
/// (input 7), and its outputs. Errors are those of the node.
void importLSTM(Node &n, const GateProducts &products);

} // namespace ax::import

#endif // AX_LIB_IMPORT_RECURRENCE_H
