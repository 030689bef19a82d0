//===- AxInterfaces.td - What every ax operation declares --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_INTERFACES_TD
#define AX_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Ax_ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::ax";
  let description = [{
    How the dimensions of the operands and results relate. It depends on global
    shapes and attributes only. An operation without a rule does not build.
  }];
  let methods = [
    InterfaceMethod<"The rule of this operation.",
                    "::ax::sharding::Rule", "getShardingRule">
  ];
}

def Ax_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::ax";
  let description = [{
    A change of layout: each result is its operand, of the same global type.
    Most have one; those of one op are exchanged together.
  }];
  let methods = [
    InterfaceMethod<"The step of the resharding engine that this op performs.",
                    "::ax::sharding::StepKind", "getStepKind">
  ];
  let extraSharedClassDeclaration = [{
    /// What becomes `result`.
    ::mlir::Value getSource(::mlir::Value result) {
      return $_op->getOperand(
          ::llvm::cast<::mlir::OpResult>(result).getResultNumber());
    }
    ::ax::AxesAttr getMovedAxes() {
      return $_op->template getAttrOfType<::ax::AxesAttr>("axes");
    }
    ::mlir::StringAttr getCause() {
      return $_op->template getAttrOfType<::mlir::StringAttr>("because");
    }
  }];
}

def Ax_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::ax";
  let description = [{
    Reverse-mode gradients, attached by the Train phase (registerGradients). An
    operation without it ends differentiation with an error when it lies between
    a trainable state and the loss.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the gradients of the operands that are wanted from those of the
        results. Operands that get none are ones through which nothing flows.
        Failure with a message at the builder when the operation, as it is, has
        no gradient.
      }],
      "::mlir::LogicalResult", "buildGradient",
      (ins "::ax::GradientBuilder &":$builder)>
  ];
}

#endif // AX_INTERFACES_TD
