//===- GradientBuilder.h - What gradients are built with --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One for each operation that a gradient goes through: the gradients of its
// results, and where those of its operands go.
//
//===----------------------------------------------------------------------===//
#ifndef AX_GRADIENTS_GRADIENTBUILDER_H
#define AX_GRADIENTS_GRADIENTBUILDER_H

#include "ax/Gradients/TensorBuilder.h"

#include <string>

namespace ax {

class GradientBuilder : public TensorBuilder {
public:
  using Make = llvm::function_ref<Value()>;

  /// `wanted`: whether a state that is trained lies behind the value.
  GradientBuilder(mlir::OpBuilder &builder, mlir::Operation *op,
                  llvm::ArrayRef<Value> resultGradients,
                  llvm::function_ref<bool(Value)> wanted)
      : TensorBuilder(op->getLoc(), builder), op(op),
        resultGradients(resultGradients), wanted(wanted),
        operandGradients(op->getNumOperands()) {}

  /// Returns the gradient of a result; null where nothing flows through it.
  Value ofResult(unsigned i = 0) const { return resultGradients[i]; }
  bool isWanted(mlir::OpOperand &operand) const {
    return wanted(operand.get());
  }
  bool isWanted(mlir::MutableOperandRange optional) const {
    return !optional.empty() && isWanted(optional[0]);
  }
  /// The gradient of `operand`, which is made only if it is wanted.
  void give(mlir::OpOperand &operand, Make make);
  void give(mlir::MutableOperandRange optional, Make make) {
    if (!optional.empty())
      give(optional[0], make);
  }
  /// The same, summed over what the operand was broadcast along.
  void giveSummed(mlir::OpOperand &operand, Make make);

  /// What `make` builds of the operation's operands and results belongs to the
  /// forward pass: which numbers are equal is asked of those that were computed
  /// there. Done again, one of them may be rounded in another way.
  Value inForward(Make make);

  /// Why the operation, as it is, has no gradient.
  mlir::LogicalResult fail(const llvm::Twine &why) {
    failure = why.str();
    return mlir::failure();
  }

  llvm::ArrayRef<Value> getOperandGradients() const { return operandGradients; }
  const std::string &getFailure() const { return failure; }

private:
  mlir::Operation *op;
  llvm::ArrayRef<Value> resultGradients;
  llvm::function_ref<bool(Value)> wanted;
  llvm::SmallVector<Value> operandGradients;
  std::string failure;
};

/// The gradient of x through an element-wise function: `y` is its value there
/// and `dy` the gradient of that. Null for a function that is constant almost
/// everywhere.
mlir::Value unaryGradient(TensorBuilder &g, UnaryKind kind, mlir::Value x,
                          mlir::Value y, mlir::Value dy);

/// Adapts a function to the interface.
template <typename OpT, mlir::LogicalResult (*fn)(OpT, GradientBuilder &)>
struct GradientModel
    : DifferentiableOpInterface::ExternalModel<GradientModel<OpT, fn>, OpT> {
  mlir::LogicalResult buildGradient(mlir::Operation *op,
                                    GradientBuilder &g) const {
    return fn(llvm::cast<OpT>(op), g);
  }
};

template <typename OpT, mlir::LogicalResult (*fn)(OpT, GradientBuilder &)>
void attachGradient(mlir::MLIRContext &context) {
  OpT::template attachInterface<GradientModel<OpT, fn>>(context);
}

/// Attaches the gradients of the ax operations; the passes that need them do
/// so by themselves.
void registerGradients(mlir::DialectRegistry &registry);

} // namespace ax

#endif // AX_GRADIENTS_GRADIENTBUILDER_H
