//===- AxInterfaces.td - What every ax operation declares --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_INTERFACES_TD
#define AX_INTERFACES_TD

include "mlir/IR/OpBase.td"

class Ax_Trait<string name> : NativeOpTrait<name> {
  let cppNamespace = "::ax";
}

/// An element of the result is made of one of each operand, by NumPy's
/// broadcasting, and of nothing else: not of its place, of chance or of others.
def Ax_ElementwiseLike : Ax_Trait<"ElementwiseLike">;
/// The first operand's elements, or some of them, in other places; in memory
/// nothing needs to move.
def Ax_ViewLike : Ax_Trait<"ViewLike">;
/// Kernels compute any element of the result where somebody asks for it
/// (EmitElement.cpp), so that it fuses with its neighbours. Element-wise
/// operations and views do so, too.
def Ax_FusesByElement : Ax_Trait<"FusesByElement">;
/// Kernels compute the result row by row (EmitRows.cpp), if need be after they
/// have made simpler operations of it (Decompose.cpp).
def Ax_FusesByRow : Ax_Trait<"FusesByRow">;
/// What a rank does of it is the same operation on its parts: no attribute says a
/// size or a place. Element-wise operations are such, too; others have a rule of
/// localisation (lib/Codegen/Localizer.h), and one that has neither does not build.
def Ax_DoneByParts : Ax_Trait<"DoneByParts">;
/// Known before a step begins: it has no operands and costs no step anything.
def Ax_SourceLike : Ax_Trait<"SourceLike">;

def Ax_ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::ax";
  let description = [{
    How the dimensions of the operands and results relate, and in which turn
    splits spread through the operation. It depends on global shapes and
    attributes only. An operation without a rule does not build.
  }];
  let methods = [
    InterfaceMethod<"The rule of this operation.",
                    "::ax::sharding::Rule", "getShardingRule">
  ];
}

def Ax_ContractionOpInterface : OpInterface<"ContractionOpInterface"> {
  let cppNamespace = "::ax";
  let description = [{
    A sum of products, whose work is what a plan's time is estimated by. Other
    operations count for their memory traffic alone.
  }];
  let methods = [
    InterfaceMethod<[{
        Multiplications and additions, where operands and results have the shapes
        that `shape` gives: all of them, or one rank's part.
      }],
      "double", "getFlops",
      (ins "::llvm::function_ref<::std::vector<int64_t>(::mlir::Value)>":$shape)>,
    InterfaceMethod<"What reports call it: `linear`.",
                    "::llvm::StringRef", "getKindName">,
    InterfaceMethod<[{
        The dimensions by which reports and causes say how it is split, in their
        order: what is summed, what the result has. None: reports leave it out.
      }],
      "::llvm::SmallVector<::ax::NamedDims>", "getNamedDims">
  ];
}

def Ax_LayerOpInterface : OpInterface<"LayerOpInterface"> {
  let cppNamespace = "::ax";
  let description = [{
    A contraction of data, operand 0, with a weight, operand 1: the features of
    the data are summed, those of the result made. What tensor parallelism splits.
  }];
  let methods = [
    InterfaceMethod<"The data.", "::mlir::Value", "getX">,
    InterfaceMethod<"The weight.", "::mlir::Value", "getW">,
    InterfaceMethod<"The dimension of features, in the data and in the result.",
                    "int64_t", "getFeatureDim">
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
