//===- LibraryArguments.h - What a library reads and writes -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_LIBRARYARGUMENTS_H
#define AX_LIB_CODEGEN_LIBRARYARGUMENTS_H

#include "Library.h"

namespace ax::codegen {

DType dtypeOf(mlir::Value value);
std::vector<int64_t> toVector(llvm::ArrayRef<int64_t> values);

/// Operands and results of a library operation, as a call's arguments. What
/// has to be dense for that is noted in the call.
class LibraryArguments {
protected:
  /// As makeLibraryCall.
  LibraryArguments(mlir::Operation *op, const MemoryValues &inMemory, bool gpu)
      : op(op), library(llvm::dyn_cast<LibraryOp>(op)), inMemory(inMemory),
        gpu(gpu) {}

  /// What the core's operand is outside.
  mlir::Value outside(mlir::OpOperand &operand) {
    return op->getOperand(operand.getOperandNumber());
  }
  static rt::TensorDesc desc(const StridedView &view) {
    return {dtypeOf(view.base), toVector(view.sizes), toVector(view.strides)};
  }

  // These add an argument.
  /// The view of an operand, which is also an argument.
  StridedView argument(mlir::OpOperand &operand) {
    return argument(outside(operand));
  }
  StridedView argument(mlir::Value value);
  rt::TensorDesc denseArgument(mlir::OpOperand &operand) {
    return denseArgument(outside(operand));
  }
  rt::TensorDesc denseArgument(mlir::Value value);
  /// An operand without gaps, its dimensions in any order.
  rt::TensorDesc packedArgument(mlir::OpOperand &operand);
  /// An operand of a convolution; of 16 bits on a GPU with its channels
  /// innermost, where it is seen through a transpose that says so
  /// (ChannelsLast): what that is of is written in this order.
  rt::TensorDesc imageArgument(mlir::OpOperand &operand);
  /// An operand whose innermost dimension is contiguous; for a GPU's library
  /// its rows begin at multiples of 16 bytes, and none is repeated.
  rt::TensorDesc rowArgument(mlir::OpOperand &operand);
  /// False where there is no bias.
  bool addBias();
  /// At which a gradient of an activation is: dense, and on a GPU aligned.
  void addGradientOperand();
  /// Of all that `core` gives.
  void addResults(mlir::Operation *core);

  /// What is computed, where it is written.
  rt::TensorDesc result();
  /// Where the core writes a result of several.
  StridedView placeOf(mlir::Value made);

  /// What the result is added to, a sum over micro-batches, too; null where
  /// there is none.
  mlir::Value getResidual();
  rt::Activation getActivation();
  rt::ActivationForm getForm();

  mlir::Operation *op;
  /// Null where `op` is a library operation itself.
  LibraryOp library;
  const MemoryValues &inMemory;
  bool gpu;
  LibraryCall call;
};

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_LIBRARYARGUMENTS_H
